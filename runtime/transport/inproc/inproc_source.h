// Shared memory between ranks that are threads of one process: one mapping that all of them use.
// SPDX-License-Identifier: Apache-2.0
//
// For tests: the protocol is the same as between processes, and a race detector sees every access.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/transport/shm/host_memory.h"

namespace hv::runtime {

// The memory of that name, zeroed, made by whoever asks first and gone with its last user. Any
// thread.
MappedMemory inproc_memory(const std::string& name, std::size_t bytes);

}  // namespace hv::runtime
