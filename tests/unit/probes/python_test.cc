// SPDX-License-Identifier: Apache-2.0
#include "launcher/probes/python.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>

#include "src/base/clock.h"
#include "tests/unit/probes/asked.h"

namespace hv::launcher {
namespace {

using tests::asked;
using tests::request_for;
using tests::TemporaryFolder;
using tests::write_file;

constexpr const char* kPython = "/usr/bin/python3";
constexpr mode_t kPythonExecutable = 0755;

bool has_python() {
  const bool is_there = ::access(kPython, X_OK) == 0;
  if (!is_there) MESSAGE("there is no " << kPython << " here");
  return is_there;
}

std::string version_of(const wire::PythonFacts& facts, const std::string& package) {
  for (const auto& [name, version] : facts.packages)
    if (name == package) return version;
  return "none";
}

TEST_CASE("python reports itself and its packages, which it does not import") {
  if (!has_python()) return;
  const TemporaryFolder folder;
  write_file(folder / "torch-9.8.dist-info/METADATA",
             "Metadata-Version: 2.1\nName: torch\nVersion: 9.8+cu130\n");
  write_file(folder / "nvidia_nccl_cu13-2.28.3.dist-info/METADATA",
             "Metadata-Version: 2.1\nName: nvidia-nccl-cu13\nVersion: 2.28.3\n");
  write_file(folder / "torch/__init__.py", "raise SystemExit('imported')\n");
  write_file(folder / "hvrun/__init__.py", "raise SystemExit('imported')\n");
  write_file(folder / "hvrun/lib/libhvrun.so.0", "code");
  Environment environment = tests::usual_environment();
  environment.set("PYTHONPATH", folder.path());
  const auto reply = asked("python", request_for({kPython, "train.py"}, "/"), environment);
  CHECK(reply.unanswered.empty());
  REQUIRE(reply.programs.at(0).python.size() == 1);
  const wire::PythonFacts& facts = reply.programs[0].python[0];
  CHECK(facts.version.rfind("3.", 0) == 0);
  CHECK(facts.executable == kPython);
  CHECK(facts.prefix != "");
  CHECK(version_of(facts, "torch") == "9.8+cu130");
  CHECK(version_of(facts, "nvidia-nccl-cu13") == "2.28.3");
  CHECK(version_of(facts, "nvidia-cuda-runtime") == "none");
  CHECK(version_of(facts, "libhvrun").size() == 32);
  CHECK_FALSE(std::filesystem::exists(folder / "hvrun/__pycache__"));
}

TEST_CASE("python: files of the working directory are not run") {
  if (!has_python()) return;
  const TemporaryFolder folder;
  for (const char* module : {"os", "json", "email", "importlib", "csv", "zipfile"})
    write_file(folder / module + ".py", "raise SystemExit('ran')\n");
  const auto reply = asked("python", request_for({kPython, "train.py"}, folder.path()));
  CHECK(reply.programs.at(0).python.size() == 1);
}

TEST_CASE("python: with -I it searches where the job's Python does") {
  if (!has_python()) return;
  const TemporaryFolder folder;
  write_file(folder / "torch-9.8.dist-info/METADATA", "Name: torch\nVersion: 9.8\n");
  Environment environment = tests::usual_environment();
  environment.set("PYTHONPATH", folder.path());
  const auto facts = [&](std::vector<std::string> argv) {
    return asked("python", request_for(std::move(argv), "/"), environment)
        .programs.at(0)
        .python.at(0);
  };
  CHECK(version_of(facts({kPython, "train.py"}), "torch") == "9.8");
  CHECK(version_of(facts({kPython, "-uI", "train.py"}), "torch") != "9.8");
}

TEST_CASE("python: the interpreter of a script is queried, and no other program") {
  const TemporaryFolder folder;
  write_file(folder / "bin/python3",
             "#!/bin/sh\nprintf 'start-up noise\\nhvrun-python\\0/x/python3\\0003.9.1\\0/x\\000"
             "torch\\0002.1\\0'\necho bye >&2\n",
             kPythonExecutable);
  write_file(folder / "train", "#!/usr/bin/env python3\n", kPythonExecutable);
  Environment environment = tests::usual_environment();
  environment.set("PATH", folder / "bin");
  const auto script =
      asked("python", request_for({"./train"}, folder.path()), environment).programs.at(0);
  REQUIRE(script.python.size() == 1);
  CHECK(script.python[0].version == "3.9.1");
  CHECK(version_of(script.python[0], "torch") == "2.1");
  CHECK(asked("python", request_for({"/bin/sh"}, "/")).programs.at(0).python.empty());
  CHECK(asked("python", request_for({"./nosuch"}, "/")).programs.at(0).python.empty());
}

TEST_CASE("python: one that does not start is reported with the reason") {
  const TemporaryFolder folder;
  write_file(folder / "python3", "#!/bin/sh\necho 'no module named encodings' >&2\nexit 1\n",
             kPythonExecutable);
  const auto reply = asked("python", request_for({"./python3"}, folder.path()));
  CHECK(reply.programs.at(0).python.empty());
  REQUIRE(reply.unanswered.size() == 1);
  CHECK(reply.unanswered[0].reason ==
        folder.path() + "/./python3: exit code 1: no module named encodings");
}

TEST_CASE("python: one that hangs is reported in time, and leaves no process") {
  const TemporaryFolder folder;
  write_file(folder / "python3", "#!/bin/sh\necho $$ > " + (folder / "pid") + "\nexec sleep 1000\n",
             kPythonExecutable);
  wire::CheckRequest request = request_for({"./python3"}, folder.path());
  request.timeout_s = 0.5;
  const TimePoint begun = now();
  const auto reply = asked("python", request);
  CHECK(now() - begun < std::chrono::seconds(20));
  REQUIRE(reply.unanswered.size() == 1);
  CHECK(reply.unanswered[0].reason.find("/python3: ") != std::string::npos);
  const std::string pid = tests::file_content(folder / "pid");
  if (!pid.empty()) CHECK(::kill(std::stoi(pid), 0) != 0);
}

TEST_CASE("python: an answer that is cut off is refused") {
  const std::string whole(
      "hvrun-python\0/p\0"
      "3.1\0/x\0torch\0"
      "2\0",
      31);
  CHECK(parse_python_answer(whole).has_value());
  CHECK_FALSE(parse_python_answer(whole.substr(0, 29)).has_value());
  CHECK_FALSE(parse_python_answer("").has_value());
}

}  // namespace
}  // namespace hv::launcher
