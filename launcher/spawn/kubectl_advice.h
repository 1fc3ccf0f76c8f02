// What `kubectl exec` says when it does not reach a pod: whether that may pass by itself, and what
// to try. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "launcher/allocation/kubectl_command.h"
#include "launcher/spawn/host_advice.h"

namespace hv::launcher {

// Of a kubectl's words those that say why, without its log and its notes.
std::string kubectl_reason(const std::string& words);

struct KubectlVerdict {
  bool may_pass = false;  // the pod, or the API server, may just be coming up
  std::string advice{};   // empty: its words are not known
};
// words: kubectl's stderr. command: as which it was called.
KubectlVerdict judge_kubectl_words(const std::string& words, const KubectlCommand& command,
                                   const std::string& pod);

// What is told where its agent does not start.
HostAdvice pod_advice(const KubectlCommand& command, const std::string& pod);

// "see 'kubectl describe pod train-worker-0 --namespace=jobs'".
std::string describe_advice(const KubectlCommand& command, const std::string& pod);

}  // namespace hv::launcher
