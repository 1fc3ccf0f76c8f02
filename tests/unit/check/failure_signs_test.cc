// SPDX-License-Identifier: Apache-2.0
#include "launcher/check/failure_signs.h"

#include <doctest/doctest.h>

#include <csignal>

#include "launcher/check/probe.h"

namespace hv::launcher {
namespace {

using NameSet = std::set<std::string>;

NameSet fitting(const std::string& words, std::optional<ExitStatus> end = std::nullopt) {
  return fitting_probes({words, end}).names;
}

TEST_CASE("words of a failure say which probes fit it") {
  const std::pair<const char*, NameSet> cases[] = {
      {"./train: error while loading shared libraries: libx.so.1: cannot open shared object file: "
       "No such file or directory",
       {"folders", "program", "python"}},
      {"host n2: ./train: not found in PATH (/bin)", {"program"}},
      {"ModuleNotFoundError: No module named 'hvrun'", {"python"}},
      {"OSError: [Errno 28] No space left on device", {"folders", "memory"}},
      {"OSError: [Errno 24] Too many open files", {"limits"}},
      {"bind: Address already in use", {"ports"}},
      {"RuntimeError: CUDA error: invalid device ordinal",
       {"gpus", "gpu-driver", "gpu-health", "gpu-use", "nccl"}},
      {"ZeroDivisionError: division by zero", {}},
      {"NCCL 2.29.1: begin a communicator: unhandled system error",
       {"gpus", "gpu-driver", "gpu-health", "gpu-use", "nccl"}},
      {"Using device: cuda:0\nNCCL version 2.29.1\nZeroDivisionError: division by zero", {}},
      {"", {}}};
  for (const auto& [words, names] : cases) {
    CAPTURE(words);
    CHECK(fitting(words) == names);
  }
}

TEST_CASE("so does the way in which a rank has ended") {
  const auto by_signal = [](int number) { return ExitStatus{true, number, false}; };
  CHECK(fitting("", by_signal(SIGBUS)) == NameSet{"memory"});
  CHECK(fitting("", by_signal(SIGKILL)) == NameSet{"limits", "memory"});
  CHECK(fitting("", by_signal(SIGSEGV)) == NameSet{"program", "python"});
  CHECK(fitting("", by_signal(SIGABRT)).empty());
  CHECK(fitting("", ExitStatus{false, 127, false}) == NameSet{"program"});
  CHECK(fitting("", ExitStatus{false, 1, false}).empty());
  CHECK(fitting("too many open files", by_signal(SIGBUS)) == NameSet{"limits", "memory"});
}

TEST_CASE("what is asked of hosts, and of drivers, follows from the probes") {
  const FittingProbes nothing = fitting_probes({"a mistake", std::nullopt});
  CHECK((!nothing.asks_hosts && !nothing.asks_drivers));
  const FittingProbes memory = fitting_probes({"Bus error", std::nullopt});
  CHECK((memory.asks_hosts && !memory.asks_drivers));
  const FittingProbes gpus = fitting_probes({"CUDA out of memory", std::nullopt});
  CHECK((gpus.asks_hosts && gpus.asks_drivers));  // "nccl" is told by packages
}

TEST_CASE("every probe that a failure may ask for exists") {
  NameSet known;
  for (const Probe* probe : all_probes()) known.insert(probe->name);
  for (const char* words :
       {"cuda error", "memlock", "ibv_", "/dev/shm", "no route to host", "importerror",
        "no port of", "exec format error", "stale file handle"}) {
    CAPTURE(words);
    const NameSet names = fitting(words);
    CHECK(!names.empty());
    for (const std::string& name : names) CHECK(known.count(name) == 1);
  }
}

}  // namespace
}  // namespace hv::launcher
