// Programs that LD_LIBRARY_PATH or LD_PRELOAD break run once more without them.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/loader_settings.h"

#include "launcher/spawn/process_channel.h"
#include "tests/unit/spawn/trial.h"

using namespace hv;
using namespace hv::launcher;
using namespace hv::launcher::trial;

namespace {

// Ends as words say where LD_LIBRARY_PATH is set, and counts its runs.
std::string broken_program(const TemporaryFolder& folder, const std::string& end) {
  write_file(folder / "program",
             "#!/bin/sh\necho run >>" + folder / "runs" + "\n[ -z \"$LD_LIBRARY_PATH\" ] || { " +
                 end + "; }\necho fine\n",
             0755);
  return folder / "program";
}

CommandOutput run_it(const std::string& program, std::vector<std::string> environment) {
  asio::io_context io;
  Command command;
  command.argv = {program};
  command.environment = std::move(environment);
  std::function<void()> cancel;
  return run(io, run_command(command, 1000, "try it", &cancel));
}

}  // namespace

TEST_CASE("a failure of the dynamic loader is told from others") {
  for (const std::string words :
       {"ssh ended with exit code 255: OpenSSL version mismatch. Built against 30000020, you have "
        "30100030",
        "ssh ended with exit code 127: ssh: symbol lookup error: ssh: undefined symbol: "
        "EVP_MD_size, version OPENSSL_3.0.0",
        "ssh: error while loading shared libraries: libcrypto.so.3: file too short",
        "srun: /opt/conda/lib/libcrypto.so.3: version `OPENSSL_3.0.9' not found (required by srun)",
        "ssh ended with SIGSEGV (Segmentation fault)"})
    CHECK(is_loader_failure(words));
  for (const std::string words :
       {"", "ssh ended with exit code 255: Permission denied (publickey).",
        "ssh ended with exit code 127: bash: no-such-command: command not found"})
    CHECK_FALSE(is_loader_failure(words));
}

TEST_CASE("a command that LD_LIBRARY_PATH breaks runs again without it, and other failures stand") {
  const TemporaryFolder folder;
  const std::vector<std::string> settings{"PATH=/usr/bin:/bin", "LD_LIBRARY_PATH=/no/such/conda"};
  SUBCASE("by its loader") {
    const std::string end =
        "echo 'OpenSSL version mismatch. Built against 1, you have 2' >&2; exit 255";
    const CommandOutput output = run_it(broken_program(folder, end), settings);
    CHECK(output.clean);
    CHECK(output.text == "fine\n");
  }
  SUBCASE("by a signal") { CHECK(run_it(broken_program(folder, "kill -SEGV $$"), settings).clean); }
  SUBCASE("by something else") {
    const std::string program = broken_program(folder, "echo no; exit 1");
    CHECK_FALSE(run_it(program, settings).clean);
    CHECK(file_content(folder / "runs") == "run\n");
  }
}

TEST_CASE("an ssh that LD_PRELOAD breaks starts the agent without it") {
  const TemporaryFolder folder;
  write_file(
      folder / "rsh",
      "#!/bin/sh\n[ -z \"$LD_PRELOAD\" ] || { echo 'rsh: symbol lookup error: x.so: undefined "
      "symbol: y' >&2; exit 127; }\nexport HOME=" +
          folder.folder("home") + "; unset XDG_CACHE_HOME\nexec sh -c \"$2\"\n",
      0755);
  SpawnOptions options = options_for(folder, folder / "rsh");
  options.environment.set("LD_PRELOAD", "/no/such/x.so");
  asio::io_context io;
  const auto spawner = make_spawner(options);
  const auto channel = run(io, spawner->start({"b", "", 0, "", false}));
  CHECK(run(io, read_exactly(*channel, 5)) == "HELLO");
}
