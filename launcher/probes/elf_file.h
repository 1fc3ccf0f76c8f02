// Reads the head of an ELF file: the architecture that it is built for, and its loader.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace hv::launcher {

struct ElfFile {
  std::string machine;  // as in uname -m: "x86_64"; "ELF machine 93" for an unknown architecture
  std::string loader;   // "/lib64/ld-linux-x86-64.so.2"; empty: it is static
};
// Nothing: the file cannot be read, or is no ELF file of this byte order.
std::optional<ElfFile> read_elf(const std::string& path);
// Whether the file starts with ELF's magic number; read_elf() may still refuse it.
bool begins_as_elf(const std::string& path);

// Whether the kernel of that architecture runs programs of the other one: a 64-bit kernel runs its
// 32-bit programs, too.
bool machine_runs(const std::string& machine, const std::string& program);

}  // namespace hv::launcher
