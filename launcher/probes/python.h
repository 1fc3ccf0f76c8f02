// Queries the Python interpreters that run the job's programs: version, prefix, versions of
// packages by their metadata. Imports nothing of the job.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "src/base/environment.h"
#include "src/wire/check.h"

namespace hv::launcher {

void inspect_python(const wire::CheckRequest& request, const Environment& environment,
                    wire::CheckReply* reply);

// Parses the output of such a query; nothing: it is no answer. The value of "libhvrun" is still a
// path, not a digest.
std::optional<wire::PythonFacts> parse_python_answer(const std::string& text);

}  // namespace hv::launcher
