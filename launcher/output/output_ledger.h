// OutputLedger: what each rank wrote, what of it has been written on, and what is owed for it.
// Pure.
// SPDX-License-Identifier: Apache-2.0
//
// The agent sends as much of a rank's output as it has credit for; credit comes back as its bytes
// are written. What has come and was never written is lost, and is told at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hv::launcher {

class OutputLedger {
 public:
  // Credit goes back in lumps of at least this, so that a line does not cost a message.
  static constexpr std::uint32_t kCreditLump = 32 << 10;

  // What each of so many ranks may have on its way, and so may send before the first credit.
  static std::uint32_t first_credit(std::size_t ranks);
  // The bytes of an unfinished line that the console may hold back for each stream of a rank. Both
  // streams and the credit that is owed are less than the first credit: the rank can go on.
  static std::size_t most_held(std::size_t ranks) { return first_credit(ranks) / 4; }

  // What ranks may send once nobody reads their output any more: all that they still have.
  static constexpr std::uint32_t kDiscardCredit = 1u << 30;
  // False, without effect: more than the credit that the rank was given.
  [[nodiscard]] bool add_arrived(std::uint32_t rank, std::size_t bytes, std::uint32_t credit);
  // The credit to give back now; 0: not yet.
  std::uint32_t written(std::uint32_t rank, std::size_t bytes);
  std::uint64_t lost_bytes() const;
  // Those with lost bytes, ascending.
  std::vector<int> losers() const;
  // The same for people; empty: nothing is lost.
  std::string lost_words() const;

 private:
  struct Account {
    std::uint64_t unwritten = 0;
    std::uint32_t owed = 0;
  };

  std::map<std::uint32_t, Account> accounts_;  // by rank
};

}  // namespace hv::launcher
