// Site files of hvrun script, and what a request makes of the site: limits, or a script whose every
// line is one that was meant.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "launcher/script/job_script.h"
#include "launcher/script/script_plan.h"
#include "launcher/script/site.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::launcher;

namespace {

void check(const Site& site) {
  HV_CHECK(!site.name.empty() && site.name.find('/') == std::string::npos, "a name");
  HV_CHECK(!site.partitions.empty() && site.partitions.size() <= 256, "some kinds of nodes");
  for (const Partition& partition : site.partitions) {
    HV_CHECK(partition.cores >= 0 && partition.gpus.value_or(0) >= 0, "sizes of a node");
    for (const std::string& name : partition.qos)
      HV_CHECK(site.find_qos(name), "a QoS that is described");
  }
}

// Behind the first line every line up to the shell's part is a comment; none has a control byte.
void check_script(const std::string& text) {
  bool is_shell = false;
  for (const std::string& line : split(text, '\n')) {
    is_shell = is_shell || line.rfind("set -e", 0) == 0;
    HV_CHECK(is_shell || line.rfind('#', 0) == 0, "a comment or a directive");
    HV_CHECK(
        std::all_of(line.begin(), line.end(), [](unsigned char c) { return c >= ' ' && c != 127; }),
        "no control byte");
  }
  HV_CHECK(is_shell, "the shell's part");
}

JobRequest request_for(const Partition& partition, std::uint8_t choice) {
  JobRequest request;
  request.program = {"train", "it's"};
  request.partition = partition.name;
  request.ranks = 1 + choice % 37;
  if (choice & 1) request.nodes = 1 + choice % 5;
  if (choice & 2) request.ranks_per_node = 1 + choice % 9;
  if (choice & 4) request.signal = EarlySignal{"USR1", std::chrono::seconds(30)};
  if (choice & 8) request.requeues = 2;
  if (choice & 16) request.gpus_per_rank = choice % 3;
  request.account = (choice & 32) ? "abc" : "";
  if (choice & 64) request.time = std::chrono::minutes(5);
  return request;
}

void expect_users_mistake(const Error& error) {
  HV_CHECK(error.kind() == ErrorKind::kUsage && !error.hint().empty(), "and what was expected");
  const std::string words = error.what();
  HV_CHECK(words.size() < 8000 && words.find('\x1b') == std::string::npos, "in few plain words");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::view(data, size);
  try {
    const Site site = parse_site(text, "f");
    check(site);
    const auto choice = static_cast<std::uint8_t>(size * 31 + (size ? data[size / 2] : 0));
    for (const Partition& partition : site.partitions) {
      const JobRequest request = request_for(partition, choice);
      try {
        check_script(job_script(request, site, plan_script(request, site)));
      } catch (const Error& error) {
        expect_users_mistake(error);
      }
    }
  } catch (const Error& error) {
    expect_users_mistake(error);
  }
  return 0;
}
