// Tests of the search for the cause.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/failure_policy.h"

#include <doctest/doctest.h>

#include <csignal>

using namespace hv::launcher;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t kMs = 1000000;
const hv::TimePoint kStart{};

RankEnd exited_rank(int rank, int code, std::int64_t ms) {
  return {rank, {false, code, false}, false, ms * kMs};
}
RankEnd killed_rank(int rank, int signal, std::int64_t ms, bool ours = false) {
  return {rank, {true, signal, false}, ours, ms * kMs};
}

}  // namespace

TEST_CASE("ranks that end well are no failure") {
  FailurePolicy policy(2);
  policy.rank_ended(exited_rank(0, 0, 1), kStart);
  policy.rank_ended(exited_rank(1, 0, 2), kStart);
  CHECK_FALSE(policy.failed());
  CHECK_FALSE(policy.decided(kStart + 10s));
}

TEST_CASE("a killed rank that is reaped late is named, not the victim that exited first") {
  FailurePolicy policy(3);
  policy.rank_ended(exited_rank(1, 1, 100), kStart);
  CHECK_FALSE(policy.decided(kStart + 100ms));
  // Rank 0 still hands back its memory: agents see it exiting.
  policy.exiting_ranks({0}, kStart + 200ms);
  CHECK_FALSE(policy.decided(kStart + 300ms));
  CHECK_FALSE(policy.decided(kStart + 2s));
  policy.rank_ended(killed_rank(0, SIGKILL, 400), kStart + 400ms);
  policy.exiting_ranks({}, kStart + 450ms);
  REQUIRE(policy.decided(kStart + 460ms));
  const FailureCause cause = policy.cause();
  CHECK(cause.rank == 0);
  CHECK(cause.exit_code == 137);
  CHECK(cause.consequences == std::vector<int>{1});
}

TEST_CASE("an answer from before the signal was delivered proves nothing") {
  FailurePolicy policy(3);
  policy.rank_ended(exited_rank(1, 1, 0), kStart);
  policy.exiting_ranks({}, kStart + 10ms);
  CHECK_FALSE(policy.decided(kStart + 300ms));
  policy.exiting_ranks({}, kStart + 260ms);
  CHECK(policy.decided(kStart + 300ms));
}

TEST_CASE("at least 250 ms and at most 5 s are spent on the search") {
  FailurePolicy policy(3);
  policy.rank_ended(exited_rank(1, 7, 0), kStart);
  policy.exiting_ranks({}, kStart + 200ms);
  CHECK_FALSE(policy.decided(kStart + 249ms));
  policy.exiting_ranks({0}, kStart + 300ms);
  CHECK_FALSE(policy.decided(kStart + 4900ms));
  CHECK(policy.decided(kStart + 5s));
}

TEST_CASE("a rank that ended well and is waited for by MPI is the cause, unless another failed") {
  FailurePolicy policy(3);
  policy.rank_ended(exited_rank(1, 0, 0), kStart);
  CHECK_FALSE(policy.failed());
  policy.missed_in_mpi(1, "MPI_Finalize", kStart);
  policy.missed_in_mpi(2, "MPI_Init", kStart);
  policy.exiting_ranks({}, kStart + 260ms);
  REQUIRE(policy.decided(kStart + 300ms));
  CHECK(policy.cause().rank == 1);
  CHECK(policy.cause().awaited_in_call == "MPI_Finalize");
  CHECK(policy.cause().exit_code == 1);
  policy.rank_ended(exited_rank(0, 3, 100), kStart + 300ms);
  CHECK(policy.cause().rank == 0);
  CHECK(policy.cause().exit_code == 3);
}

TEST_CASE("when every rank has ended there is nothing to wait for") {
  FailurePolicy policy(2);
  policy.rank_ended(exited_rank(1, 7, 5), kStart);
  policy.rank_ended(exited_rank(0, 3, 4), kStart + 1ms);
  CHECK(policy.decided(kStart + 1ms));
  CHECK(policy.cause().rank == 0);  // the earlier one by corrected time
  CHECK(policy.cause().exit_code == 3);
}

TEST_CASE("a rank that peers name as lost is waited for and named, even when it exited with 0") {
  FailurePolicy policy(3);
  policy.rank_ended(exited_rank(1, 1, 10), kStart);
  policy.named_lost(2, "is gone", 0);
  policy.exiting_ranks({}, kStart + 300ms);
  CHECK_FALSE(policy.decided(kStart + 1s));
  policy.rank_ended(exited_rank(2, 0, 5), kStart + 1s);
  CHECK(policy.decided(kStart + 1s));
  CHECK(policy.cause().rank == 2);
  CHECK(policy.cause().exit_code == 1);
}

namespace {

RankEnd unannounced(RankEnd end) {
  end.left_unannounced = true;
  return end;
}
RankEnd left(int rank, std::int64_t ms) { return unannounced(exited_rank(rank, 0, ms)); }
RankEnd never_joined(int rank, int code, std::int64_t ms) {
  RankEnd end = exited_rank(rank, code, ms);
  end.never_joined = true;
  return end;
}

}  // namespace

