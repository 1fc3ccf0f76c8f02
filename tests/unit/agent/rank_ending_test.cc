// What the end of a job has done to one rank.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ranks/rank_ending.h"

#include <doctest/doctest.h>

#include <set>

using namespace hv;
using namespace hv::launcher;
using namespace std::chrono_literals;
using hv::wire::SigtermUse;
using State = RankEnding::State;

namespace {

ProcessEntry process(pid_t pid) {
  ProcessEntry entry;
  entry.pid = pid;
  return entry;
}

// A wrapper whose two programs have got SIGTERM at 0 s.
struct Wrapped {
  RankEnding ending;
  std::set<pid_t> running{11, 12};

  explicit Wrapped(SigtermUse own_use = SigtermUse::kDefault) {
    ending.begin(own_use, {process(11), process(12)});
  }
  bool advance(Duration at) {
    return ending.advance(
        TimePoint(at), [this](const ProcessEntry& entry) { return running.contains(entry.pid); });
  }
};

}  // namespace

TEST_CASE("a rank that has got SIGTERM itself gets it once") {
  RankEnding ending;
  ending.begin(SigtermUse::kHandled, {});
  CHECK(ending.state() == State::kSignalled);
  CHECK(ending.use() == SigtermUse::kHandled);
  CHECK_FALSE(ending.awaits_program());
  CHECK_FALSE(ending.advance(TimePoint(1h), [](const ProcessEntry&) { return false; }));
}

TEST_CASE("a wrapper gets SIGTERM some time after the last of its programs has ended") {
  Wrapped rank;
  CHECK(rank.ending.use() == SigtermUse::kHandledByDescendant);
  CHECK_FALSE(rank.advance(10s));
  rank.running.erase(11);
  CHECK_FALSE(rank.advance(20s));
  CHECK(rank.ending.state() == State::kProgramSignalled);
  rank.running.clear();
  CHECK_FALSE(rank.advance(30s));
  CHECK(rank.ending.state() == State::kWrapperAlone);
  CHECK_FALSE(rank.advance(30s + RankEnding::kWrapperTime - 1ms));
  CHECK(rank.ending.awaits_program());
  CHECK(rank.advance(30s + RankEnding::kWrapperTime));
  CHECK(rank.ending.state() == State::kSignalled);
  CHECK_FALSE(rank.ending.awaits_program());
  CHECK_FALSE(rank.advance(1h));
}

TEST_CASE("once a wrapper has got SIGTERM, what it does with it counts") {
  Wrapped rank(SigtermUse::kIgnored);
  rank.running.clear();
  CHECK_FALSE(rank.advance(0s));
  CHECK(rank.advance(1s));
  CHECK(rank.ending.use() == SigtermUse::kIgnored);
}

TEST_CASE("a wrapper that ends after its program gets no signal") {
  Wrapped rank;
  rank.running.clear();
  CHECK_FALSE(rank.advance(0s));
  CHECK(rank.ending.end());
  CHECK_FALSE(rank.ending.end());
  CHECK_FALSE(rank.advance(1h));
  CHECK_FALSE(rank.ending.awaits_program());
}

TEST_CASE("a rank that ended before the job's end began gets nothing") {
  RankEnding ending;
  CHECK(ending.end());
  ending.begin(SigtermUse::kHandled, {});
  CHECK(ending.state() == State::kEnded);
  CHECK(ending.use() == SigtermUse::kDefault);
}
