// Tests of launcher/output/output_ledger.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/output_ledger.h"

#include <doctest/doctest.h>

using hv::launcher::OutputLedger;

TEST_CASE("credit comes back in lumps, and all of it") {
  OutputLedger ledger;
  ledger.arrived(3, 100000);
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
  ledger.arrived(0, 10);
  ledger.arrived(2, 7);
  ledger.arrived(4, 1);
  (void)ledger.written(0, 10);
  (void)ledger.written(2, 3);
  CHECK(ledger.lost_bytes() == 5);
  CHECK(ledger.losers() == std::vector<int>{2, 4});
  CHECK(ledger.lost_words() ==
        "warning: 5 bytes that ranks 2,4 wrote are lost: nobody read them in time");
}