TEST_CASE("a rank that left with 0 without a LeaveNotice is reported next to a later cause") {
  FailurePolicy policy(3);
  policy.rank_ended(left(2, 5), kStart);
  policy.rank_ended(left(1, 4), kStart);
  CHECK_FALSE(policy.failed());
  policy.rank_ended(unannounced(exited_rank(0, 3, 10)), kStart);
  CHECK(policy.cause().rank == 0);
  CHECK(policy.cause().left_before == 1);
  CHECK(policy.cause().exit_code == 3);
  CHECK(policy.cause().consequences.empty());
}

TEST_CASE(
    "a rank that leaves after the cause, or before a cause that needed no rank, is not reported") {
  FailurePolicy after(2), in_order(2), crash(2), plain(2);
  after.rank_ended(unannounced(exited_rank(0, 3, 10)), kStart);
  after.rank_ended(left(1, 11), kStart);
  in_order.rank_ended(left(1, 4), kStart);
  in_order.rank_ended(exited_rank(0, 3, 10), kStart);
  crash.rank_ended(left(1, 4), kStart);
  crash.rank_ended(unannounced(killed_rank(0, SIGSEGV, 10)), kStart);
  plain.rank_ended(never_joined(1, 0, 4), kStart);
  plain.rank_ended(never_joined(0, 1, 10), kStart);
  for (FailurePolicy* policy : {&after, &in_order, &crash, &plain}) {
    CHECK(policy->cause().rank == 0);
    CHECK_FALSE(policy->cause().left_before);
  }
}

namespace {

RankEnd after_in_order(RankEnd end, std::int64_t ms) {
  end.left_ns = ms * 1'000'000;
  return end;
}

}  // namespace

TEST_CASE(
    "a rank that leaves in order and fails is the cause, whichever rank fails first because of "
    "it") {
  FailurePolicy policy(3);
  policy.rank_ended(unannounced(exited_rank(0, 1, 10)), kStart);
  policy.rank_ended(unannounced(exited_rank(2, 1, 11)), kStart);
  policy.rank_ended(after_in_order(exited_rank(1, 3, 300), 4), kStart);
  CHECK(policy.cause().rank == 1);
  CHECK(policy.cause().exit_code == 3);
  CHECK(policy.cause().consequences == std::vector{0, 2});
}

TEST_CASE(
    "a LeaveNotice after the failure, over a lost peer, or among ranks that have left, is no "
    "cause") {
  FailurePolicy later(2), loser(2), all_left(2);
  later.rank_ended(unannounced(exited_rank(0, 1, 10)), kStart);
  later.rank_ended(after_in_order(exited_rank(1, 3, 30), 11), kStart);
  loser.rank_ended(after_in_order(exited_rank(1, 3, 8), 4), kStart);
  loser.named_lost(0, "closed the connection", 1);
  loser.rank_ended(unannounced(exited_rank(0, 1, 10)), kStart);
  all_left.rank_ended(after_in_order(exited_rank(0, 1, 10), 5), kStart);
  all_left.rank_ended(after_in_order(exited_rank(1, 3, 30), 4), kStart);
  for (const FailurePolicy* policy : {&later, &loser, &all_left}) {
    CHECK(policy->cause().rank == 0);
    CHECK(policy->cause().exit_code == 1);
  }
}

TEST_CASE(
    "a rank that has left and ended with 0 is reported next to the rank that failed in the job") {
  FailurePolicy policy(2);
  policy.rank_ended(unannounced(exited_rank(0, 1, 10)), kStart);
  policy.rank_ended(after_in_order(exited_rank(1, 0, 300), 4), kStart);
  CHECK(policy.cause().rank == 0);
  CHECK(policy.cause().left_before == 1);
}

TEST_CASE("within the error of clocks the first report was the first end") {
  FailurePolicy close(2), far(2);
  close.rank_ended(left(1, 110), kStart);
  close.rank_ended(unannounced(exited_rank(0, 3, 10)), kStart);
  CHECK(close.cause().left_before == 1);
  far.rank_ended(left(1, 1010), kStart);
  far.rank_ended(unannounced(exited_rank(0, 3, 10)), kStart);
  CHECK_FALSE(far.cause().left_before);
}

TEST_CASE("a rank that aborts after another left is the cause, which may have aborted over it") {
  FailurePolicy policy(2);
  policy.rank_ended(left(1, 4), kStart);
  policy.rank_ended(unannounced(killed_rank(0, SIGABRT, 10)), kStart);
  CHECK(policy.cause().rank == 0);
  CHECK(policy.cause().left_before == 1);
  CHECK(policy.cause().exit_code == 128 + SIGABRT);
}

TEST_CASE("a rank that ended without joining may have failed the ranks that joined") {
  FailurePolicy policy(2);
  policy.rank_ended(never_joined(1, 0, 4), kStart);
  policy.rank_ended(unannounced(exited_rank(0, 1, 10)), kStart);
  CHECK(policy.cause().rank == 0);
  CHECK(policy.cause().left_before == 1);
}

