// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/gpu/gpu_choice.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace hv::runtime {
namespace {

// What comes from another rank need not end in a zero.
template <std::size_t N>
std::string words_in(const char (&field)[N]) {
  return {field, ::strnlen(field, N)};
}

// Of the first two members that use the same one without leave; empty: there are none.
std::string shared_gpu(const std::vector<GpuFacts>& facts) {
  std::map<std::string, std::size_t> users;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const GpuFacts& one = facts[i];
    const auto [user, is_new] = users.try_emplace(uuid_text(one.gpu), i);
    if (is_new || (one.shares && facts[user->second].shares)) continue;
    return "ranks " + std::to_string(user->second) + " and " + std::to_string(i) +
           " of the process set use the same GPU, " + uuid_text(one.gpu) + " on host " +
           words_in(one.host);
  }
  return {};
}

}  // namespace

std::string version_words(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::string uuid_text(const char (&uuid)[16]) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(uuid[i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

GpuChoice choose_gpu_way(const std::vector<GpuFacts>& facts) {
  if (std::any_of(facts.begin(), facts.end(), [](const GpuFacts& one) { return one.is_absent; }))
    return {GpuChoice::Way::kStagedNow, {}, 0};
  const auto unusable =
      std::find_if(facts.begin(), facts.end(), [](const GpuFacts& one) { return !one.is_usable; });
  if (unusable != facts.end()) {
    return {GpuChoice::Way::kStaged, words_in(unusable->words),
            static_cast<int>(unusable - facts.begin())};
  }
  if (const std::string shared = shared_gpu(facts); !shared.empty()) {
    return {GpuChoice::Way::kRefused,
            shared +
                "; try: a GPU for each rank (torch.cuda.set_device(hvd.local_rank())), or "
                "HVRUN_BACKEND=native, which goes through the host's memory"};
  }
  const auto other = std::find_if(facts.begin(), facts.end(), [&](const GpuFacts& one) {
    return one.version != facts.front().version;
  });
  if (other != facts.end()) {
    const auto member = static_cast<int>(other - facts.begin());
    return {GpuChoice::Way::kStaged,
            "NCCL is " + version_words(facts.front().version) + " on rank 0 and " +
                version_words(other->version) + " on rank " + std::to_string(member) +
                " of the process set; try: the same on all",
            member};
  }
  return {};
}

}  // namespace hv::runtime
