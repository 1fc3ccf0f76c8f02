// Tests of reading off a launcher's script, and --rsh, how kubectl is called.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/rsh_script.h"

#include "src/base/text.h"
#include "tests/unit/allocation/refusal.h"

using namespace hv;
using namespace hv::launcher;

namespace {

std::string shown(const KubectlCommand& command) {
  return command.program + "|" + join(command.options, "|");
}

std::string read_off(const std::string& script, const std::vector<std::string>& environment = {}) {
  return shown(
      kubectl_in_script(script, "/etc/mpi/kubexec.sh", Environment::from_entries(environment)));
}

std::string refused(const std::string& script) {
  return tests::message_of([&] { read_off(script); });
}

std::string of_rsh(const std::string& words) {
  return shown(parse_kubectl_command(split(words, ' '), "--rsh"));
}

std::string rsh_refused(const std::string& words) {
  return tests::message_of([&] { of_rsh(words); });
}

}  // namespace

TEST_CASE("rsh_script reads the scripts of the MPI operator and of those that are made like it") {
  CHECK(read_off("#!/bin/sh\nset -x\nPOD_NAME=$1\nshift\n/opt/kube/kubectl exec ${POD_NAME} -- "
                 "/bin/sh -c \"$*\"") == "/opt/kube/kubectl|");
  CHECK(read_off("#!/bin/sh\nset -x\nPOD_NAME=$1\nshift\n/opt/kube/kubectl exec ${POD_NAME} "
                 "--container main -- /bin/sh -c \"$*\"") == "/opt/kube/kubectl|--container|main");
  // It skips options of mpirun's, and tells pods of each other by their files.
  CHECK(read_off("#!/bin/sh\nset -x\nPOD_NAME=$1\nwhile [ ${POD_NAME%${POD_NAME#?}} = \"-\" ]\n"
                 "do\nshift\nPOD_NAME=$1\ndone\nshift\n/opt/kube/kubectl cp /opt/kube/hosts "
                 "${POD_NAME}:/etc/hosts_of_nodes\n/opt/kube/kubectl exec ${POD_NAME} -- /bin/sh "
                 "-c \"cat /etc/hosts_of_nodes >> /etc/hosts && $*\"\n") == "/opt/kube/kubectl|");
  CHECK(read_off("#!/bin/sh\n\n# Name of the POD to exec into\nPOD_NAME=$1\nif [ \"x\" == "
                 "\"x$POD_NAME\" ] ; then\n  echo \"Error: Supply the pod name; kubectl exec it\"\n"
                 "  exit 1\nfi\n\nshift\n/opt/mpi/bin/kubectl exec ${POD_NAME} -- /bin/sh -c "
                 "\"$*\"\n") == "/opt/mpi/bin/kubectl|");
}

TEST_CASE("rsh_script understands the shell's words as far as such scripts use them") {
  CHECK(read_off("kubectl -n 'my jobs' exec -i \"$1\" -c \"main\" -- sh -c \"$*\"") ==
        "kubectl|-n|my jobs|-c|main");
  CHECK(read_off("KUBECTL=/k/kubectl\nNS=jobs\nexec \"$KUBECTL\" exec -i --namespace=${NS} $1 -- "
                 "sh") == "/k/kubectl|--namespace=jobs");
  CHECK(read_off("kubectl exec \\\n  $1 \\\n  --container main \\\n  -- sh -c \"$@\"") ==
        "kubectl|--container|main");
  CHECK(read_off("(exec oc exec -q ${1} /bin/sh -c \"$*\") </dev/null 2>&1") == "oc|-q");
  CHECK(read_off("if true; then kubectl exec $1 2>/dev/null -- sh; fi") == "kubectl|");
  CHECK(read_off("export POD=$1 NS=${NS:-jobs}; kubectl exec $POD -n $NS -- sh") ==
        "kubectl|-n|jobs");
  CHECK(read_off("kubectl exec $1 -n ${NS:-jobs} -- sh", {"NS=mine"}) == "kubectl|-n|mine");
  CHECK(read_off("KUBECONFIG=/c kubectl exec $1 -- sh") == "kubectl|--kubeconfig=/c");
  CHECK(read_off("kubectl exec $1 -- sh", {"KUBECONFIG=/c"}) == "kubectl|");
}

