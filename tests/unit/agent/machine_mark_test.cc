// Tests of launcher/agent/machine_mark.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/machine_mark.h"

#include <doctest/doctest.h>

#include <sstream>

#include "launcher/agent/rendezvous/rank_listener.h"
#include "src/net/socket.h"
#include "src/wire/authentication.h"

using namespace hv;
using namespace hv::launcher;

TEST_CASE(
    "the first agent of a job on a machine holds its mark, and the others get its host's id") {
  const std::string job = random_hex(12);
  UniqueFd sockets[2];
  MachineMark marks[2], of_other_job;
  REQUIRE(listen_unix(rank_socket_name(job, "4"), &sockets[0]).ok());
  CHECK_FALSE(marks[0].claim(job, 4));
  REQUIRE(listen_unix(rank_socket_name(job, "7"), &sockets[1]).ok());
  CHECK(marks[1].claim(job, 7) == 4u);
  CHECK_FALSE(of_other_job.claim(random_hex(12), 7));
}

TEST_CASE("the first agent is found, without its id, where ranks' sockets have other names") {
  const std::string job = random_hex(12);
  MachineMark first, second;
  CHECK_FALSE(first.claim(job, 0));
  CHECK(second.claim(job, 1) == kUnknownHost);
}

TEST_CASE("more agents than fit into a listener's backlog still find the first one") {
  const std::string job = random_hex(12);
  UniqueFd first_socket, mark, full;
  REQUIRE(listen_unix(rank_socket_name(job, "0"), &first_socket).ok());
  MachineMark first;
  REQUIRE_FALSE(first.claim(job, 0));
  bool is_full = false;
  for (int i = 0; i < 5000 && !is_full; ++i) {
    UniqueFd one;
    (void)try_connect_unix("@hvrun-" + job + "-machine", &one, &is_full);
  }
  REQUIRE(is_full);
  MachineMark late;
  CHECK(late.claim(job, 9) == 0u);
}

TEST_CASE("names of other jobs and of other programs are no hosts of this job") {
  const auto other = [](const std::string& text) {
    std::istringstream sockets(text);
    return other_host_here(sockets, "ab12", 1);
  };
  const std::string line = "0000: 00000002 00000000 00010000 0001 01 4711 ";
  CHECK_FALSE(other(""));
  CHECK_FALSE(other("Num RefCount Protocol Flags Type St Inode Path\n" + line + "/run/x\n"));
  CHECK_FALSE(other(line + "@hvrun-ab12-1\n" + line + "@hvrun-ab12-machine\n" + line +
                    "@hvrun-ab13-5\n" + line + "@hvrun-ab12-x5\n" + line +
                    "@hvrun-ab12-99999999999\n" + line + "@hvrun-ab12-\n"));
  CHECK(other(line + "@hvrun-ab12-9\n" + line + "@hvrun-ab12-3\n") == 3u);
}
