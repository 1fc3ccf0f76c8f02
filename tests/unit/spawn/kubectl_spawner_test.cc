// Tests of agents in pods: how kubectl is called, what is awaited and what is not.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/late_hosts.h"
#include "launcher/spawn/spawner.h"
#include "src/base/text.h"
#include "tests/unit/spawn/trial.h"

using namespace hv;
using namespace hv::launcher;
using namespace hv::launcher::trial;
using namespace std::chrono_literals;

namespace {

struct PodWorld {
  TemporaryFolder folder;
  const std::string home = "export XDG_CACHE_HOME=" + folder.folder("pod");

  SpawnOptions options(const std::string& prologue) const {
    SpawnOptions made = options_for(folder);
    made.reach.kubectl = {fake_kubectl(folder, prologue), {"-c", "main"}};
    return made;
  }
  std::string words() const { return file_content(folder / "kubectl-words"); }
};

const HostTarget kPod{"w-0", "", 0, "", false};

std::string kubectl_hello(const SpawnOptions& options) {
  asio::io_context io;
  const auto spawner = make_spawner(options);
  const auto channel = run(io, spawner->start(kPod));
  return run(io, read_exactly(*channel, 5));
}

Error kubectl_failure(const SpawnOptions& options, const HostTarget& host = kPod) {
  asio::io_context io;
  const auto spawner = make_spawner(options);
  return start_error(io, *spawner, host);
}

std::string fails_saying(const std::string& words) { return "echo \"" + words + "\" >&2; exit 1"; }

// The first so many times.
std::string fails_first(const PodWorld& world, int times, const std::string& words) {
  const std::string count = world.folder / "count";
  return "echo x >>" + count + "; [ $(wc -l <" + count + ") -gt " + std::to_string(times) +
         " ] || { " + fails_saying(words) + "; }; " + world.home;
}

constexpr const char* kNotFound = "Error from server (NotFound): pods \\\"w-0\\\" not found";

}  // namespace

TEST_CASE("kubectl gets words: the options, the pod, and a shell with the start line") {
  const PodWorld world;
  CHECK(kubectl_hello(world.options(world.home)) == "HELLO");
  CHECK(world.words().find("exec|-i|-c|main|w-0|--|/bin/sh|-c|exec /bin/sh -c ") == 0);
}

TEST_CASE("--rsh with a program named kubectl is called for pods, whoever named the hosts") {
  const PodWorld world;
  SpawnOptions options = world.options(world.home);
  options.remote_shell = options.reach.kubectl.program + " -n jobs exec";
  options.reach = {};
  CHECK(kubectl_hello(options) == "HELLO");
  CHECK(world.words().find("exec|-i|-n|jobs|w-0|--|/bin/sh|-c|exec /bin/sh -c ") == 0);
  options.remote_shell = "kubectl exec -it";
  CHECK(kubectl_failure(options).kind() == ErrorKind::kUsage);
}

TEST_CASE("--rsh with another program counts more than how the hosts would be reached") {
  const PodWorld world;
  SpawnOptions options = world.options(fails_saying("kubectl was called"));
  options.remote_shell = FakeRsh(world.folder, "sh", world.home).command();
  CHECK(kubectl_hello(options) == "HELLO");
}

TEST_CASE("a pod that is not there yet is tried again until it is") {
  const PodWorld world;
  CHECK(kubectl_hello(world.options(fails_first(world, 2, kNotFound))) == "HELLO");
  CHECK(file_content(world.folder / "count") == "x\nx\nx\n");
}

TEST_CASE("a pod that never comes is a timeout with kubectl's last words and what to see") {
  const PodWorld world;
  SpawnOptions options = world.options(fails_saying(kNotFound));
  options.start_timeout = 700ms;
  const Error error = kubectl_failure(options);
  CHECK(error.kind() == ErrorKind::kTimeout);
  const std::string words = error.what();
  CAPTURE(words);
  CHECK(contains(error.what(),
                 "host w-0: kubectl ended with exit code 1: Error from server "
                 "(NotFound): pods \"w-0\" not found, until the 0.7 s of "
                 "--start-timeout were over"));
  CHECK(contains(error.hint(), "kubectl describe pod w-0"));
}

TEST_CASE("a kubectl that hangs at the second attempt is told by what the first one said") {
  const PodWorld world;
  const std::string count = world.folder / "count";
  SpawnOptions options =
      world.options("if [ -e " + count + " ]; then exec tail -f /dev/null; fi; >" + count + "; " +
                    fails_saying(kNotFound));
  options.start_timeout = 900ms;
  const Error error = kubectl_failure(options);
  CHECK(error.kind() == ErrorKind::kTimeout);
  CHECK(contains(error.what(), "(NotFound)"));
}

TEST_CASE("what no patience mends is not tried again") {
  const PodWorld world;
  const Error error = kubectl_failure(world.options(fails_first(
      world, 9,
      "Error from server (Forbidden): pods \\\"w-0\\\" is forbidden: User \\\"u\\\" cannot create "
      "resource \\\"pods/exec\\\" in API group")));
  CHECK(error.kind() == ErrorKind::kStart);
  CHECK(contains(error.what(), "cannot create resource \"pods/exec\""));
  CHECK(contains(error.hint(), "create pods/exec"));
  CHECK(file_content(world.folder / "count") == "x\n");
}

TEST_CASE("a pod that was there and is gone is not awaited again") {
  const PodWorld world;
  const SpawnOptions options = world.options("[ ! -e " + world.folder / "gone" + " ] || { " +
                                             fails_saying(kNotFound) + "; }; " + world.home);
  asio::io_context io;
  const auto spawner = make_spawner(options);
  run(io, spawner->start(kPod))->close();
  write_file(world.folder / "gone", "");
  const Error error = start_error(io, *spawner, kPod);
  CHECK(error.kind() == ErrorKind::kStart);
  CHECK(contains(error.what(), "(NotFound)"));
}

TEST_CASE("what only SSH understands is refused for a pod, and so is a name that is an option") {
  const PodWorld world;
  SpawnOptions options = world.options(world.home);
  for (const HostTarget& host :
       {HostTarget{"w-0", "ada", 0, "", false}, HostTarget{"w-0", "", 22, "", false},
        HostTarget{"w-0", "", 0, "key", false}, HostTarget{"w-0", "", 0, "", false, "10.0.0.1"},
        HostTarget{"-it", "", 0, "", false}}) {
    const Error error = kubectl_failure(options, host);
    CHECK(error.kind() == ErrorKind::kUsage);
    CHECK_FALSE(error.hint().empty());
  }
  options.accept_new_host_keys = true;
  CHECK(contains(kubectl_failure(options).what(), "--ssh-accept-new"));
  CHECK(world.words() == "");
}

TEST_CASE("a lost host is looked at in the way in which it was reached") {
  const PodWorld world;
  SpawnOptions options = world.options(world.home);
  CHECK(contains(make_spawner(options)->advice_if_lost(kPod), "kubectl describe pod w-0"));
  options.reach = {};
  CHECK(contains(make_spawner(options)->advice_if_lost(kPod), "by ssh"));
  options.by_srun = true;
  CHECK(contains(make_spawner(options)->advice_if_lost(kPod), "scontrol show node w-0"));
}
