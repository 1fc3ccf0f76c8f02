// Tests of launcher/agent/mpi/pmix_rendezvous: what the agent derives from hvrun-pmix's reports.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/mpi/pmix_rendezvous.h"

#include <doctest/doctest.h>

using namespace hv;
using namespace hv::launcher;

TEST_CASE("until the first fence, ranks that have begun PMIx wait for the others") {
  PmixRendezvous rendezvous({0, 1}, 2);
  CHECK_FALSE(rendezvous.has_waiting_rank());
  rendezvous.begin(0);
  CHECK((rendezvous.has_waiting_rank() && rendezvous.is_waiting(0) && rendezvous.is_beginning()));
  CHECK_FALSE(rendezvous.is_waiting(1));
  rendezvous.begin(1);
  rendezvous.come_to_fence(1);
  CHECK((rendezvous.is_waiting(0) && rendezvous.is_waiting(1) && rendezvous.is_beginning()));
  rendezvous.pass(1);
  CHECK_FALSE(rendezvous.has_waiting_rank());
  CHECK_FALSE(rendezvous.is_beginning());
  rendezvous.come_to_fence(2);
  CHECK(rendezvous.is_waiting(1));
  rendezvous.pass(2);
  CHECK_FALSE(rendezvous.is_waiting(1));
}

TEST_CASE("where all have begun PMIx, a rank that has not reached the first fence waits for none") {
  PmixRendezvous rendezvous({2, 3}, 4);
  rendezvous.begin(2);
  CHECK((rendezvous.is_waiting(2) && !rendezvous.is_waiting(3)));
  rendezvous.begin(3);
  CHECK((!rendezvous.is_waiting(2) && !rendezvous.is_waiting(3)));
  CHECK((rendezvous.has_waiting_rank() && rendezvous.is_beginning()));
  rendezvous.come_to_fence(1);
  CHECK((rendezvous.is_waiting(2) && rendezvous.is_waiting(3)));
}

TEST_CASE("the only rank of a job waits for no other in PMIx") {
  PmixRendezvous rendezvous({0}, 1);
  rendezvous.begin(0);
  CHECK_FALSE((rendezvous.has_waiting_rank() || rendezvous.is_beginning()));
}

TEST_CASE("a rank that ends without PMIx is missed by those that have begun") {
  PmixRendezvous rendezvous({0, 1}, 2);
  CHECK(rendezvous.note_end(1) == wire::MpiEnd::kNotBegun);
  CHECK_FALSE(rendezvous.has_waiting_rank());  // a job of plain programs
  rendezvous.begin(0);
  CHECK((rendezvous.has_waiting_rank() && rendezvous.has_missing_rank()));
}

TEST_CASE("a rank that ends amid PMIx is missed if it was the last of its host") {
  PmixRendezvous rendezvous({0, 1, 2}, 3);
  for (const std::uint32_t rank : {0, 1, 2}) rendezvous.begin(rank);
  rendezvous.come_to_fence(1);
  rendezvous.pass(1);
  CHECK(rendezvous.note_end(0) == wire::MpiEnd::kInOrder);  // the library counts it out
  rendezvous.finalize(1);
  CHECK(rendezvous.note_end(1) == wire::MpiEnd::kInOrder);
  CHECK(rendezvous.note_end(2) == wire::MpiEnd::kNotFinalized);
  CHECK_FALSE(rendezvous.has_missing_rank());
}