TEST_CASE("rsh_script takes the call without a terminal where there is one of each") {
  CHECK(read_off("if [ -t 0 ]; then kubectl exec -it $1 -- sh -c \"$*\"; else kubectl exec -i $1 "
                 "-- sh -c \"$*\"; fi") == "kubectl|");
  CHECK(refused("kubectl exec -it $1 -- sh").find("kubectl exec -t gives a terminal") !=
        std::string::npos);
}

TEST_CASE("rsh_script says what it looked for where it does not understand") {
  const std::pair<std::string, std::string> cases[] = {
      {"", "it does not call kubectl"},
      {"#!/bin/sh\nexec ssh \"$@\"\n", "it does not call kubectl"},
      {"\x7f"
       "ELF\2\1\1",
       "it does not call kubectl"},
      {"echo kubectl exec $1 -- sh", "it does not call kubectl"},
      {"# kubectl exec $1 -- sh", "it does not call kubectl"},
      {"kubectl get pod $1", "it does not call kubectl"},
      {"kubectl exec worker-0 -- sh", "the pod that its kubectl exec names is not understood"},
      {"kubectl exec ${1%%.*} -- sh", "the pod that its kubectl exec names is not understood"},
      {"kubectl exec", "the pod that its kubectl exec names is not understood"},
      {"kubectl exec $1 -n $(cat /ns) -- sh", "an option of its kubectl exec is not understood"},
      {"kubectl exec $1 -n `cat /ns` -- sh", "an option of its kubectl exec is not understood"},
      {"kubectl exec $1 -c", "lacks its value"},
      {"kubectl exec $1 -c a -- sh\nkubectl exec $1 -c b -- sh", "in several ways"},
      {std::string(kMostScriptBytes + 1, '\n'), "it has more than 64 KiB"},
  };
  for (const auto& [script, what] : cases) {
    CAPTURE(script);
    CAPTURE(refused(script));
    CHECK(refused(script).find("/etc/mpi/kubexec.sh: ") == 0);
    CHECK(refused(script).find(what) != std::string::npos);
  }
  CHECK(refused("").find("looked for is a call 'kubectl exec [options] POD --") !=
        std::string::npos);
  CHECK(tests::hint_of([] { read_off(""); }).find("--rsh 'kubectl exec -i") != std::string::npos);
}

TEST_CASE("rsh_script's words do not grow without end by variables in variables") {
  std::string script = "A=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n";
  for (int i = 0; i < 1000; ++i) script += "A=$A$A$A\n";
  CHECK(refused(script + "kubectl exec $1 -n $A$A -- sh").find("is not understood") !=
        std::string::npos);
}

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

TEST_CASE("rsh_script refuses what hangs on a branch, on splitting, or on a command") {
  for (const char* script : {
           "if [ -n \"$X\" ]; then NS=a; else NS=b; fi\nkubectl exec -n $NS $1 -- sh",
           "if [ -n \"$X\" ]\nthen\nNS=a\nelse\nNS=b\nfi\nkubectl exec -n $NS $1 -- sh",
           "NS=a\n[ -n \"$X\" ] && NS=b\nkubectl exec -n $NS $1 -- sh",
           "OPTS=\"-n jobs -c main\"\nkubectl exec $OPTS $1 -- sh",
           "export KUBECONFIG=$(mktemp)\nkubectl exec $1 -- sh",
       }) {
    CAPTURE(script);
    CHECK(refused(script) != "");
  }
  CHECK(read_off("kubectl exec $EXTRA $1 -- sh") == "kubectl|");
  CHECK(read_off("OPTS=\"-n jobs\"\nkubectl exec -n \"jobs\" $1 -- sh") == "kubectl|-n|jobs");
}
