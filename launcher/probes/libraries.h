// Lists the shared libraries that a program would get, by asking its own loader. The program itself
// never runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

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

// Parses the output of a loader, glibc's or musl's.
LibraryList parse_library_list(const std::string& text);

// Blocks. Returns why there is no list; empty: *list is filled. environment: the program's.
std::string list_libraries(const std::string& loader, const std::string& program,
                           const std::string& directory, const Environment& environment,
                           TimePoint until, LibraryList* list);

}  // namespace hv::launcher
