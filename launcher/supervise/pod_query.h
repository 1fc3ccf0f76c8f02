// How long the pods of a job have between Kubernetes' SIGTERM and its SIGKILL, by one
// `kubectl get pod` when the job starts: at its end the API server may not answer any more.
// io_context thread only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hv::launcher {

struct LaunchContext;

// Where hvrun runs in a pod, or kubectl reaches the hosts, and no --grace is stated: starts a query
// in the background. Does not block. Its answer sets the job's time_to_end and goes to all agents;
// without one that stays unknown. Asked are hvrun's own pod and, where kubectl reaches the hosts,
// the pods of ranks. After the plan; context outlives the job's io_context.
void begin_pod_query(LaunchContext& context);

}  // namespace hv::launcher
