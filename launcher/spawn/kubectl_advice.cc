// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/kubectl_advice.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "src/base/text.h"

namespace hv::launcher {
namespace {

// Options that say where the pod is, and nothing secret: those that are worth repeating in advice.
std::string options_of_place(const KubectlCommand& command) {
  static const std::vector<std::string> kPlace{"-n", "--namespace", "--context", "--kubeconfig",
                                               "--cluster"};
  std::string text;
  for (std::size_t i = 0; i < command.options.size(); ++i) {
    const std::string& word = command.options[i];
    const std::string name = word.rfind("--", 0) == 0 ? word.substr(0, word.find('=')) : word;
    if (std::find(kPlace.begin(), kPlace.end(), name) == kPlace.end()) continue;
    text += " " + shell_quote(word);
    if (name == word && i + 1 < command.options.size())
      text += " " + shell_quote(command.options[++i]);
  }
  return text;
}

// An option of hvrun's that names the container, with the same kubectl.
std::string container_option(const KubectlCommand& command) {
  return "--rsh " + shell_quote(command.program + " exec -i" + options_of_place(command) +
                                " --container=NAME");
}

// In what kubectl says: "... cannot create resource "pods/exec" in API group ...".
std::string forbidden_advice(const std::string& words) {
  constexpr std::string_view kBefore = " cannot ", kBehind = " resource \"";
  const std::string otherwise =
      "let this account get pods and create pods/exec: a Role with these verbs, and a RoleBinding";
  const std::size_t at = words.find(kBefore);
  const std::size_t behind = words.find(kBehind, at);
  if (at == std::string::npos || behind == std::string::npos) return otherwise;
  const std::size_t verb = at + kBefore.size();
  const std::size_t resource = behind + kBehind.size();
  const std::size_t end = words.find('"', resource);
  if (behind < verb || end == std::string::npos) return otherwise;
  return "let this account " + printable(words.substr(verb, behind - verb)) + " " +
         printable(words.substr(resource, end - resource)) +
         ": a Role with get on pods and create on pods/exec, and a RoleBinding";
}

// "E1124 03:14:11.746678   13909 memcache.go:265] ...", and which container kubectl has chosen.
bool is_log_or_note(const std::string& line) {
  static const std::string kDigits = "0123456789";
  const bool is_log = line.size() > 6 &&
                      std::string_view("IWEF").find(line[0]) != std::string_view::npos &&
                      line.find_first_not_of(kDigits, 1) == 5 && line[5] == ' ';
  return is_log || line.rfind("Defaulted container ", 0) == 0 ||
         line.rfind("Defaulting container name ", 0) == 0 ||
         line.rfind("Use 'kubectl describe ", 0) == 0 || trim(line).empty();
}

enum class Kind { kLasts, kPasses };

struct Saying {
  const char* part;  // of what kubectl says, in small letters
  Kind kind;
  const char* advice;                 // empty: to look at the pod
  bool depends_on_container = false;  // the advice ends with the option that names one
};

constexpr const char* kNoShell = "take an image with /bin/sh, or name the right container: ";
constexpr const char* kNameContainer = "name one of the pod's containers: ";
constexpr const char* kLogIn =
    "see that 'kubectl get pods' works here: the service account's token or ~/.kube/config";
constexpr const char* kServer = "see that 'kubectl get pods' works here";
constexpr const char* kOptions = "see 'kubectl exec --help' for the options of this kubectl";

// The first that fits counts; what lasts stands before what only sounds like passing.
constexpr Saying kSayings[] = {
    {"unauthorized", Kind::kLasts, kLogIn},
    {"must be logged in", Kind::kLasts, kLogIn},
    {"server localhost:8080 was refused", Kind::kLasts, kLogIn},
    {"no configuration has been provided", Kind::kLasts, kLogIn},
    {"error in configuration", Kind::kLasts, kLogIn},
    {"error loading config file", Kind::kLasts, kLogIn},
    {"certificate signed by unknown authority", Kind::kLasts, kLogIn},
    {"certificate has expired", Kind::kLasts, kLogIn},
    {"unknown flag", Kind::kLasts, kOptions},
    {"unknown shorthand flag", Kind::kLasts, kOptions},
    {"unknown command", Kind::kLasts, kOptions},
    {"invalid argument", Kind::kLasts, kOptions},
    {"stat /bin/sh", Kind::kLasts, kNoShell, true},
    {"exec: \"/bin/sh\"", Kind::kLasts, kNoShell, true},
    {"executable file not found", Kind::kLasts, kNoShell, true},
    {"no such file or directory", Kind::kLasts, kServer},
    {"is not valid for pod", Kind::kLasts, kNameContainer, true},
    {"container name must be specified", Kind::kLasts, kNameContainer, true},
    {"completed pod", Kind::kLasts, ""},
    {"namespaces \"", Kind::kLasts, "name the pods' namespace (--namespace)"},
    {"command terminated", Kind::kLasts, ""},
    // The pod is not created, not scheduled, or its container does not run (yet, or again).
    {"pods \"", Kind::kPasses, ""},
    {"pod does not exist", Kind::kPasses, ""},
    {"does not have a host assigned", Kind::kPasses, ""},
    {"container not found (", Kind::kPasses, ""},
    {"containercreating", Kind::kPasses, ""},
    {"podinitializing", Kind::kPasses, ""},
    {"is not created or running", Kind::kPasses, ""},
    {"is not running", Kind::kPasses, ""},
    {"container not running", Kind::kPasses, ""},
    {"stopped container", Kind::kPasses, ""},
    {"container that has stopped", Kind::kPasses, ""},
    {"container is in container_exited state", Kind::kPasses, ""},
    // Its node does not answer yet, or the API server is out of reach or busy for a moment.
    {"error dialing backend", Kind::kPasses, ""},
    {"the connection to the server", Kind::kPasses, kServer},
    {"unable to connect to the server", Kind::kPasses, kServer},
    {"tls handshake timeout", Kind::kPasses, kServer},
    {"i/o timeout", Kind::kPasses, kServer},
    {"connection refused", Kind::kPasses, kServer},
    {"connection reset by peer", Kind::kPasses, kServer},
    {"client connection lost", Kind::kPasses, kServer},
    {"unexpected eof", Kind::kPasses, kServer},
    {"etcdserver:", Kind::kPasses, kServer},
    {"(serviceunavailable)", Kind::kPasses, kServer},
    {"(toomanyrequests)", Kind::kPasses, kServer},
    {"(timeout)", Kind::kPasses, kServer},
    {"currently unable to handle the request", Kind::kPasses, kServer},
    {"timed out waiting for the condition", Kind::kPasses, ""},
};

}  // namespace

std::string describe_advice(const KubectlCommand& command, const std::string& pod) {
  return "see '" + command.program.substr(command.program.rfind('/') + 1) + " describe pod " + pod +
         options_of_place(command) + "'";
}

std::string kubectl_reason(const std::string& words) {
  // "kubectl ended with exit code 1: " stands before the first line, whatever that is.
  const std::size_t colon = words.find(": ");
  const bool is_prefixed = words.substr(0, colon).find(" ended with ") != std::string::npos &&
                           colon != std::string::npos && words.find('\n') > colon;
  const std::string prefix = is_prefixed ? words.substr(0, colon + 2) : "";
  std::vector<std::string> lines;
  for (const std::string& line : split(std::string_view(words).substr(prefix.size()), '\n'))
    if (!is_log_or_note(line)) lines.emplace_back(trim(line));
  return lines.empty() ? words : prefix + join(lines, "; ");
}

KubectlVerdict judge_kubectl_words(const std::string& words, const KubectlCommand& command,
                                   const std::string& pod) {
  const std::string reason = kubectl_reason(words);
  const std::string text = lower(reason);
  if (text.find("forbidden") != std::string::npos)
    return {false, text.find("resource=nodes") == std::string::npos
                       ? forbidden_advice(reason)
                       : "ask the cluster's administrator: its API server may not reach its nodes"};
  for (const Saying& saying : kSayings) {
    if (text.find(saying.part) == std::string::npos) continue;
    std::string advice = saying.advice;
    if (saying.depends_on_container) advice += container_option(command);
    return {saying.kind == Kind::kPasses, advice.empty() ? describe_advice(command, pod) : advice};
  }
  return {};
}

HostAdvice pod_advice(const KubectlCommand& command, const std::string& pod) {
  const std::string look = describe_advice(command, pod);
  return {
      pod, look, look + ", and whether its API server answers", [=](const std::string& words) {
        return JudgedWords{kubectl_reason(words), judge_kubectl_words(words, command, pod).advice};
      }};
}

}  // namespace hv::launcher
