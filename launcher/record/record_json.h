// A JobRecord as JSON, for --summary and job.json, and back. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "launcher/record/job_record.h"

namespace hv::launcher {

// docs/output.md lists the members.
std::string record_as_json(const JobRecord& record, const LastLines& last_lines);

// What is wrong with it, for people.
struct RecordProblem {
  std::string what;
};
// Whatever the bytes are: the result's numbers are in bounds, ranks and hosts that it names are
// there, and its texts are printable.
std::variant<JobRecord, RecordProblem> record_from_json(std::string_view text);

constexpr std::size_t kMostRecordBytes = 256u << 20;

}  // namespace hv::launcher