TEST_CASE("a rank that left is no cause because a peer saw its connection end first") {
  FailurePolicy policy(2);
  policy.rank_ended(left(1, 4), kStart);
  policy.named_lost(1, "closed the connection", 0);
  policy.rank_ended(unannounced(exited_rank(0, 3, 10)), kStart);
  CHECK(policy.cause().rank == 0);
  CHECK(policy.cause().left_before == 1);
}

TEST_CASE("a rank that ends with 0 over another's failure is not its reason, nor the cause") {
  FailurePolicy policy(3);
  policy.rank_ended(left(0, 10), kStart);
  policy.rank_ended(unannounced(killed_rank(1, SIGKILL, 9)), kStart);
  policy.rank_ended(unannounced(exited_rank(2, 1, 11)), kStart);
  CHECK(policy.cause().rank == 1);
  CHECK_FALSE(policy.cause().left_before);
}

TEST_CASE("a stopped rank that peers name is the cause, whichever rank left meanwhile") {
  FailurePolicy policy(3);
  policy.rank_ended(left(0, 4), kStart);
  policy.named_lost(1, "gave no sign of life for 3 s", 0);
  policy.stopped_ranks({1});
  policy.rank_ended(unannounced(exited_rank(2, 1, 10)), kStart);
  CHECK(policy.cause().rank == 1);
  CHECK(policy.cause().is_stopped);
  CHECK_FALSE(policy.cause().left_before);
  CHECK(policy.cause().exit_code == 1);
}

TEST_CASE("a stopped rank that peers name is the cause, and not waited for") {
  FailurePolicy policy(3);
  policy.named_lost(1, "gave no sign of life for 3 s", 0);
  policy.rank_ended(exited_rank(2, 1, 10), kStart);
  policy.exiting_ranks({}, kStart + 200ms);
  CHECK_FALSE(policy.decided(kStart + 300ms));
  policy.stopped_ranks({1});
  CHECK(policy.decided(kStart + 300ms));
  const FailureCause cause = policy.cause();
  CHECK(cause.rank == 1);
  CHECK(cause.is_stopped);
  CHECK(cause.reason == "gave no sign of life for 3 s");
  CHECK(cause.exit_code == 1);
}

TEST_CASE("a rank that peers name and that never ends is the cause after 5 s") {
  FailurePolicy policy(2);
  policy.named_lost(1, "was silent", 0);
  policy.rank_ended(exited_rank(0, 4, 10), kStart);
  policy.exiting_ranks({}, kStart + 300ms);
  CHECK_FALSE(policy.decided(kStart + 4900ms));
  REQUIRE(policy.decided(kStart + 5s));
  CHECK(policy.cause().rank == 1);
  CHECK_FALSE(policy.cause().is_stopped);
  CHECK(policy.cause().exit_code == 4);
}

TEST_CASE("a rank that aborted over a lost peer yields to that peer") {
  FailurePolicy policy(2);
  policy.rank_ended(killed_rank(0, SIGABRT, 20), kStart);
  policy.named_lost(1, "is gone", 0);
  policy.rank_ended(exited_rank(1, 9, 10), kStart);
  CHECK(policy.cause().rank == 1);
}

TEST_CASE("a real crash beats an abort, and an abort beats an exit code") {
  FailurePolicy policy(3);
  policy.rank_ended(exited_rank(0, 1, 1), kStart);
  policy.rank_ended(killed_rank(1, SIGABRT, 2), kStart);
  CHECK(policy.cause().rank == 1);
  policy.rank_ended(killed_rank(2, SIGSEGV, 3), kStart);
  CHECK(policy.cause().rank == 2);
}

TEST_CASE("a signal that hvrun itself sent is never the cause") {
  FailurePolicy policy(2);
  policy.rank_ended(killed_rank(0, SIGTERM, 1, true), kStart);
  policy.rank_ended(exited_rank(1, 4, 2), kStart);
  CHECK(policy.cause().rank == 1);
}

TEST_CASE("a rank that its agent ended unrequested is no failure until its host is lost") {
  FailurePolicy policy(2);
  policy.rank_ended(killed_rank(0, SIGTERM, 1, true), kStart);
  CHECK_FALSE(policy.failed());
  policy.host_lost(0, "its guard was killed", {0}, kStart + 2s);
  CHECK(policy.failed());
  CHECK(policy.cause().exit_code == 5);
}

TEST_CASE("a lost host comes first, and its ranks are waited for no longer") {
  FailurePolicy policy(4);
  policy.rank_ended(exited_rank(0, 1, 1), kStart);
  policy.rank_ended(exited_rank(1, 1, 1), kStart);
  policy.host_lost(1, "silent", {2, 3}, kStart + 5ms);
  REQUIRE(policy.decided(kStart + 5ms));
  CHECK(policy.cause().host == 1);
  CHECK(policy.cause().exit_code == 5);
  CHECK(policy.cause().consequences == std::vector<int>{0, 1});
}
