// Who watches whom, and when silence has lasted too long.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/peer_watch.h"

#include <doctest/doctest.h>

#include <set>

#include "runtime/transport/placement.h"

namespace hv::runtime {
namespace {

using std::chrono::milliseconds;

// Signs of life by hand.
struct FakePulse : Pulse {
  void send_beat(int peer) override { spoken.insert(peer); }
  bool take_heard(int peer) override { return heard.erase(peer) > 0; }
  std::set<int> spoken, heard;
};

std::vector<int> all_of(const std::vector<std::vector<int>>& hosts) {
  std::vector<int> host_of;
  for (std::size_t host = 0; host < hosts.size(); ++host)
    for (const int rank : hosts[host]) {
      host_of.resize(std::max(host_of.size(), static_cast<std::size_t>(rank) + 1));
      host_of[static_cast<std::size_t>(rank)] = static_cast<int>(host);
    }
  return host_of;
}

}  // namespace

TEST_CASE("every rank is watched by one rank of each other host, to which it speaks") {
  const std::vector<std::vector<std::vector<int>>> jobs = {
      {{0}, {1}}, {{0, 1}, {2, 3}}, {{0, 2, 4}, {1}, {3, 5, 6, 7, 8}}, {{0, 1, 2}, {3, 4}}};
  for (const auto& hosts : jobs) {
    const std::vector<int> host_of = all_of(hosts);
    const int size = static_cast<int>(host_of.size());
    std::multiset<std::pair<int, int>> speaks, listens;  // (speaker, listener)
    for (int rank = 0; rank < size; ++rank) {
      const WatchPartners partners = watch_partners(make_topology(rank, host_of));
      for (const int to : partners.speak_to) speaks.emplace(rank, to);
      for (const int from : partners.listen_to) listens.emplace(from, rank);
    }
    CHECK(speaks == listens);
    CHECK(speaks.size() == static_cast<std::size_t>(size) * (hosts.size() - 1));
    for (const auto& [from, to] : speaks)
      CHECK(host_of[static_cast<std::size_t>(from)] != host_of[static_cast<std::size_t>(to)]);
  }
}

TEST_CASE("a peer is silent for too long once, after more beats than the timeout has") {
  PeerWatch watch(make_topology(0, {0, 0, 1}), milliseconds(1000), milliseconds(0));
  CHECK(watch.beat() == milliseconds(100));
  FakePulse local, remote;
  for (int beat = 0; beat < 50; ++beat) {
    local.heard.insert(1);
    remote.heard.insert(2);
    REQUIRE(watch.tick(local, &remote).empty());
  }
  CHECK(local.spoken == std::set<int>{1});
  CHECK(remote.spoken == std::set<int>{2});
  std::vector<std::vector<int>> silent;
  for (int beat = 0; beat < 20; ++beat) {
    local.heard.insert(1);
    silent.push_back(watch.tick(local, &remote));
  }
  for (std::size_t beat = 0; beat < silent.size(); ++beat)
    CHECK(silent[beat] == (beat == 10 ? std::vector<int>{2} : std::vector<int>{}));
  CHECK(watch.words().find("1 s (HVRUN_PEER_TIMEOUT)") != std::string::npos);
}

TEST_CASE("a sign of life begins the count anew") {
  PeerWatch watch(make_topology(0, {0, 0}), milliseconds(1000), milliseconds(0));
  FakePulse local;
  for (int beat = 0; beat < 100; ++beat) {
    if (beat % 10 == 0) local.heard.insert(1);
    REQUIRE(watch.tick(local, nullptr).empty());
  }
}

TEST_CASE("silence that is allowed does not count, and begins anew when it is over") {
  PeerWatch watch(make_topology(0, {0, 1}), milliseconds(1000), milliseconds(0));
  FakePulse local, remote;
  for (int beat = 0; beat < 9; ++beat) REQUIRE(watch.tick(local, &remote).empty());
  watch.allow_silence(true);
  remote.spoken.clear();
  for (int beat = 0; beat < 50; ++beat) REQUIRE(watch.tick(local, &remote).empty());
  CHECK(remote.spoken == std::set<int>{1});  // this rank gives its own signs all the same
  watch.allow_silence(false);
  for (int beat = 0; beat < 10; ++beat) REQUIRE(watch.tick(local, &remote).empty());
  CHECK(watch.tick(local, &remote) == std::vector<int>{1});
}

TEST_CASE("a peer that is still joining has its time besides") {
  PeerWatch watch(make_topology(0, {0, 0}), milliseconds(1000), milliseconds(3000));
  FakePulse local;
  for (int beat = 0; beat < 40; ++beat) REQUIRE(watch.tick(local, nullptr).empty());
  CHECK(watch.tick(local, nullptr) == std::vector<int>{1});
}

TEST_CASE("without a timeout there are no beats and nobody is watched") {
  PeerWatch watch(make_topology(0, {0, 0, 1}), milliseconds(0), milliseconds(0));
  FakePulse local, remote;
  CHECK(watch.beat() == milliseconds(0));
  for (int i = 0; i < 100; ++i) CHECK(watch.tick(local, &remote).empty());
  CHECK(local.spoken.empty());
  CHECK(remote.spoken.empty());
}

}  // namespace hv::runtime
