// What a start by srun that does not come to its end leaves on the nodes: nothing. With a stand-in
// for srun.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/spawner.h"
#include "tests/unit/spawn/trial.h"

using namespace hv;
using namespace hv::launcher;
using namespace hv::launcher::trial;
using namespace std::chrono_literals;

namespace {

// The agent's own file is not on the nodes; `copying` is done with a copy, `removing` with rm.
SpawnOptions with_srun(const TemporaryFolder& folder, const std::string& copying,
                       const std::string& removing) {
  write_file(
      folder / "srun",
      "#!/bin/sh\nfor word; do case $word in\n"
      "--bcast=*) echo ${word#--bcast=} >>" +
          folder / "copied" + "; " + copying +
          " ;;\n"
          "rm) shift $(($# - 1)); echo $1 >>" +
          folder / "removed" + "; " + removing +
          " ;;\n"
          "esac; done\n"
          "echo 'slurmstepd: error: execve(): agent: No such file or directory' >&2; exit 2\n",
      0755);
  SpawnOptions options = options_for(folder);
  options.environment.set("PATH", folder.path() + ":/usr/bin:/bin");
  options.by_srun = true;
  options.start_timeout = 1s;
  return options;
}

Error srun_failure(Spawner& spawner, asio::io_context& io) {
  return start_error(io, spawner, {"n1", "", 0, "", false});
}

bool tidy_up(Spawner& spawner, asio::io_context& io) {
  const auto tidied = [](Spawner& of) -> asio::awaitable<bool> {
    co_await of.tidy_up();
    co_return true;
  };
  return run(io, tidied(spawner));
}

}  // namespace

TEST_CASE("copies that were under way at the deadline are removed, after the reason is there") {
  const TemporaryFolder folder;
  asio::io_context io;
  const auto spawner = make_spawner(with_srun(folder, "exec sleep 100", "exit 0"));
  CHECK(srun_failure(*spawner, io).kind() == ErrorKind::kTimeout);
  CHECK(file_content(folder / "removed").empty());
  CHECK(tidy_up(*spawner, io));
  const std::string removed = file_content(folder / "removed");
  CHECK(removed.find("/tmp/hvrun-agent-") == 0);
  CHECK(removed == file_content(folder / "copied"));
}

TEST_CASE("a folder that takes no programs is left as it was, and the next is tried") {
  const TemporaryFolder folder;
  asio::io_context io;
  const std::string refused =
      "echo 'slurmstepd: error: execve(): agent: Permission denied' >&2; exit 1";
  SpawnOptions options = with_srun(folder, refused, "exit 0");
  options.start_timeout = 10s;
  const auto spawner = make_spawner(options);
  CHECK(contains(srun_failure(*spawner, io).what(), "Permission denied"));
  CHECK(tidy_up(*spawner, io));
  const std::string copied = file_content(folder / "copied");
  for (const char* tried : {"/tmp/", "/dev/shm/", "/var/tmp/"}) CHECK(contains(copied, tried));
  CHECK(file_content(folder / "removed") == copied);
}

TEST_CASE("copies that were refused are removed, though removing one does not end") {
  const TemporaryFolder folder;
  asio::io_context io;
  const auto spawner = make_spawner(
      with_srun(folder, "echo 'srun: error: no space left' >&2; exit 1", "exec sleep 100"));
  const Error error = srun_failure(*spawner, io);
  CHECK(contains(error.what(), "no space left"));
  CHECK(file_content(folder / "removed").empty());
  CHECK(tidy_up(*spawner, io));
  CHECK(file_content(folder / "removed") == file_content(folder / "copied"));
}
