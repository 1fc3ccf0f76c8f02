// Tests of how kubectl is called for a pod, by --rsh or by the MPI operator's variable.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/kubectl_command.h"

#include "src/base/text.h"
#include "tests/unit/allocation/refusal.h"

using namespace hv;
using namespace hv::launcher;

namespace {

std::string of_rsh(const std::string& words) {
  const KubectlCommand command = parse_kubectl_command(split(words, ' '), "--rsh");
  return command.program + "|" + join(command.options, "|");
}

std::string rsh_refused(const std::string& words) {
  return tests::message_of([&] { of_rsh(words); });
}

}  // namespace

TEST_CASE("--rsh with kubectl: options before and behind exec, -i or not") {
  CHECK(of_rsh("kubectl exec") == "kubectl|");
  CHECK(of_rsh("/k/kubectl exec -i") == "/k/kubectl|");
  CHECK(of_rsh("oc exec --stdin=true -qi") == "oc|-q");
  CHECK(of_rsh("kubectl --context far -n jobs exec -i -c main") ==
        "kubectl|--context|far|-n|jobs|-c|main");
  CHECK(of_rsh("kubectl exec -njobs -icmain --tty=false -q=false") ==
        "kubectl|-njobs|-cmain|-q=false");
  CHECK(of_rsh("kubectl exec -i-c") == "kubectl|-i-c");  // nothing that kubectl would take
  CHECK(of_rsh("kubectl exec --new-option=3") == "kubectl|--new-option=3");
}

TEST_CASE("--rsh with kubectl is refused where hvrun could not add what it must") {
  CHECK(rsh_refused("kubectl").find("--rsh: it is kubectl without exec") == 0);
  CHECK(rsh_refused("kubectl -n jobs").find("it is kubectl without exec") != std::string::npos);
  CHECK(rsh_refused("kubectl get").find("kubectl get does not run commands") != std::string::npos);
  CHECK(rsh_refused("kubectl exec -it").find("-t gives a terminal") != std::string::npos);
  CHECK(rsh_refused("kubectl exec --tty").find("-t gives a terminal") != std::string::npos);
  CHECK(rsh_refused("kubectl exec pod").find("more than options: 'pod'") != std::string::npos);
  CHECK(rsh_refused("kubectl exec -i --").find("more than options") != std::string::npos);
  CHECK(rsh_refused("kubectl exec -f pod.yaml").find("-f takes the pod") != std::string::npos);
  CHECK(rsh_refused("kubectl exec -n").find("-n of kubectl lacks its value") != std::string::npos);
}

TEST_CASE("what is called for a pod: kubectl exec -i with the options, the pod and a command") {
  CHECK(join(exec_words({"kubectl", {"-n", "jobs"}}, "w-0"), " ") ==
        "kubectl exec -i -n jobs w-0 --");
  for (const std::string program : {"kubectl", "/a/kubectl", "oc", "/opt/oc"})
    CHECK(is_kubectl(program));
  for (const std::string program : {"ssh", "kubectl.sh", "/kubectl/ssh", "", "doc"})
    CHECK_FALSE(is_kubectl(program));
}
