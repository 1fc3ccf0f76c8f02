// hvrun: the program. Reads the world once, and hands it on as values.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "launcher/allocation/allocate.h"
#include "launcher/cli/command_line.h"
#include "launcher/cli/env_command.h"
#include "launcher/cli/knobs.h"
#include "launcher/facts/facts.h"
#include "launcher/plan/plan_text.h"
#include "launcher/spawn/go_between.h"
#include "launcher/supervise/supervisor.h"
#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/process/birth.h"

namespace hv::launcher {
namespace {

std::string current_directory() {
  char path[PATH_MAX];
  if (!::getcwd(path, sizeof path)) {
    throw Error(ErrorKind::kUsage, "find the current directory: " + errno_text(errno),
                "change to one that exists, or name the ranks' with --wdir");
  }
  return path;
}

int print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
    return 0;
  const int error = errno;
  throw Error(ErrorKind::kStart, "write to standard output: " + errno_text(error),
              error == ENOSPC || error == EDQUOT
                  ? "free some space, or send it elsewhere ('hvrun ... | less')"
                  : "see where standard output leads, or send it elsewhere ('hvrun ... | less')");
}

// What of the plan is known without asking any host but this one.
int print_offline_plan(const JobSpec& spec, const HostList& list, const Environment& environment) {
  std::vector<std::optional<HostFacts>> facts(list.this_machine ? 1 : list.entries.size());
  if (list.this_machine) {
    facts[0] = host_facts(gather_facts(environment));
  }
  const LaunchPlan plan = make_plan(spec, list, facts);
  for (const std::string& warning : plan.warnings)
    std::fprintf(stderr, "hvrun: warning: %s\n", warning.c_str());
  return print(spec.format == PlanFormat::kJson ? plan_as_json(spec, plan)
                                                : plan_as_text(spec, plan));
}

int launch(const JobSpec& spec, const Environment& environment) {
  const HostList list = find_hosts(spec.hosts, environment).list;
  for (const std::string& line : vain_variables(environment))
    std::fprintf(stderr, "hvrun: warning: %s\n", line.c_str());
  if (spec.dry_run_offline) return print_offline_plan(spec, list, environment);
  check_stated_slots(spec, list);
  configure_log(spec.verbose ? LogLevel::kInfo : LogLevel::kWarn, "hvrun");
  return supervise_job(spec, list, environment);
}

// With all of it in view a malformed one is the easier to mend.
int print_env(const Environment& environment) {
  const EnvTable table = env_table(environment);
  const int code = print(table.text);
  if (table.trouble) throw *table.trouble;
  return code;
}

int run(const std::vector<std::string>& words) {
  const Environment environment = Environment::of_process();
  const CommandLine command = parse_command_line(words, environment, current_directory);
  if (const auto* text = std::get_if<PrintCommand>(&command)) return print(text->text);
  if (const auto* env = std::get_if<EnvCommand>(&command))
    return env->shows_algorithms ? print(env_algorithms(environment)) : print_env(environment);
  return launch(std::get<LaunchCommand>(command).spec, environment);
}

}  // namespace
}  // namespace hv::launcher

int main(int argc, char** argv) {
  hv::open_missing_streams();
  hv::raise_open_file_limit();
  hv::unblock_signals();
  hv::keep_freed_memory();
  // Inherited as ignored it would take the status of children away.
  std::signal(SIGCHLD, SIG_DFL);
  int code = 0;
  try {
    code = hv::launcher::run({argv + 1, argv + argc});
  } catch (const hv::Error& error) {
    std::fprintf(stderr, "hvrun: error: %s\n", error.what());
    if (!error.hint().empty()) std::fprintf(stderr, "  try: %s\n", error.hint().c_str());
    code = static_cast<int>(error.kind());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hvrun: error: %s\n", error.what());
    code = static_cast<int>(hv::ErrorKind::kStart);
  }
  hv::launcher::end_go_betweens();
  // A thread may be blocked for good in a read of stdin or a write to a reader that stands still.
  std::fflush(nullptr);
  ::_exit(code);
}
