// Parses JSON of an untrusted file in linear time and bounded memory. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <variant>

namespace hv::launcher {

struct JsonLimits {
  std::size_t bytes = 0;
  std::size_t depth = 0;
  std::size_t members = 0;  // of one object
  std::size_t values = 0;   // in all; each takes up to 160 bytes besides its text
};

// What is wrong with a record, for people.
struct RecordProblem {
  std::string what;
};

std::variant<nlohmann::json, RecordProblem> parse_bounded(std::string_view text,
                                                          const JsonLimits& limits);

}  // namespace hv::launcher
