// Tests of what kubectl's words mean: each is as a kubectl or an API server printed it.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/kubectl_advice.h"

#include "tests/unit/spawn/trial.h"

using namespace hv::launcher;
using namespace hv::launcher::trial;

namespace {

const KubectlCommand kKubectl{"/opt/kube/kubectl"};

KubectlVerdict verdict(const std::string& words) {
  return judge_kubectl_words(words, kKubectl, "w-0");
}

}  // namespace

TEST_CASE("what a pod or an API server that comes up makes kubectl say may pass") {
  for (const std::string words : {
           "Error from server (NotFound): pods \"w-0\" not found",
           "Error from server (BadRequest): pod w-0 does not have a host assigned",
           "error: unable to upgrade connection: container not found (\"main\")",
           "error: unable to upgrade connection: pod does not exist",
           "error: error executing remote command: error executing command in container: container "
           "not found (\"sleep1\")",
           "error: Internal error occurred: error executing command in container: container is not "
           "created or running",
           "Error from server (BadRequest): container \"main\" in pod \"w-0\" is waiting to start: "
           "PodInitializing",
           "Error from server (BadRequest): container \"main\" in pod \"w-0\" is waiting to start: "
           "ContainerCreating",
           "OCI runtime exec failed: exec failed: cannot exec in a stopped container: unknown",
           "Error from server: error dialing backend: dial tcp 10.0.3.123:10250: i/o timeout",
           "Error from server: error dialing backend: dial tcp 172.18.10.229:10250: connect: "
           "connection refused",
           "Error from server: error dialing backend: remote error: tls: internal error",
           "The connection to the server 172.16.128.128:6443 was refused - did you specify the "
           "right host or port?",
           "Unable to connect to the server: net/http: TLS handshake timeout",
           "Unable to connect to the server: dial tcp: lookup kubernetes.default on "
           "10.96.0.10:53: no such host",
           "error: unable to upgrade connection: unexpected EOF",
           "Error from server: etcdserver: request timed out",
           "Error from server (ServiceUnavailable): the server is currently unable to handle the "
           "request",
           "error: timed out waiting for the condition",
       }) {
    CAPTURE(words);
    CHECK(verdict("kubectl ended with exit code 1: " + words).may_pass);
    CHECK(verdict(words).advice != "");
  }
}

TEST_CASE("what no patience mends ends the start at once, with what to do") {
  const std::pair<const char*, const char*> cases[] = {
      {"error: cannot exec into a container in a completed pod; current phase is Succeeded",
       "kubectl describe pod w-0"},
      {"error: You must be logged in to the server (Unauthorized)", "kubectl get pods"},
      {"The connection to the server localhost:8080 was refused - did you specify the right host "
       "or port?",
       "kubectl get pods"},
      {"Unable to connect to the server: x509: certificate signed by unknown authority",
       "kubectl get pods"},
      {"Error in configuration: context was not found for specified context: nope",
       "kubectl get pods"},
      {"error: error loading config file \"/c\": yaml: line 1: did not find expected node content",
       "kubectl get pods"},
      {"error: stat /nope: no such file or directory", "kubectl get pods"},
      {"Error: unknown flag: --foo\nSee 'kubectl exec --help' for usage.", "exec --help"},
      {"Error: unknown shorthand flag: 'z' in -z\nSee 'kubectl exec --help' for usage.",
       "exec --help"},
      {"Error from server (BadRequest): container foo is not valid for pod w-0",
       "name one of the pod's containers: --rsh '"},
      {"Error from server (BadRequest): a container name must be specified for pod w-0, choose one "
       "of: [main sidecar]",
       "exec -i"},
      {"Error from server (NotFound): namespaces \"nope\" not found", "--namespace"},
      {"OCI runtime exec failed: exec failed: container_linux.go:370: starting container process "
       "caused: exec: \"/bin/sh\": stat /bin/sh: no such file or directory: unknown\ncommand "
       "terminated with exit code 126",
       "/bin/sh"},
      {"error: Internal error occurred: error executing command in container: failed to exec in "
       "container: failed to start exec \"fc7e\": OCI runtime exec failed: exec failed: unable to "
       "start container process: exec: \"/bin/sh\": executable file not found in $PATH: unknown",
       "/bin/sh"},
      {"rpc error: code = 2 desc = oci runtime error: exec failed: container_linux.go:247: "
       "starting "
       "container process caused \"exec: \\\"/bin/sh\\\": stat /bin/sh: no such file or "
       "directory\"\n\ncommand terminated with exit code 126",
       "/bin/sh"},
      {"command terminated with exit code 137", "describe pod"},
      {"error: unable to upgrade connection: Forbidden (user=kubernetes, verb=create, "
       "resource=nodes, subresource=proxy)",
       "administrator"},
  };
  for (const auto& [words, advice] : cases) {
    CAPTURE(words);
    CHECK_FALSE(verdict(words).may_pass);
    CHECK(contains(verdict(words).advice, advice));
  }
}

TEST_CASE("a right that lacks is told by verb and resource") {
  const std::string words =
      "Error from server (Forbidden): pods \"w-0\" is forbidden: User "
      "\"system:serviceaccount:default:default\" cannot create resource \"pods/exec\" in API group "
      "\"\" in the namespace \"default\"";
  CHECK_FALSE(verdict(words).may_pass);
  CHECK(contains(verdict(words).advice, "let this account create pods/exec: a Role with"));
  const std::string old =
      "pods \"w-0\" is forbidden: User \"u\" cannot create pods/exec in the "
      "namespace \"n\"";
  CHECK_FALSE(verdict(old).may_pass);
  CHECK(contains(verdict(old).advice, "create pods/exec"));
}

TEST_CASE("words that are not known are no reason to wait") {
  for (const std::string words : {"", "segmentation fault in the moon phase", "error: EOF"}) {
    CHECK_FALSE(verdict(words).may_pass);
    CHECK(verdict(words).advice == "");
  }
}

TEST_CASE("kubectl's log and its notes are not the reason") {
  const std::string log =
      "E1124 03:14:11.746678   13909 memcache.go:265] \"Unhandled Error\" err=\"couldn't get "
      "current server API group list\"";
  CHECK(kubectl_reason("kubectl ended with exit code 1: " + log + "\n" + log +
                       "\nUnable to connect to the server: EOF") ==
        "kubectl ended with exit code 1: Unable to connect to the server: EOF");
  CHECK(kubectl_reason("Defaulted container \"a\" out of: a, b\nerror: x") == "error: x");
  CHECK(kubectl_reason("oc ended with exit code 1: error: x\ny") ==
        "oc ended with exit code 1: error: x; y");
  CHECK(kubectl_reason(log) == log);
  CHECK(kubectl_reason("") == "");
}

TEST_CASE("the advice names the place of the pod, and nothing secret") {
  const KubectlCommand command{
      "/usr/bin/oc", {"-n", "my jobs", "--token=abc", "-c", "main", "--context=far", "-q"}};
  CHECK(describe_advice(command, "w-0") == "see 'oc describe pod w-0 -n 'my jobs' --context=far'");
  CHECK(describe_advice({"kubectl", {"--namespace", "jobs"}}, "w-0") ==
        "see 'kubectl describe pod w-0 --namespace jobs'");
}
