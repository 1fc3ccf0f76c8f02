// Requests of a rank in a test, and what it expects of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "runtime/api/context.h"
#include "runtime/include/hvrun/hvrun.h"

namespace hv::runtime {

// Throws with these words unless the condition holds; for bodies, which run outside the test's own
// thread.
void expect(bool condition, const std::string& words);

// Requests as a C program would write them; shape must live until the request was read.
hvrun_request barrier_request();
hvrun_request allreduce_request(const char* name, const std::int64_t* count, const void* input,
                                void* output, hvrun_type type = HVRUN_FLOAT32,
                                hvrun_reduction reduction = HVRUN_SUM);

// HVRUN_SEND to or HVRUN_RECEIVE from that rank.
hvrun_request pair_request(hvrun_operation operation, const char* name, int other,
                           const std::int64_t* count, void* data, hvrun_type type = HVRUN_INT32);

// Enqueues and waits.
Status run_in(Context& context, const hvrun_request& request);

}  // namespace hv::runtime
