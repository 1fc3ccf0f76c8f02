// Several connections between two hosts' ranks: the same results, and rank 0 says how many.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/ranks/collective_checks.h"

namespace hv::runtime {
namespace {

// Established TCP connections of this process; each end counts.
int tcp_ends() {
  int count = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
        (peer.ss_family == AF_INET || peer.ss_family == AF_INET6))
      ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("collectives over several streams give what they give over one") {
  for (const JobShape& shape : {JobShape{1, 1}, JobShape{2, 1}, JobShape{1, 1, 1}}) {
    CAPTURE(name_of(shape));
    RunOptions options;
    options.config.streams = 3;
    run_ranks(shape, options, [](RankContext& context) {
      for (std::uint64_t seed = 0; seed < 12; ++seed) {
        context.at("program " + std::to_string(seed));
        run_and_verify(context, make_random(context, seed));
      }
    });
  }
}

TEST_CASE("two ranks have as many connections as there are streams") {
  const int before = tcp_ends();
  RunOptions options;
  options.config.streams = 4;
  run_ranks({1, 1}, options, [before](RankContext& context) {
    run_and_verify(context, make_random(context, 1));
    if (context.rank == 0) {
      const int added = tcp_ends() - before;
      require(added == 8, std::to_string(added) + " ends of connections, not 8");
    }
    run_and_verify(context, make_random(context, 2));  // nobody closes before rank 0 has counted
  });
}

}  // namespace hv::runtime
