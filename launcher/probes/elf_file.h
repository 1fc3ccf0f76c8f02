// What the head of an ELF file says: for which machine it is, and by which loader it starts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace hv::launcher {

struct ElfFile {
  std::string machine;  // as uname -m has it, "x86_64"; "ELF machine 93" for what has no name here
  std::string loader;   // "/lib64/ld-linux-x86-64.so.2"; empty: it is static
};
// none: it cannot be read, or is no ELF file of this byte order.
std::optional<ElfFile> read_elf(const std::string& path);
// Though read_elf() may find it cut off, or of another byte order.
bool begins_as_elf(const std::string& path);

// By the kernel itself: a 64-bit machine runs its 32-bit programs, too.
bool machine_runs(const std::string& machine, const std::string& program);

}  // namespace hv::launcher
