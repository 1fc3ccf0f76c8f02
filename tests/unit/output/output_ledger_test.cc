// Tests of launcher/output/output_ledger.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/output_ledger.h"

#include <doctest/doctest.h>

using hv::launcher::OutputLedger;

namespace {

constexpr std::uint32_t kCredit = 1 << 20;

}  // namespace

TEST_CASE("credit comes back in lumps, and all of it") {
  OutputLedger ledger;
  CHECK(ledger.add_arrived(3, 100000, kCredit));
  CHECK(ledger.written(3, OutputLedger::kCreditLump - 1) == 0);
  CHECK(ledger.written(3, 2) == OutputLedger::kCreditLump + 1);
  CHECK(ledger.written(3, 5) == 0);
  CHECK(ledger.written(3, OutputLedger::kCreditLump) == OutputLedger::kCreditLump + 5);
}

TEST_CASE("ranks do not share credit") {
  OutputLedger ledger;
  CHECK(ledger.written(0, OutputLedger::kCreditLump - 1) == 0);
  CHECK(ledger.written(1, 1) == 0);
  CHECK(ledger.written(0, 1) == OutputLedger::kCreditLump);
}

TEST_CASE("what arrived and was never written is lost, by rank and in bytes") {
  OutputLedger ledger;
  CHECK(ledger.lost_bytes() == 0);
  CHECK(ledger.losers().empty());
  CHECK(ledger.lost_words() == "");
  CHECK(ledger.add_arrived(0, 10, kCredit));
  CHECK(ledger.add_arrived(2, 7, kCredit));
  CHECK(ledger.add_arrived(4, 1, kCredit));
  (void)ledger.written(0, 10);
  (void)ledger.written(2, 3);
  CHECK(ledger.lost_bytes() == 5);
  CHECK(ledger.losers() == std::vector<int>{2, 4});
  CHECK(ledger.lost_words() ==
        "warning: 5 bytes that ranks 2,4 wrote are lost: nobody read them in time");
}

TEST_CASE("a rank's output beyond its credit is refused, and counts no more") {
  constexpr std::uint32_t kLump = OutputLedger::kCreditLump;
  OutputLedger ledger;
  CHECK(ledger.add_arrived(0, kCredit, kCredit));
  CHECK_FALSE(ledger.add_arrived(0, 1, kCredit));
  CHECK(ledger.add_arrived(1, 1, kCredit));
  CHECK(ledger.written(0, kLump - 1) == 0);
  CHECK_FALSE(ledger.add_arrived(0, 1, kCredit));  // written, but its credit has not gone back
  CHECK(ledger.written(0, 1) == kLump);
  CHECK(ledger.add_arrived(0, kLump, kCredit));
  CHECK_FALSE(ledger.add_arrived(0, 1, kCredit));
}

TEST_CASE("all ranks' credit is 64 MiB, but each has 64 KiB to 1 MiB") {
  CHECK(OutputLedger::first_credit(1) == 1 << 20);
  CHECK(OutputLedger::first_credit(64) == 1 << 20);
  CHECK(OutputLedger::first_credit(256) == 1 << 18);
  CHECK(OutputLedger::first_credit(1 << 20) == 1 << 16);
}
