// Who carries out what lies in GPUs' memory, from what all members of a set have told. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "runtime/backend/gpu/gpu_plugin.h"

namespace hv::runtime {

struct GpuChoice {
  enum class Way {
    kPlugin,
    kStaged,     // through the host's memory; words: why, to be told once
    kStagedNow,  // this time; a member that has joined has not said what it has
    kRefused,    // nobody: words with what to try
  };
  Way way = Way::kPlugin;
  std::string words;
  int teller = 0;  // the member that tells
};

// The same on every member.
GpuChoice choose_gpu_way(const std::vector<GpuFacts>& facts);

// "2.28.3"
std::string version_words(int version);

// "GPU-6f3c…", as nvidia-smi writes it.
std::string uuid_text(const char (&uuid)[16]);

// What comes from another rank need not end in a zero.
template <std::size_t N>
std::string words_in(const char (&field)[N]) {
  return {field, ::strnlen(field, N)};
}

// Cuts to what the field has room for.
template <std::size_t N>
void put_words(char (&field)[N], const std::string& words) {
  const std::size_t count = words.copy(field, N - 1);
  field[count] = '\0';
}

}  // namespace hv::runtime
