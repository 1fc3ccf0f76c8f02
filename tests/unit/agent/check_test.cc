// An agent's answer to a check: all probes at once, in a process of their own.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>

#include "src/wire/check.h"
#include "tests/unit/agent/agent_client.h"
#include "tests/unit/temporary_folder.h"

using namespace hv;
using namespace hv::tests;

namespace {

wire::CheckReply told_by_agent(const wire::CheckRequest& request) {
  AgentClient client;
  client.send(request);
  wire::CheckReply reply = client.expect<wire::CheckReply>(std::chrono::seconds(60));
  CHECK(client.finish() == 0);
  return reply;
}

// A directory with a Python that is a script of the test.
class FakePython {
 public:
  explicit FakePython(const std::string& lines) {
    std::ofstream(folder_ / "python3") << "#!/bin/sh\n" << lines << "\n";
    ::chmod((folder_ / "python3").c_str(), 0755);
  }
  wire::CheckRequest request() const {
    wire::CheckRequest request;
    request.programs = {{{"true"}, "/", {}}, {{"./python3"}, folder_.path(), {}}};
    request.environment = {"PATH=/usr/bin:/bin"};
    return request;
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("an agent's probes report each program, its Python, directories and the host") {
  const FakePython python("printf 'hvrun-python\\0/p\\0003.9\\0/\\0'");
  wire::CheckRequest request = python.request();
  request.timeout_s = 30;
  const wire::CheckReply reply = told_by_agent(request);
  CHECK(reply.unanswered.empty());
  REQUIRE(reply.programs.size() == 2);
  CHECK(reply.programs[0].path.find("/true") != std::string::npos);
  CHECK(reply.programs[0].python.empty());
  CHECK(reply.programs[1].interpreter == "/bin/sh");
  REQUIRE(reply.programs[1].python.size() == 1);
  CHECK(reply.programs[1].python[0].version == "3.9");
  CHECK(reply.folders.size() == 3);
  CHECK(reply.memory.total_bytes > 0);
  CHECK(reply.load.cores > 0);
  CHECK(reply.limits.open_files > 0);
}

TEST_CASE("an agent passes on what a probe could not find out, next to what it could") {
  const FakePython python("exit 3");
  const wire::CheckReply reply = told_by_agent(python.request());
  REQUIRE(reply.unanswered.size() == 1);
  CHECK(reply.unanswered[0].probe == "python");
  CHECK(reply.unanswered[0].reason.find("/python3: exit code 3") != std::string::npos);
  REQUIRE(reply.programs.size() == 2);
  CHECK(reply.programs[1].path != "");
}

TEST_CASE("an agent gives up a probe that hangs, and has the answers of all others") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "interpreter").c_str(), 0755) == 0);  // it gets no writer
  std::ofstream(folder / "program") << "#!" << folder / "interpreter"
                                    << "\n";
  REQUIRE(::chmod((folder / "program").c_str(), 0755) == 0);
  wire::CheckRequest request;
  request.timeout_s = 2;
  request.programs = {{{"./program"}, folder.path(), {}}};
  const wire::CheckReply reply = told_by_agent(request);
  REQUIRE(reply.unanswered.size() == 1);
  CHECK(reply.unanswered[0].probe == "program");
  CHECK(reply.unanswered[0].reason == "it did not answer within 2 s and was killed");
  CHECK(reply.folders.size() == 2);
  CHECK(reply.memory.total_bytes > 0);
  CHECK(reply.load.cores > 0);
}

TEST_CASE("an environment that no program can be started with is each program's problem") {
  wire::CheckRequest request;
  request.programs = {{{"true"}, "/", {}}, {{"false"}, "/", {}}};
  for (int i = 0; i < 70; ++i)
    request.environment.push_back("BIG" + std::to_string(i) + "=" + std::string(100000, 'x'));
  const wire::CheckReply reply = told_by_agent(request);
  REQUIRE(reply.programs.size() == 2);
  for (const wire::ProgramFacts& facts : reply.programs) {
    CHECK(facts.problem.find("its arguments and environment take 6.7 MiB") != std::string::npos);
    CHECK(facts.problem.find("the largest: BIG") != std::string::npos);
    CHECK(facts.advice.find("--clean-env") != std::string::npos);
  }
  REQUIRE_FALSE(reply.unanswered.empty());
  for (const wire::UnansweredProbe& gap : reply.unanswered) {
    CHECK(gap.probe != "program");
    CHECK(gap.reason.find("6.7 MiB") != std::string::npos);
  }
}
