// Tests of hvrun-inventory as the agent runs it: beside the agent, from memory, and when it
// misbehaves.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "hvrun_version.h"
#include "launcher/agent/ending/descendant_hunt.h"
#include "launcher/agent/queries/inventory_run.h"
#include "tests/unit/agent/agent_client.h"
#include "tests/unit/paths.h"
#include "tests/unit/temporary_folder.h"

using namespace hv;
using namespace hv::tests;
using namespace std::chrono_literals;
using launcher::EventLoop;
using launcher::InventoryRun;

namespace {

// A directory in which a script replaces hvrun-inventory.
class Script {
 public:
  explicit Script(const std::string& text) {
    const std::string file = folder_.path() + "/hvrun-inventory";
    std::ofstream(file) << "#!/bin/sh\n" << text << "\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }
  // A script that gives this answer.
  explicit Script(const wire::Inventory& answer) : Script("cat \"${0%/*}/answer\"") {
    std::ofstream(folder_ / "answer", std::ios::binary) << encode(answer);
  }
  std::string folder() const { return folder_.path() + "/"; }

 private:
  TemporaryFolder folder_;
};

wire::InventoryReply run(const std::string& folder, wire::InventoryRequest request = {}) {
  EventLoop loop;
  std::optional<wire::InventoryReply> reply;
  InventoryRun inventory(loop, Environment::of_process(), folder, request,
                         [&](wire::InventoryReply answer) { reply = std::move(answer); });
  CHECK(!reply);  // never before the loop runs
  for (const TimePoint deadline = now() + 20s; !reply && now() < deadline;) {
    loop.run_once(now() + 5ms);
    launcher::reap_children(
        [&](pid_t pid, int status) { inventory.child_ended(pid, ExitStatus::from_wait(status)); });
  }
  REQUIRE(reply);
  return *reply;
}

std::string problem_of(const std::string& script, double timeout_s = 20) {
  wire::InventoryRequest request;
  request.timeout_s = timeout_s;
  return run(Script(script).folder(), request).problem;
}

std::string real_program() {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  std::ifstream file(folder / "hvrun-inventory", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("the agent reports that hvrun-inventory is missing") {
  const wire::InventoryReply reply = run("/none/");
  CHECK(reply.is_missing);
  CHECK(reply.problem == "");
}

TEST_CASE("a program of another user in the agent's directory is not run") {
  const TemporaryFolder folder;
  const Script script("echo run >>" + (folder / "traces"));
  std::filesystem::create_symlink(script.folder() + "hvrun-inventory", folder / "hvrun-inventory");
  CHECK(run(folder.path() + "/").is_missing);
  if (::geteuid() == 0) {
    REQUIRE(::chown((script.folder() + "hvrun-inventory").c_str(), 12345, 0) == 0);
    CHECK(run(script.folder()).is_missing);
  }
  CHECK_FALSE(std::filesystem::exists(folder / "traces"));
}

TEST_CASE("an inventory of this build is an answer, one of another build a problem") {
  wire::Inventory answer;
  answer.build = HVRUN_BUILD_ID;
  answer.gpus.resize(2);
  const wire::InventoryReply reply = run(Script(answer).folder());
  CHECK(reply.problem == "");
  CHECK(reply.inventory.gpus.size() == 2);
  answer.build = "old";
  CHECK(run(Script(answer).folder()).problem ==
        "hvrun-inventory is of another build (old) than the agent");
}

TEST_CASE("an inventory that dies or prints garbage is a problem with its last message") {
  CHECK(problem_of("echo early >&2; echo the reason >&2; exit 3") ==
        "hvrun-inventory ended with exit code 3: the reason");
  CHECK(problem_of("kill -SEGV $$").rfind("hvrun-inventory ended with SIGSEGV", 0) == 0);
  CHECK(problem_of("echo nonsense") == "hvrun-inventory answered with what is no inventory");
  CHECK(problem_of("") == "hvrun-inventory answered with what is no inventory");
}

TEST_CASE("an inventory that hangs is killed in time, together with its children") {
  const TemporaryFolder folder;
  const std::string pids = folder.path() + "/pids";
  const std::string problem =
      problem_of("echo $$ >>" + pids + "; sleep 1000 & echo $! >>" + pids + "; wait", 0.5);
  CHECK(problem.rfind("hvrun-inventory did not answer within 0.5 s", 0) == 0);
  const std::vector<pid_t> started = pids_in(pids, 2);
  wait_until([&] { return !is_alive(started[0]) && !is_alive(started[1]); }, "both are gone");
}

TEST_CASE("an inventory that never stops printing is killed, on either stream") {
  CHECK(problem_of("cat /dev/zero") == "hvrun-inventory said more than 1 MiB and was killed");
  CHECK(problem_of("cat /dev/zero >&2", 0.5).rfind("hvrun-inventory did not answer", 0) == 0);
}

TEST_CASE("an inventory run that is destroyed is killed") {
  const TemporaryFolder folder;
  const Script script("echo $$ >" + folder.path() + "/pid; exec sleep 1000");
  EventLoop loop;
  std::optional<InventoryRun> inventory;
  inventory.emplace(loop, Environment::of_process(), script.folder(), wire::InventoryRequest{},
                    [](const wire::InventoryReply&) { FAIL("no answer is wanted"); });
  const pid_t pid = pids_in(folder.path() + "/pid", 1)[0];
  inventory.reset();
  wait_until([pid] { return !is_alive(pid); }, "it is gone");
}

TEST_CASE("the inventory runs from memory, without a file on the host") {
  wire::InventoryRequest request;
  request.program = real_program();
  REQUIRE(request.program.size() > 1000);
  const wire::InventoryReply reply = run("/none/", request);
  CHECK(reply.problem == "");
  CHECK(!reply.is_missing);
  CHECK(reply.inventory.build == HVRUN_BUILD_ID);
  request.program =
      "\x7f"
      "ELF no program";
  CHECK(run("/none/", request).problem != "");
}

TEST_CASE("an agent answers any number of inventory requests before its setup, then runs the job") {
  AgentClient client;
  client.send(wire::InventoryRequest{});
  const auto reply = client.expect<wire::InventoryReply>();
  CHECK(reply.problem == "");
  CHECK(reply.inventory.build == HVRUN_BUILD_ID);
  client.send(wire::InventoryRequest{});
  (void)client.expect<wire::InventoryReply>();
  (void)client.set_up();
  (void)client.start(launch_shell("echo hello"));
  CHECK(client.output_of(0) == "hello\n");
  CHECK(client.finish() == 0);
}

TEST_CASE("an agent refuses a setup and a second request while an inventory runs") {
  for (const bool is_setup : {true, false}) {
    AgentClient client({}, {"HVRUN_TEST_NVML=hang", "LD_LIBRARY_PATH=" + test_library("nvml")});
    client.send(wire::InventoryRequest{});
    is_setup ? client.send(wire::SetupRequest{}) : client.send(wire::InventoryRequest{});
    CHECK(client.wait_for_exit(10s) != 0);
  }
}

TEST_CASE("an agent that gets End while an inventory runs leaves no process behind") {
  AgentClient client({}, {"HVRUN_TEST_NVML=hang", "LD_LIBRARY_PATH=" + test_library("nvml")});
  client.send(wire::InventoryRequest{});
  CHECK_FALSE(client.comes<wire::InventoryReply>(100ms));
  CHECK(client.finish() == 0);
}
