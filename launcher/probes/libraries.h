// Which shared libraries a program would be given: by its own loader's list. The program itself is
// never run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/base/environment.h"

namespace hv::launcher {

struct LibraryList {
  std::vector<std::pair<std::string, std::string>> libraries;  // name, file; sorted by name
  std::vector<std::string> missing;  // "libcudart.so.13", "GLIBC_2.38 of libc.so.6"
};

// Of what a loader says: glibc's, and musl's.
LibraryList parse_library_list(const std::string& text);

// Blocks. Returns why the loader did not tell; empty: it did. environment: the program's.
std::string list_libraries(const std::string& loader, const std::string& program,
                           const std::string& directory, const Environment& environment,
                           TimePoint until, LibraryList* list);

// What the head of an ELF file says: for which machine it is, and by which loader it starts.
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
