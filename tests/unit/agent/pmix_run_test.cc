// Tests of hvrun-pmix as the agent runs it: when it is not there, and when it misbehaves.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/mpi/pmix_run.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "launcher/agent/ending/descendant_hunt.h"
#include "tests/unit/agent/agent_client.h"
#include "tests/unit/temporary_folder.h"

using namespace hv;
using namespace hv::tests;
using namespace std::chrono_literals;
using launcher::EventLoop;
using launcher::PmixRun;

namespace {

// A run of a script that stands for hvrun-pmix, with what the agent hears of it.
struct Run {
  explicit Run(const std::string& script, double timeout_s = 20) {
    const std::string file = folder / "hvrun-pmix";
    std::ofstream(file) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    request.timeout_s = timeout_s;
    request.world = {"space", {"a"}, {0}, {0}};
    start(folder.path() + "/");
  }
  void start(const std::string& programs) {
    run = std::make_unique<PmixRun>(
        loop, Environment::from_entries({"PATH=/usr/bin:/bin", "PMIX_NAMESPACE=other"}), programs,
        request,
        launcher::PmixCallbacks{[this](const wire::WiringReply& told) { reply = told; },
                                [](const wire::FenceIn&) {},
                                [this](const std::string& words) { loss = words; }, [] {}});
  }
  void until(const std::function<bool()>& holds) {
    for (const TimePoint deadline = now() + 20s; !holds() && now() < deadline;) {
      loop.run_once(now() + 5ms);
      launcher::reap_children(
          [&](pid_t pid, int status) { run->child_ended(pid, ExitStatus::from_wait(status)); });
    }
    REQUIRE(holds());
  }
  const wire::WiringReply& answer() {
    until([this] { return reply.has_value(); });
    return *reply;
  }

  TemporaryFolder folder;
  wire::WiringRequest request;
  EventLoop loop;
  std::optional<wire::WiringReply> reply;
  std::string loss;
  std::unique_ptr<PmixRun> run;
};

}  // namespace

TEST_CASE("the agent reports that hvrun-pmix is missing") {
  Run run("exit 0");
  run.reply.reset();
  run.start("/none/");
  CHECK(run.answer().is_missing);
  CHECK(run.run->directory() == "");
}

TEST_CASE("an hvrun-pmix that dies is a problem with its message") {
  CHECK(Run("echo the reason >&2; exit 3").answer().problem ==
        "hvrun-pmix ended with exit code 3: the reason");
  CHECK(Run("exit 0").answer().problem == "hvrun-pmix ended with exit code 0");
  CHECK(Run("echo nonsense >&0; cat >/dev/null").answer().problem.rfind("hvrun-pmix ended", 0) ==
        0);
}

TEST_CASE("an hvrun-pmix that hangs is killed in time") {
  Run run("echo $$ >${0%/*}/pid; exec sleep 1000", 0.5);
  CHECK(run.answer().problem == "hvrun-pmix did not answer within 0.5 s and was killed");
  const pid_t pid = pids_in(run.folder / "pid", 1)[0];
  wait_until([pid] { return !is_alive(pid); }, "it is gone");
}

TEST_CASE("an hvrun-pmix run that is destroyed is killed, and its directory is removed") {
  Run run("echo $$ >${0%/*}/pid; exec sleep 1000");
  const pid_t pid = pids_in(run.folder / "pid", 1)[0];
  const std::string kept = run.run->directory();
  REQUIRE(std::filesystem::is_directory(kept));
  CHECK(std::filesystem::status(kept).permissions() == std::filesystem::perms::owner_all);
  std::ofstream(kept + "/file") << "text";
  run.run.reset();
  wait_until([pid] { return !is_alive(pid); }, "it is gone");
  CHECK_FALSE(std::filesystem::exists(kept));
}

TEST_CASE("variables of another launcher's PMIx do not reach hvrun-pmix") {
  Run run("env >&2; exit 1");
  CHECK(run.answer().problem.find("PMIX_NAMESPACE") == std::string::npos);
  CHECK(run.answer().problem.find("PATH=/usr/bin:/bin") != std::string::npos);
}

TEST_CASE("frames pass between agent and hvrun-pmix until one of them hangs up") {
  AgentClient client;
  client.set_up();
  client.send(wire::WiringRequest{{"space", {"a"}, {0, 0}, {0, 0}}, 20});
  const auto reply = client.expect<wire::WiringReply>();
  CHECK(reply.problem == "");
  CHECK_FALSE(reply.is_missing);
  client.prepare(launch_shell("echo $PMIX_NAMESPACE $PMIX_RANK $OMPI_MCA_ess", 2));
  client.send(wire::Go{});
  client.expect<wire::Started>();
  CHECK(client.output_of(1) == "space 1 pmi\n");
  CHECK(client.finish() == 0);
}
