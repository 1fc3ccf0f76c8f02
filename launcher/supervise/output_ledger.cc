// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/output_ledger.h"

#include <algorithm>
#include <utility>

namespace hv::launcher {

OutputLedger::Account& OutputLedger::at(std::uint32_t rank) {
  if (rank >= accounts_.size()) accounts_.resize(rank + 1);
  return accounts_[rank];
}

std::uint32_t OutputLedger::written(std::uint32_t rank, std::size_t bytes) {
  Account& account = at(rank);
  account.unwritten -= std::min<std::uint64_t>(account.unwritten, bytes);
  account.owed += static_cast<std::uint32_t>(bytes);
  return account.owed < kCreditLump ? 0 : std::exchange(account.owed, 0);
}

std::uint64_t OutputLedger::lost_bytes() const {
  std::uint64_t sum = 0;
  for (const Account& account : accounts_) sum += account.unwritten;
  return sum;
}

std::vector<int> OutputLedger::losers() const {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < accounts_.size(); ++rank) {
    if (accounts_[rank].unwritten > 0) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

}  // namespace hv::launcher
