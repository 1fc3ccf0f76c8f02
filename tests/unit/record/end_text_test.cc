// SPDX-License-Identifier: Apache-2.0
#include "launcher/record/end_text.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "launcher/record/job_record.h"

using namespace hv::launcher;

TEST_CASE("hosts that could not be swept for the same reason are one line") {
  JobRecord record;
  for (const std::string name : {"n1", "n2", "n3"}) {
    RecordedHost host{name};
    host.left_behind = LeftBehind::kUnknown;
    host.unswept = "no second agent has ended them: connect to host " + name + ": 10.0.0." +
                   name.substr(1) + ":22: No route to host";
    host.remedy = "look there";
    record.hosts.push_back(host);
  }
  CHECK(end_text(record, [](int) { return std::vector<std::string>(); }) ==
        "hvrun: processes of this job may still run on hosts n[1-3]: no second agent has ended "
        "them: connect to hosts n[1-3]: No route to host\n  try: look there\n");
}

TEST_CASE("a finding that the failure has told is only named") {
  JobRecord record;
  record.findings.push_back({"ssh-no-route",
                             true,
                             {"n1", "n2"},
                             "n[1-2]: connect to hosts n[1-2]: No route to host",
                             "this machine has no route to the host",
                             "hvrun starts no rank",
                             "see that they are up"});
  CHECK(findings_text(record, "connect to hosts n[1-2]: No route to host") ==
        "hvrun: n[1-2]: this machine has no route to the host  [ssh-no-route]\n");
  CHECK(findings_text(record, "another failure") ==
        "hvrun: cannot start: n[1-2]: connect to hosts n[1-2]: No route to host\n  why: hvrun "
        "starts no rank\n  try: see that they are up  [ssh-no-route]\n");
}
