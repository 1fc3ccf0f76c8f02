// Inspects the job's programs on this host: the path of each, whether the kernel can start it, its
// libraries, a digest of its content.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/environment.h"
#include "src/wire/check.h"

namespace hv::launcher {

void inspect_program(const wire::CheckRequest& request, const Environment& environment,
                     wire::CheckReply* reply);

// The deadline for what a probe waits for. It lies before the request's own, so that the probe can
// still report what is missing.
TimePoint end_of_probe(const wire::CheckRequest& request);
// The environment of that program. environment: common to all ranks.
Environment environment_of_program(const wire::Program& program, const Environment& environment);
// The file that executes a program: the interpreter of a script, found as the kernel and env(1)
// find it, else the program itself.
std::string executed_file(const std::string& program, const std::string& directory,
                          const std::string& path);
// A digest of the file's content; "" for a file that is too large or unreadable.
std::string digest_of_file(const std::string& path);

}  // namespace hv::launcher
