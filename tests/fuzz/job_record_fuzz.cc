// job.json as `hvrun explain` reads it: whatever the bytes are, the record can be told, and written
// and read again, and its words are printable.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "launcher/record/end_text.h"
#include "launcher/record/record_json.h"
#include "src/base/text.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::launcher;

namespace {

std::vector<std::string> lines_of(int rank) {
  return {"Traceback of " + std::to_string(rank % 3), "\x1b[31m\xff"};
}

void expect_plain(const std::string& words) {
  HV_CHECK(std::all_of(words.begin(), words.end(),
                       [](unsigned char c) { return c == '\n' || (c >= ' ' && c != 127); }),
           "no control byte");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto read = record_from_json(fuzz::view(data, size));
  if (const auto* problem = std::get_if<RecordProblem>(&read)) {
    HV_CHECK(!problem->what.empty(), "what is wrong");
    return 0;
  }
  const JobRecord& record = std::get<JobRecord>(read);
  std::string told = training_summary(record) + end_text(record, lines_of);
  for (const RecordedStanding& standing : record.standings) told += standing_text(standing);
  expect_plain(told);
  const bool is_any_unswept = std::any_of(
      record.hosts.begin(), record.hosts.end(),
      [](const RecordedHost& host) { return host.left_behind == LeftBehind::kUnknown; });
  HV_CHECK((record.cause || is_any_unswept) == !end_text(record, lines_of).empty(),
           "words for a verdict");
  const auto again = record_from_json(record_as_json(record, lines_of));
  HV_CHECK(std::holds_alternative<JobRecord>(again), "what is written can be read");
  const JobRecord& same = std::get<JobRecord>(again);
  HV_CHECK(end_text(same, lines_of) == end_text(record, lines_of), "the same end");
  HV_CHECK(same.standings.size() == record.standings.size(), "the same stacks");
  for (std::size_t i = 0; i < same.standings.size(); ++i)
    HV_CHECK(standing_text(same.standings[i]) == standing_text(record.standings[i]),
             "the same stacks");
  return 0;
}
