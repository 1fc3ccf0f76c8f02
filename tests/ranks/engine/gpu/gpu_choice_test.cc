// Who carries what lies on GPUs, chosen by whole jobs of processes: by NCCL, through the host's
// memory with one warning, or by nobody with what to try.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/ranks/engine/gpu.h"
#include "tests/ranks/engine/processes.h"
#include "tests/unit/paths.h"
#include "tests/unit/temporary_folder.h"

using namespace hv;
using namespace hv::runtime;

namespace {

using Variables = std::map<std::string, std::string>;

const std::string kNccl = tests::test_library("nccl/libnccl.so.2");
constexpr const char* kSlow = "tensors on GPUs go through the host's memory, which is slow: ";
constexpr std::int64_t kChoiceCount = 100;

// What processes of this one find in their environment, as long as it is there.
class Setting {
 public:
  explicit Setting(const Variables& variables) {
    for (const auto& [name, value] : variables) {
      const char* const before = ::getenv(name.c_str());
      if (before != nullptr) before_[name] = before;
      names_.push_back(name);
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~Setting() {
    for (const std::string& name : names_) {
      if (before_.count(name) > 0)
        ::setenv(name.c_str(), before_[name].c_str(), 1);
      else
        ::unsetenv(name.c_str());
    }
  }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  std::vector<std::string> names_;
  Variables before_;
};

// One rank's: of the members' ones on their first GPUs, in its own memory.
struct ChosenSum {
  Status status;
  std::vector<float> values;
  bool is(int members) const {
    const std::vector<float> wanted(static_cast<std::size_t>(kChoiceCount),
                                    static_cast<float>(members));
    return status.ok() && values == wanted;
  }
};

ChosenSum sum_ones(Context& context, Gpu& gpu, std::uint32_t set = 0) {
  const std::vector<float> ones(static_cast<std::size_t>(kChoiceCount), 1.0f);
  std::byte* const memory = gpu.put(ones.data(), ones.size() * sizeof(float));
  hvrun_request request = allreduce_request("w", &kChoiceCount, memory, memory);
  request.process_set = set;
  gpu.place(&request);
  ChosenSum sum{run_in(context, request), {}};
  if (sum.status.ok()) sum.values = gpu.values<float>(memory, ones.size());
  return sum;
}

bool has(const Status& status, const std::string& words) {
  if (status.message.find(words) != std::string::npos) return true;
  std::fprintf(stderr, "not there: %s: in: %s\n", words.c_str(), status.message.c_str());
  return false;
}

struct Outcome {
  std::string codes;  // by rank
  std::string told;   // on stderr, by all
  int count(const std::string& words) const {
    int found = 0;
    for (auto at = told.find(words); at != told.npos; at = told.find(words, at + 1)) ++found;
    return found;
  }
};

// A job of that many processes on one host, each with all GPUs; 0 of the body's is success.
Outcome run_processes(int ranks, const Variables& variables,
                      const std::function<int(Context&, Gpu&)>& body,
                      const std::string& backend = "") {
  const Setting setting(variables);
  const tests::TemporaryFolder folder;
  const std::string log = folder / "log";
  Environment knobs;
  knobs.set("HVRUN_BACKEND", backend);
  const auto in_process = [&](Context& context) {
    const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0 || ::dup2(fd, STDERR_FILENO) < 0) return 99;
    Gpu& gpu = *new Gpu(0);  // nobody waits for it at the end
    return body(context, gpu);
  };
  Outcome outcome;
  {
    Processes job({ranks}, in_process, ContextParts().leave_limit, knobs);
    for (int rank = ranks - 1; rank >= 0; --rank)
      outcome.codes.insert(0, std::to_string(job.exit_code(rank)));
  }
  std::ostringstream text;
  text << std::ifstream(log).rdbuf();
  outcome.told = text.str();
  return outcome;
}

// All GPUs of all processes are the same ones.
Variables sharing(const std::string& version, bool is_asked_for) {
  Variables variables{
      {"HVRUN_NCCL", kNccl}, {"HVRUN_FAKE_NCCL_VERSION", version}, {"HVRUN_FAKE_CUDA_UUID", "7"}};
  if (is_asked_for) variables["HVRUN_SHARE_GPU"] = "1";
  return variables;
}

constexpr const char* kSharedUuid = "GPU-07000000-0000-0000-0000-000000000000";

}  // namespace

TEST_SUITE_BEGIN("nccl");

TEST_CASE("where NCCL alone is named and there is none, all ranks hear what was looked for where") {
  const auto body = [](Context& context, Gpu& gpu) {
    for (int again = 0; again < 2; ++again) {
      const Status status = sum_ones(context, gpu).status;
      if (status.code != StatusCode::kUnsupported) return 2;
      if (!has(status, "HVRUN_NCCL=/none") || !has(status, "name native in HVRUN_BACKEND, too"))
        return 3;
    }
    return run_in(context, barrier_request()).ok() ? 0 : 4;
  };
  const Outcome outcome = run_processes(3, {{"HVRUN_NCCL", "/none"}}, body, "nccl");
  CAPTURE(outcome.told);
  CHECK(outcome.codes == "000");
}

TEST_CASE("where NCCL alone is named and two ranks share a GPU, all hear which one and who") {
  const auto body = [](Context& context, Gpu& gpu) {
    const Status status = sum_ones(context, gpu).status;
    return has(status, "ranks 0 and 1") && has(status, kSharedUuid) ? 0 : 2;
  };
  const Outcome outcome = run_processes(3, sharing("22803", false), body, "nccl");
  CAPTURE(outcome.told);
  CHECK(outcome.codes == "000");
}

TEST_CASE("where NCCL alone is named, a rank that joined without a tensor is told as the reason") {
  const auto body = [](Context& context, Gpu& gpu) {
    hvrun_request join = HVRUN_REQUEST_INIT;
    join.operation = HVRUN_JOIN;
    if (context.identity().rank == 1 && !run_in(context, join).ok()) return 2;
    if (context.identity().rank == 1) return sum_ones(context, gpu).is(2) ? 0 : 3;
    const Status status = sum_ones(context, gpu).status;
    if (status.code != StatusCode::kUnsupported || !has(status, "has joined without any")) return 4;
    if (!run_in(context, join).ok()) return 5;
    return sum_ones(context, gpu).is(2) ? 0 : 6;
  };
  const Outcome outcome = run_processes(2, {{"HVRUN_NCCL", kNccl}}, body, "nccl");
  CAPTURE(outcome.told);
  CHECK(outcome.codes == "00");
}

TEST_CASE("what takes a job's tensors through the host is told once, however many sets it has") {
  const std::string old = "compute capability is 7.0, and the kernels are for 7.5 and newer";
  const std::pair<Variables, std::string> reasons[] = {
      {{{"HVRUN_NCCL", "/none"}}, "HVRUN_NCCL=/none"},
      {{{"HVRUN_NCCL", kNccl}, {"HVRUN_FAKE_NCCL_VERSION", "21705"}},
       "is 2.17.5, which is too old; try: NCCL 2.18.0 or newer"},
      {{{"HVRUN_NCCL", kNccl}, {"HVRUN_FAKE_CUDA_CAPABILITY", "70"}}, old}};
  const auto body = [](Context& context, Gpu& gpu) {
    if (!sum_ones(context, gpu).is(4)) return 2;
    const int rank = context.identity().rank;
    for (const std::vector<std::int32_t>& members :
         {std::vector<std::int32_t>{0, 1}, {2, 3}, {1, 2, 3}}) {
      std::uint32_t set = 0;
      if (!context.add_process_set(members, &set).ok()) return 3;
      if (std::find(members.begin(), members.end(), rank) == members.end()) continue;
      if (!sum_ones(context, gpu, set).is(static_cast<int>(members.size()))) return 4;
    }
    return run_in(context, barrier_request()).ok() ? 0 : 5;
  };
  for (const auto& [variables, words] : reasons) {
    CAPTURE(words);
    const Outcome outcome = run_processes(4, variables, body);
    CAPTURE(outcome.told);
    CHECK(outcome.codes == "0000");
    CHECK(outcome.count(kSlow) == 1);
    CHECK(outcome.count(words) == 1);
  }
}

TEST_CASE("ranks that share a GPU work where NCCL can do it and all have asked for it") {
  const auto body = [](Context& context, Gpu& gpu) {
    for (int again = 0; again < 3; ++again)
      if (!sum_ones(context, gpu).is(3)) return 2;
    return Gpu::nccl_calls("ncclAllReduce") == 3 ? 0 : 3;
  };
  const Outcome outcome = run_processes(3, sharing("23203", true), body);
  CAPTURE(outcome.told);
  CHECK(outcome.codes == "000");
  CHECK(outcome.told == "");
}

TEST_CASE("two ranks on one GPU are named as the job has them, with what lets them share it") {
  struct Kind {
    const char* version;
    bool is_asked_for;
    const char* words;
  };
  const Kind kinds[] = {
      {"23203", false,
       "HVRUN_SHARE_GPU=1 on all ranks, with which they take turns on it (NCCL 2.30"},
      {"22803", false,
       "HVRUN_SHARE_GPU=1 on all ranks, with which they take turns on it (NCCL 2.30"},
      {"22803", true,
       "HVRUN_SHARE_GPU=1 has no effect, for NCCL is 2.28.3 on rank 1 and can do it from 2.30 on"}};
  for (const auto& [version, is_asked_for, words] : kinds) {
    CAPTURE(version);
    const auto body = [expected = words](Context& context, Gpu& gpu) {
      std::uint32_t set = 0;
      if (!context.add_process_set({1, 2}, &set).ok()) return 2;
      Status status;
      if (context.identity().rank > 0) status = sum_ones(context, gpu, set).status;
      (void)run_in(context, barrier_request());
      if (context.identity().rank == 0) return 0;
      if (status.code != StatusCode::kUnsupported) return 3;
      return has(status, "ranks 1 and 2 use the same GPU, ") && has(status, kSharedUuid) &&
                     has(status, expected)
                 ? 0
                 : 4;
    };
    const Outcome outcome = run_processes(3, sharing(version, is_asked_for), body);
    CAPTURE(outcome.told);
    CHECK(outcome.codes == "000");
  }
}

// As PyTorch has loaded one.
TEST_CASE("the copy of NCCL that the process holds is used, whatever HVRUN_NCCL says") {
  const auto body = [](Context& context, Gpu& gpu) {
    if (::dlopen(kNccl.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) return 2;
    if (!sum_ones(context, gpu).is(2)) return 3;
    return Gpu::nccl_calls("ncclAllReduce") == 1 ? 0 : 4;
  };
  const Outcome outcome = run_processes(2, {{"HVRUN_NCCL", "/none"}}, body);
  CAPTURE(outcome.told);
  CHECK(outcome.codes == "00");
  CHECK(outcome.told == "");
}

TEST_SUITE_END();
