// Looks for the job's key in what a core dump of a process would hold: its memory less mappings
// marked 'dd'.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "src/wire/authentication.h"

namespace hv::tests {

struct Mapping {
  std::size_t begin = 0, end = 0;
  bool is_readable = false, is_dumped = true;
  std::string line;
};

inline std::vector<Mapping> mappings_of(pid_t pid) {
  std::ifstream smaps("/proc/" + std::to_string(pid) + "/smaps");
  std::vector<Mapping> all;
  for (std::string line; std::getline(smaps, line);) {
    std::size_t begin = 0, end = 0;
    char access = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx %c", &begin, &end, &access) == 3) {
      all.push_back({begin, end, access == 'r', true, line});
    } else if (line.rfind("VmFlags:", 0) == 0 && !all.empty()) {
      all.back().is_dumped = (line + " ").find(" dd ") == std::string::npos;
    }
  }
  return all;
}

// With the distance from this frame: on the stack it tells whose call left the copy there.
inline std::string where_it_lies(const Mapping& mapping, std::size_t at, const char* buffer,
                                 const void* hit) {
  const std::size_t place = at + static_cast<std::size_t>(static_cast<const char*>(hit) - buffer);
  std::ostringstream words;
  words << mapping.line << ", " << std::hex << place << ", from here "
        << static_cast<std::ptrdiff_t>(place -
                                       reinterpret_cast<std::size_t>(__builtin_frame_address(0)));
  return words.str();
}

// The mappings that would be dumped and hold the key. Reads into memory that would not be.
inline std::vector<std::string> dumped_copies(pid_t pid, const JobKey& key) {
  constexpr std::size_t kPiece = 1 << 20, kMost = std::size_t{1} << 30;
  void* const buffer =
      ::mmap(nullptr, kPiece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(buffer != MAP_FAILED);
  REQUIRE(::madvise(buffer, kPiece, MADV_DONTDUMP) == 0);
  std::vector<std::string> found;
  for (const Mapping& mapping : mappings_of(pid)) {
    if (!mapping.is_readable || !mapping.is_dumped || mapping.end - mapping.begin > kMost) continue;
    for (std::size_t at = mapping.begin; at < mapping.end; at += kPiece - key.size()) {
      const iovec here{buffer, kPiece};
      const iovec there{reinterpret_cast<void*>(at), std::min(kPiece, mapping.end - at)};
      const ssize_t got = ::process_vm_readv(pid, &here, 1, &there, 1, 0);
      if (got <= 0) break;
      const void* const hit =
          ::memmem(buffer, static_cast<std::size_t>(got), key.data(), key.size());
      if (!hit) continue;
      found.push_back(where_it_lies(mapping, at, static_cast<const char*>(buffer), hit));
      break;
    }
  }
  ::munmap(buffer, kPiece);
  return found;
}

}  // namespace hv::tests
