// hvrun: the program. Reads the environment once, and calls the subcommand that the words name.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string_view>

#include "launcher/commands/commands.h"
#include "launcher/spawn/go_between.h"
#include "src/base/error.h"
#include "src/process/birth.h"

namespace hv::launcher {
namespace {

constexpr struct {
  const char* name;
  int (*run)(const std::vector<std::string>& words, const Environment& environment);
} kSubcommands[] = {
    {"check", run_check}, {"env", run_env}, {"explain", run_explain}, {"script", run_script}};

// The command horovodrun is this program, called by that name.
bool is_horovodrun(std::string_view called) {
  return called.substr(called.rfind('/') + 1) == "horovodrun";
}

int run(std::string_view called, std::vector<std::string> words) {
  const Environment environment = Environment::of_process();
  for (const auto& subcommand : kSubcommands)
    if (!words.empty() && words[0] == subcommand.name)
      return subcommand.run({words.begin() + 1, words.end()}, environment);
  if (is_horovodrun(called)) words.insert(words.begin(), "--horovod-names");
  return run_launch(words, environment);
}

}  // namespace
}  // namespace hv::launcher

int main(int argc, char** argv) {
  hv::open_missing_streams();
  hv::raise_open_file_limit();
  hv::unblock_signals();
  hv::keep_freed_memory();
  // An inherited SIG_IGN would discard the exit status of children.
  std::signal(SIGCHLD, SIG_DFL);
  int code = 0;
  try {
    code = hv::launcher::run(argv[0], {argv + 1, argv + argc});
  } catch (const hv::Error& error) {
    hv::launcher::print_error(error.what(), error.hint());
    code = static_cast<int>(error.kind());
  } catch (const std::exception& error) {
    hv::launcher::print_error(error.what());
    code = static_cast<int>(hv::ErrorKind::kStart);
  }
  hv::launcher::end_go_betweens();
  // A thread may be blocked forever in a read of stdin or a write to a reader that has stopped.
  std::fflush(nullptr);
  ::_exit(code);
}
