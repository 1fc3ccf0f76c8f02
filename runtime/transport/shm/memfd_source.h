// Shared memory between processes of one host: a memfd, handed over a Unix socket.
// SPDX-License-Identifier: Apache-2.0
//
// It has no name, counts against no /dev/shm, and is gone with its last process. It is sealed
// against shrinking, so that no peer can make an access here fail.
#pragma once

#include <cstddef>

#include "runtime/transport/shm/host_memory.h"
#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace hv::runtime {

Status create_memfd(std::size_t bytes, UniqueFd* fd);
// Maps it, after checking that it has that size and its seals. Forked children do not inherit the
// mapping.
Status map_memfd(int fd, std::size_t bytes, MappedMemory* memory);

}  // namespace hv::runtime
