// A JobRecord as JSON, for --summary and job.json, and back. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <variant>

#include "launcher/record/bounded_json.h"
#include "launcher/record/job_record.h"

namespace hv::launcher {

// Raised when a member is removed, renamed or changes its meaning; a new member leaves it.
inline constexpr unsigned kRecordVersion = 2;

// docs/output.md lists the members.
nlohmann::ordered_json json_of_record(const JobRecord& record, const LastLines& last_lines);
std::string record_as_json(const JobRecord& record, const LastLines& last_lines);
// With no lines of any rank: of a job that still runs, or starts again.
std::string record_as_json(const JobRecord& record);

// Reads version 1, too. Whatever the bytes are: the result's numbers are in bounds, ranks and hosts
// that it names are there, and its texts are printable.
std::variant<JobRecord, RecordProblem> record_from_json(std::string_view text);

constexpr std::size_t kMostRecordBytes = 256u << 20;

}  // namespace hv::launcher
