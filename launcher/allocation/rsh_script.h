// The script by which an MPI operator's launcher reaches pods ($OMPI_MCA_plm_rsh_agent names it):
// how it calls kubectl. Pure: nothing of the script is run.
// SPDX-License-Identifier: Apache-2.0
//
//   POD_NAME=$1
//   shift
//   /opt/kube/kubectl exec ${POD_NAME} --container main -- /bin/sh -c "$*"
//
// The script itself cannot carry an agent's stream: it gives the command no standard input. So
// hvrun reads off the program and its options, and calls them itself. What is read of the shell's
// language: words with quotes, variables that the script sets or the environment has, and where a
// command ends. Calls in branches must agree; those with a terminal do not count beside others.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "launcher/allocation/kubectl_command.h"
#include "src/base/environment.h"

namespace hv::launcher {

constexpr std::size_t kMostScriptBytes = 64 << 10;

// source: what names the script in messages. Throws Error(kUsage) where there is no call of
// `kubectl exec` in it, or one that is not understood.
KubectlCommand kubectl_in_script(std::string_view script, const std::string& source,
                                 const Environment& environment);

}  // namespace hv::launcher
