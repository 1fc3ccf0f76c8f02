// How kubectl reaches the hosts of a job that are pods: `PROGRAM exec -i OPTIONS POD -- command`.
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hv::launcher {

struct KubectlCommand {
  std::string program;                 // "/opt/kube/kubectl"; empty: the hosts are no pods
  std::vector<std::string> options{};  // behind exec, but -i: "--namespace=jobs", "-c", "main"
  bool operator==(const KubectlCommand&) const = default;
};

// Whether a program, or a path of one, is kubectl or OpenShift's oc.
bool is_kubectl(const std::string& program);

// What the words of a whole call say: "kubectl -n jobs exec POD -c main -- sh -c ...".
struct KubectlCall {
  KubectlCommand command;
  std::string subcommand;               // "exec"; empty: none
  std::vector<std::string> operands{};  // behind it, up to "--" or the second of them: the pod
};
// Throws Error(kUsage), which begins with source: for options that hvrun's own calls cannot have.
KubectlCall parse_kubectl_call(const std::vector<std::string>& words, const std::string& source);

// Of --rsh: "kubectl exec", with options and nothing else. Throws Error(kUsage).
KubectlCommand parse_kubectl_command(const std::vector<std::string>& words,
                                     const std::string& source);

// What stands before the command that is to run in the pod.
std::vector<std::string> exec_words(const KubectlCommand& command, const std::string& pod);

// A call that prints how long each of the pods has between SIGTERM and SIGKILL, in seconds, a line
// each: `PROGRAM get OPTIONS ... pod PODS`, without the options that only exec has.
std::vector<std::string> termination_period_words(const KubectlCommand& command,
                                                  const std::vector<std::string>& pods);
// The shortest of them. nullopt: there is no number in the text.
std::optional<std::chrono::seconds> shortest_termination_period(std::string_view text);

}  // namespace hv::launcher
