// Tests of what the agent makes of hvrun-pmix's words on its ranks.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/mpi/pmix_meeting.h"

#include <doctest/doctest.h>

using namespace hv;
using namespace hv::launcher;

TEST_CASE("until the first fence who has begun PMIx waits for who has not") {
  PmixMeeting meeting({0, 1}, 2);
  CHECK_FALSE(meeting.is_anybody_waiting());
  meeting.begin(0);
  CHECK((meeting.is_anybody_waiting() && meeting.is_waiting(0) && meeting.is_beginning()));
  CHECK_FALSE(meeting.is_waiting(1));
  meeting.begin(1);
  meeting.come_to_fence(1);
  CHECK((meeting.is_waiting(0) && meeting.is_waiting(1) && meeting.is_beginning()));
  meeting.pass(1);
  CHECK_FALSE(meeting.is_anybody_waiting());
  CHECK_FALSE(meeting.is_beginning());
  meeting.come_to_fence(2);
  CHECK(meeting.is_waiting(1));
  meeting.pass(2);
  CHECK_FALSE(meeting.is_waiting(1));
}

TEST_CASE(
    "where all have begun PMIx, whoever has yet to come to the first fence waits for nobody") {
  PmixMeeting meeting({2, 3}, 4);
  meeting.begin(2);
  CHECK((meeting.is_waiting(2) && !meeting.is_waiting(3)));
  meeting.begin(3);
  CHECK((!meeting.is_waiting(2) && !meeting.is_waiting(3)));
  CHECK((meeting.is_anybody_waiting() && meeting.is_beginning()));
  meeting.come_to_fence(1);
  CHECK((meeting.is_waiting(2) && meeting.is_waiting(3)));
}

TEST_CASE("a rank that is the only one of its job waits for nobody in PMIx") {
  PmixMeeting meeting({0}, 1);
  meeting.begin(0);
  CHECK_FALSE((meeting.is_anybody_waiting() || meeting.is_beginning()));
}

TEST_CASE("a rank that ends without PMIx is missed by those that have begun") {
  PmixMeeting meeting({0, 1}, 2);
  CHECK(meeting.end(1) == wire::MpiEnd::kNotBegun);
  CHECK_FALSE(meeting.is_anybody_waiting());  // a job of plain programs
  meeting.begin(0);
  CHECK((meeting.is_anybody_waiting() && meeting.is_anybody_missing()));
}

TEST_CASE("a rank that ends amid PMIx is missed if it was the last of its host") {
  PmixMeeting meeting({0, 1, 2}, 3);
  for (const std::uint32_t rank : {0, 1, 2}) meeting.begin(rank);
  meeting.come_to_fence(1);
  meeting.pass(1);
  CHECK(meeting.end(0) == wire::MpiEnd::kInOrder);  // the library counts it out
  meeting.finalize(1);
  CHECK(meeting.end(1) == wire::MpiEnd::kInOrder);
  CHECK(meeting.end(2) == wire::MpiEnd::kNotFinalized);
  CHECK_FALSE(meeting.is_anybody_missing());
}
