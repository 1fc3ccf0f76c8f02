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

TEST_CASE("how long pods have to end is asked without the options that only exec has") {
  const auto words = [](const std::string& remote_shell) {
    return join(termination_period_words(parse_kubectl_command(split(remote_shell, ' '), "--rsh"),
                                         {"w-0", "w-1"}),
                " ");
  };
  const std::string rest =
      "--no-headers --output custom-columns=:.spec.terminationGracePeriodSeconds pod w-0 w-1";
  CHECK(words("kubectl exec") == "kubectl get " + rest);
  CHECK(words("kubectl exec -n jobs -i -c main --pod-running-timeout 9s --context=far") ==
        "kubectl get -n jobs --context=far " + rest);
  CHECK(words("/k/kubectl exec -q -cmain --container=main --quiet=true --token t") ==
        "/k/kubectl get --token t " + rest);
}

TEST_CASE("the shortest period of the pods counts") {
  using namespace std::chrono_literals;
  CHECK(shortest_termination_period("60\n30\n45\n") == 30s);
  CHECK(shortest_termination_period(" 30 ") == 30s);
  CHECK(shortest_termination_period("<none>\n45\n") == 45s);
  CHECK(shortest_termination_period("999999999999\n") == 24h);
  for (const char* none : {"", "<none>", "-3", "3.5", "99999999999999999999"})
    CHECK_FALSE(shortest_termination_period(none));
}
