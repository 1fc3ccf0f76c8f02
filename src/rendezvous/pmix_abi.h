// What of PMIx's interface (versions 2 to 5) is called: the layout of its types, so that no header
// of it is needed. A unit test compares these with pmix_common.h where that is installed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace hv::pmix {

constexpr int kSuccess = 0;
constexpr std::uint32_t kAnyRank = UINT32_MAX - 1;  // PMIX_RANK_WILDCARD
constexpr std::uint8_t kGlobal = 3;                 // PMIX_GLOBAL
constexpr std::uint16_t kBool = 1, kUint32 = 14, kByteObject = 27;
inline constexpr char kJobSize[] = "pmix.job.size";
inline constexpr char kCollect[] = "pmix.collect";

struct Process {
  char space[256];
  std::uint32_t rank;
};
struct Bytes {
  char* bytes;
  std::size_t size;
};
struct Value {
  std::uint16_t type;
  union {
    bool flag;
    std::uint16_t uint16;
    std::uint32_t uint32;
    char* text;
    void* pointer;
    Bytes object;
    void* largest[3];
  } data;
};
struct Info {
  char key[512];
  std::uint32_t flags;
  Value value;
};

using Done = void (*)(int status, void* context);

}  // namespace hv::pmix
