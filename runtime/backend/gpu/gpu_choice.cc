// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/gpu/gpu_choice.h"

#include <algorithm>
#include <map>
#include <utility>

namespace hv::runtime {
namespace {

std::string rank_of(const GpuFacts& facts) { return "rank " + std::to_string(facts.rank); }

// Of two that use the same one, and both would have to be allowed to.
std::string sharing_words(const GpuFacts& one, const GpuFacts& other) {
  const std::string words = "ranks " + std::to_string(one.rank) + " and " +
                            std::to_string(other.rank) + " use the same GPU, " +
                            uuid_text(other.gpu) + " on host " + words_in(other.host);
  const std::string own =
      "; try: a GPU for each rank (torch.cuda.set_device(hvd.local_rank())), or "
      "HVRUN_BACKEND=native, which goes through the host's memory";
  if (!one.asks_to_share && !other.asks_to_share)
    return words + own +
           ", or HVRUN_SHARE_GPU=1 on all ranks, with which they take turns on it (NCCL 2.30 and "
           "newer)";
  const GpuFacts& cause = one.shares ? other : one;
  return words + "; HVRUN_SHARE_GPU=1 has no effect, for " +
         (cause.asks_to_share ? "NCCL is " + version_words(cause.version) + " on " +
                                    rank_of(cause) + " and can do it from 2.30 on"
                              : rank_of(cause) + " has not set it") +
         own;
}

// The first two members that have one `key` without leave to share it; nullptr: there are none.
template <class Key>
std::pair<const GpuFacts*, const GpuFacts*> sharers(const std::vector<GpuFacts>& facts, Key key) {
  std::map<std::string, const GpuFacts*> users;
  for (const GpuFacts& one : facts) {
    const auto [user, is_new] = users.try_emplace(key(one), &one);
    if (!is_new && !(one.shares && user->second->shares)) return {user->second, &one};
  }
  return {nullptr, nullptr};
}

// NCCL tells GPUs apart by their cards.
std::string mig_words(const GpuFacts& one, const GpuFacts& other) {
  return "ranks " + std::to_string(one.rank) + " and " + std::to_string(other.rank) +
         " have MIG devices of one GPU, " + uuid_text(one.gpu) + " and " + uuid_text(other.gpu) +
         " on host " + words_in(other.host) +
         ", which NCCL does not connect; try: a GPU for each rank, or devices of several";
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
  const auto [user, other_user] =
      sharers(facts, [](const GpuFacts& one) { return uuid_text(one.gpu); });
  if (user != nullptr) return {GpuChoice::Way::kRefused, sharing_words(*user, *other_user)};
  const auto [part, rest] = sharers(facts, [](const GpuFacts& one) { return words_in(one.card); });
  if (part != nullptr)
    return {GpuChoice::Way::kStaged, mig_words(*part, *rest),
            static_cast<int>(rest - facts.data())};
  const auto other = std::find_if(facts.begin(), facts.end(), [&](const GpuFacts& one) {
    return one.version != facts.front().version;
  });
  if (other != facts.end()) {
    const auto member = static_cast<int>(other - facts.begin());
    return {GpuChoice::Way::kStaged,
            "NCCL is " + version_words(facts.front().version) + " on " + rank_of(facts.front()) +
                " and " + version_words(other->version) + " on " + rank_of(*other) +
                "; try: the same on all ranks",
            member};
  }
  return {};
}

}  // namespace hv::runtime
