// How long the pods of a job have between Kubernetes' SIGTERM and its SIGKILL, by one
// `kubectl get pod` when the SIGTERM has come. io_context thread only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>

namespace hv::launcher {

struct LaunchContext;

// Sets the job's time_to_end to what is left of it, where hvrun runs in a pod and kubectl answers
// within 1 s. Asked are hvrun's own pod and, where kubectl reaches the hosts, the pods of ranks.
boost::asio::awaitable<void> ask_for_time_to_end(LaunchContext& context);

}  // namespace hv::launcher
