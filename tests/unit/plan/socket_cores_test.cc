// Tests of threads_of_sockets() of launcher/plan/socket_cores.h.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/socket_cores.h"

#include <doctest/doctest.h>

#include "src/base/error.h"

using namespace hv::launcher;

namespace {

// Two packages with two NUMA nodes each, two cores a node, two threads a core (i and i + 8).
std::vector<CoreFacts> machine() {
  std::vector<CoreFacts> cores;
  for (int core = 0; core < 8; ++core) cores.push_back({core / 2, {core, core + 8}, core / 4 * 3});
  return cores;
}

std::vector<int> threads(const std::vector<SocketCores>& wanted) {
  return threads_of_sockets(wanted, machine(), 5, "a");
}

std::string socket_refusal(const std::vector<SocketCores>& wanted) {
  try {
    threads(wanted);
  } catch (const hv::Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a socket's cores are counted over its NUMA nodes, with all of their threads") {
  CHECK(threads({{0, {0}}}) == std::vector{0, 8});
  CHECK(threads({{1, {0, 3}}}) == std::vector{4, 7, 12, 15});
  CHECK(threads({{0, {2}}, {1, {1}}}) == std::vector{2, 5, 10, 13});
  CHECK(threads({{1, {}}}) == std::vector{4, 5, 6, 7, 12, 13, 14, 15});
}

TEST_CASE("what the host does not have is told with what it has") {
  CHECK(socket_refusal({{2, {}}}) ==
        "the rankfile gives rank 5 socket 2 of host a, where ranks may use 2 sockets");
  CHECK(socket_refusal({{1, {4}}}) ==
        "the rankfile gives rank 5 core 4 of socket 1 of host a, where ranks may use 4 cores of "
        "that socket");
}
