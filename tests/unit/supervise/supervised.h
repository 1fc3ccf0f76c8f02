// Runs a job over scripted agents, and returns its output.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "launcher/allocation/host_expression.h"
#include "launcher/supervise/supervisor.h"
#include "src/base/unique_fd.h"
#include "tests/fakes/fake_agents.h"

namespace hv::launcher {

struct Outcome {
  int code = 0;
  std::string out, err;
};

// A file without a name, to read back what was written to it.
inline UniqueFd scratch_file() {
  return UniqueFd(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
}

inline std::string content_of(const UniqueFd& fd) {
  std::string text(1 << 20, '\0');
  const ssize_t size = ::pread(fd.get(), text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

inline Outcome supervise(const std::map<std::string, FakeAgent*>& agents, const std::string& hosts,
                         JobSpec spec = {}, const UniqueFd* both = nullptr,
                         const RecordingOptions& recording = {}) {
  spec.programs = {{{"train"}, "/"}};
  const UniqueFd out = scratch_file(), err = scratch_file();
  OutputOptions output;
  output.stdout_fd = out.get();
  output.stderr_fd = err.get();
  if (both) output.stdout_fd = output.stderr_fd = both->get();
  Outcome outcome;
  const Environment environment;
  outcome.code =
      supervise_job(spec, parse_host_expression(hosts), environment, [&](const JobSpec& own) {
        output.directory = own.output.output_directory;
        return SupervisedParts{.spawner = std::make_unique<FakeSpawner>(agents),
                               .output = output,
                               .recording = recording};
      });
  outcome.out = content_of(out);
  outcome.err = content_of(err);
  return outcome;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace hv::launcher
