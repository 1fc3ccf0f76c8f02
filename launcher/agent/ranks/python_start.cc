// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/ranks/python_start.h"

#include <fcntl.h>

#include <algorithm>

#include "src/base/blocking_write.h"
#include "src/base/error.h"
#include "src/base/knob.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"
#include "src/contract/runtime_knobs.h"

namespace hv::launcher {
namespace {

constexpr const char* kPythonPath = "PYTHONPATH";
constexpr std::string_view kNamePrefix = "hvrun-python-";

std::string directory_name(const std::string& job_id, std::uint32_t host_id) {
  return std::string(kNamePrefix) + job_id + "-" + std::to_string(host_id);
}

bool write_new_file(const std::string& path, std::string_view text) {
  const UniqueFd file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  return file && write_all(file.get(), text) == 0;
}

// A malformed value does not arrive here: hvrun checks the knobs of ranks.
bool is_enabled(const RankEnvironment& environment) {
  try {
    return KnobReader(runtime_knobs(), environment.as_environment()).flag("HVRUN_PYTHON_START");
  } catch (const Error&) {
    return false;
  }
}

bool is_of_a_job(const std::string& entry) {
  return entry.substr(entry.rfind('/') + 1).starts_with(kNamePrefix);
}

}  // namespace

void PythonStart::create(const wire::SetupRequest& setup) {
  if (!directory_.create_named(directory_name(setup.job_id, setup.host_id)).ok()) return;
  const std::string limits =
      "# By hvrun-agent, in seconds; 0: never.\nSTALL = " + std::to_string(setup.stalls.warning_s) +
      "\nEND = " + std::to_string(setup.stalls.call_end_s) + "\n";
  std::vector<PythonFile> files = python_start_files();
  files.push_back({"_hvrun_limits.py", limits});
  const bool is_complete = std::all_of(files.begin(), files.end(), [this](const PythonFile& file) {
    return write_new_file(directory() + "/" + std::string(file.name), file.text);
  });
  if (!is_complete) remove();
}

void PythonStart::add_to(RankEnvironment* environment) const {
  if (directory().empty() || !is_enabled(*environment)) return;
  const std::string before(environment->as_environment().get_or(kPythonPath, ""));
  environment->set(kPythonPath, python_path(directory(), before));
}

void remove_python_directory(const std::string& job_id, std::uint32_t host_id) {
  PrivateDirectory::remove_named(directory_name(job_id, host_id));
}

std::string python_path(const std::string& directory, const std::string& before) {
  if (before.empty()) return directory;
  std::vector<std::string> entries = split(before, ':');
  std::erase_if(entries, is_of_a_job);
  return entries.empty() ? directory : directory + ":" + join(entries, ":");
}

}  // namespace hv::launcher
