// Tests of the probe of names.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/probes/names.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/unit/probes/asked.h"

using namespace hv;
using namespace hv::launcher;

TEST_CASE("the addresses that getent prints, each once") {
  CHECK(parse_getent("10.0.0.1        STREAM node1\n10.0.0.1        DGRAM  \nfd00::1 RAW\n\n") ==
        std::vector<std::string>{"10.0.0.1", "fd00::1"});
  CHECK(parse_getent("").empty());
}

TEST_CASE("the line of /etc/hosts that has a name, as the name or an alias") {
  const char* const content =
      "127.0.0.1 localhost # node1\n\n127.0.1.1\tnode1.lab   node1\n10.0.0.1 node1\n";
  CHECK(line_of_hosts_file(content, "node1") == "line 3: 127.0.1.1 node1.lab node1");
  CHECK(line_of_hosts_file(content, "NODE1.lab") == "line 3: 127.0.1.1 node1.lab node1");
  CHECK(line_of_hosts_file(content, "127.0.1.1").empty());
  CHECK(line_of_hosts_file(content, "node2").empty());
  CHECK(line_of_hosts_file("", "node1").empty());
}

TEST_CASE("a host resolves its own name and those it is asked for") {
  wire::CheckRequest request;
  request.timeout_s = 300;
  const std::string no_name(70, 'x');  // longer than a label may be: no name server is asked
  request.names = {"localhost", no_name};
  wire::CheckReply reply;
  inspect_names(request, Environment(), &reply);
  REQUIRE(reply.unanswered.empty());
  REQUIRE(reply.names.size() == 3);
  const std::vector<std::string>& local = reply.names[1].addresses;
  CHECK(std::any_of(local.begin(), local.end(),
                    [](const std::string& ip) { return ip == "127.0.0.1" || ip == "::1"; }));
  CHECK(reply.names[2].name == no_name);
  CHECK(reply.names[2].addresses.empty());
}
