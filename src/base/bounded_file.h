// The whole content of a file that a user or a scheduler has named: bounded, and never waited for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace hv {

// What is longer comes with more than most_bytes of it, for the parser to refuse with words. what:
// "hostfile", "$PBS_NODEFILE". hint: what to try where no such file is there.
//
// A named pipe is refused, for its writer may never come. What this process has open already is
// read to its end, as a shell's <(...) wants it: /dev/fd/N, /dev/stdin. Throws Error(kUsage).
std::string read_bounded_file(const std::string& path, std::size_t most_bytes,
                              const std::string& what, const std::string& hint);

// Whether both paths lead to one file or directory, by device and inode.
bool is_same_file(const std::string& one, const std::string& other);

}  // namespace hv
