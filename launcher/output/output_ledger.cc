// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/output_ledger.h"

#include <algorithm>
#include <utility>

#include "src/base/text.h"

namespace hv::launcher {

std::uint32_t OutputLedger::first_credit(std::size_t ranks) {
  constexpr std::size_t kInAll = 64u << 20, kLeast = 64u << 10, kMost = 1u << 20;
  return static_cast<std::uint32_t>(
      std::clamp(kInAll / std::max<std::size_t>(ranks, 1), kLeast, kMost));
}

bool OutputLedger::add_arrived(std::uint32_t rank, std::size_t bytes, std::uint32_t credit) {
  Account& account = accounts_[rank];
  if (account.unwritten + account.owed + bytes > credit) return false;
  account.unwritten += bytes;
  return true;
}

std::uint32_t OutputLedger::written(std::uint32_t rank, std::size_t bytes) {
  Account& account = accounts_[rank];
  account.unwritten -= std::min<std::uint64_t>(account.unwritten, bytes);
  account.owed += static_cast<std::uint32_t>(bytes);
  return account.owed < kCreditLump ? 0 : std::exchange(account.owed, 0);
}

std::uint64_t OutputLedger::lost_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [rank, account] : accounts_) sum += account.unwritten;
  return sum;
}

std::vector<int> OutputLedger::losers() const {
  std::vector<int> ranks;
  for (const auto& [rank, account] : accounts_)
    if (account.unwritten > 0) ranks.push_back(static_cast<int>(rank));
  return ranks;
}

std::string OutputLedger::lost_words() const {
  const std::uint64_t lost = lost_bytes();
  if (lost == 0) return {};
  return "warning: " + std::to_string(lost) + " bytes that " + ranges_of("rank", losers()) +
         " wrote are lost: nobody read them in time";
}

}  // namespace hv::launcher
