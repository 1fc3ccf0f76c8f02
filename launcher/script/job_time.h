// Time limits of batch jobs as users, site files and schedulers write them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace hv::launcher {

constexpr std::chrono::seconds kLongestJobTime = std::chrono::hours(24 * 366);

// What a time may look like, for messages.
constexpr const char* kJobTimeForm = "2h, 90m, 1d12h, HH:MM:SS or D-HH:MM:SS";

// 90m, 2h, 1h30m, 1d12h, 45s; HH:MM:SS; D-HH:MM:SS. A bare number and HH:MM are nothing: to Slurm
// they are minutes and MM:SS, to LSF minutes and HH:MM. Nor are 0 and more than kLongestJobTime.
std::optional<std::chrono::seconds> parse_job_time(std::string_view text);

// HH:MM:SS, the hours beyond 24 where need be: every scheduler's but LSF's, and for messages.
std::string format_job_time(std::chrono::seconds time);
// HH:MM, rounded up: LSF's.
std::string format_hours_and_minutes(std::chrono::seconds time);

}  // namespace hv::launcher
