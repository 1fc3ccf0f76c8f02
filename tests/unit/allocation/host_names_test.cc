// Many hosts in few words.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/host_names.h"

#include <doctest/doctest.h>

#include "launcher/allocation/host_expression.h"

namespace hv::launcher {
namespace {

using Names = std::vector<std::string>;

Names numbered(const std::string& stem, int first, int last, int step = 1) {
  Names names;
  for (int i = first; i <= last; i += step) names.push_back(stem + std::to_string(i));
  return names;
}

TEST_CASE("names that differ in their number are folded as Slurm does") {
  CHECK(fold_host_names({}) == "");
  CHECK(fold_host_names({"n1"}) == "n1");
  CHECK(fold_host_names({"n2", "n1", "n3", "n7"}) == "n[1-3,7]");
  CHECK(fold_host_names({"gpu01", "gpu02", "gpu10", "login"}) == "gpu[01-02,10],login");
  CHECK(fold_host_names({"n9", "n10"}) == "n[9-10]");
  CHECK(fold_host_names({"n08", "n09", "n10", "n7", "n100"}) == "n[08-10],n[7,100]");
  CHECK(fold_host_names({"r1n1.site2", "r1n2.site2", "r2n1.site2"}) == "r1n[1-2].site2,r2n1.site2");
  CHECK(fold_host_names({"10.0.0.1", "10.0.0.2"}) == "10.0.0.1,10.0.0.2");
  CHECK(fold_host_names({"fd00::1", "a"}) == "fd00::1,a");
  CHECK(fold_host_names({"n1", "n1", "a", "a"}) == "n1,a");
  CHECK(fold_host_names({"n12345678901"}) == "n12345678901");
  CHECK(fold_host_names({"n1200000001", "n1200000002"}) == "n1[200000001-200000002]");
}

TEST_CASE("what is folded names the same hosts on the command line") {
  const Names names{"n08", "n09", "n10", "n7", "r1n1.site2", "r1n3.site2", "login"};
  Names again;
  for (const HostEntry& entry : parse_host_expression(fold_host_names(names)).entries)
    again.push_back(entry.name);
  CHECK(again == names);
}

TEST_CASE("messages count hosts where their number is not plain, and all that they leave out") {
  CHECK(hosts_text({"b", "a"}) == "b,a");
  CHECK(hosts_text(numbered("n", 1, 8)) == "n[1-8]");
  CHECK(hosts_text(numbered("n", 1, 64)) == "n[1-64] (64 hosts)");
  CHECK(named_hosts_text({"n1"}) == "host n1");
  CHECK(named_hosts_text({"n1", "n2"}) == "hosts n[1-2]");
  CHECK(named_hosts_text(numbered("n", 1, 64)) == "hosts n[1-64] (64)");
  Names unlike{"a", "b"};
  for (const std::string& name : numbered("n", 1, 99, 2)) unlike.push_back(name);
  CHECK(hosts_text(unlike) == "a,b,n[1,3,5,7,9,11,13,15,17,19,21,23,25,27] and 36 more (52 hosts)");
}

}  // namespace
}  // namespace hv::launcher
