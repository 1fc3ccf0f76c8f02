// The Python that the job's programs are, or are run by, as it tells of itself: its version, and
// those of packages, by their metadata. Nothing of the job is imported.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "src/base/environment.h"
#include "src/wire/check.h"

namespace hv::launcher {

void look_at_python(const wire::CheckRequest& request, const Environment& environment,
                    wire::CheckReply* reply);

// Of what such a Python has written; none: that is no answer. "libhvrun" has a file's name still.
std::optional<wire::PythonFacts> parse_python_answer(const std::string& text);

}  // namespace hv::launcher
