// How hvrun-agent tells hvrun, through mpirun, that a rank's program was not started there.
// SPDX-License-Identifier: Apache-2.0
//
//   \x01hvrun: on host HOST: WHAT
//     try: HINT
// is then all that the rank writes on stderr. No program begins its own with such a byte.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/wire/messages.h"

namespace hv::launcher {

struct NotStarted {
  std::string host;
  wire::Problem problem;
};

constexpr std::string_view kNotStartedMark = "\x01hvrun: on host ";

// problem: printable, and so of one line each.
std::string not_started_text(const NotStarted& one);

// nullopt: it is none, or not all of one.
std::optional<NotStarted> read_not_started(std::string_view text);

}  // namespace hv::launcher
