// hvrun-agent: started by hvrun on every host of a job; talks to it over its standard streams, or
// by TCP where srun has started it.
// SPDX-License-Identifier: Apache-2.0
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string_view>

#include "hvrun_version.h"
#include "launcher/agent/agent.h"
#include "launcher/agent/agent_options.h"
#include "launcher/agent/control_connection.h"
#include "launcher/agent/ending/guard.h"
#include "launcher/probes/host_probe.h"
#include "launcher/probes/pair_measure.h"
#include "src/base/environment.h"
#include "src/net/interfaces.h"
#include "src/process/birth.h"
#include "src/process/command.h"

namespace hv::launcher {
namespace {

int explain_usage() {
  std::fputs(
      "hvrun-agent is started by hvrun and speaks with it; of its own it has --version only.\n",
      stderr);
  return 2;
}

// While there is nothing to end in order: a signal that ends processes ends this one, and so does
// the end of its guard. Slurm may end a step whose hvrun is stopped.
class EndsBySignal {
 public:
  EndsBySignal() {
    ::sigemptyset(&signals_);
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals_, number);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::sigprocmask(SIG_UNBLOCK, &signals_, nullptr);
  }
  ~EndsBySignal() {
    ::sigprocmask(SIG_BLOCK, &signals_, nullptr);
    ::prctl(PR_SET_PDEATHSIG, 0);
  }
  EndsBySignal(const EndsBySignal&) = delete;
  EndsBySignal& operator=(const EndsBySignal&) = delete;

 private:
  sigset_t signals_;
};

// nullptr after reporting why on stderr, which srun forwards to hvrun.
std::unique_ptr<HvrunStream> stream_to_hvrun(const AgentOptions& options,
                                             const Environment& environment) {
  if (options.hvrun.empty()) return plain_stream(0, 1);
  const EndsBySignal ends_by_signal;
  const std::string node(environment.get_or("SLURMD_NODENAME", own_hostname()));
  JobKey key;
  ControlConnection connection;
  Status status = read_key(STDIN_FILENO, TimePoint::max(), &key);
  const std::string name = (options.step + "/" + node).substr(0, kMostAgentName);
  ConnectWait wait;
  wait.life = STDIN_FILENO;
  if (status.ok()) status = connect_to_hvrun(options.hvrun, name, key, wait, &connection);
  if (status.ok()) return sealed_stream(std::move(connection.socket), connection.keys);
  std::fprintf(stderr, "hvrun-agent on host %s: %s\n", node.c_str(), status.message.c_str());
  return nullptr;
}

void remove_own_file() {
  const std::string file = own_file();
  if (!file.empty()) ::unlink(file.c_str());
}

int run(int argc, char** argv) {
  if (argc == 2 && argv[1] == std::string_view(kMeasure)) return run_pair_measure();
  if (argc == 2 && argv[1] == std::string_view(kProbe)) return run_host_probes();
  const auto options = parse_agent_options({argv + 1, argv + argc});
  if (!options) return explain_usage();
  if (options->shows_version) {
    std::puts("hvrun-agent " HVRUN_VERSION_TEXT " " HVRUN_BUILD_ID);
    return 0;
  }
  if (options->removes_itself) remove_own_file();
  raise_open_file_limit();
  keep_freed_memory();
  const Environment environment = Environment::of_process();
  GuardBoard board;
  UniqueFd guard_life = split_off_guard(argc, argv, &board);
  // The file may be a copy with another name.
  ::prctl(PR_SET_NAME, "hvrun-agent");
  auto stream = stream_to_hvrun(*options, environment);
  if (stream == nullptr) return 1;
  Agent agent(environment, std::move(stream), std::move(guard_life), board);
  // ~Agent removes the ranks' directories and sockets; no process of the job runs any more.
  return agent.run(options->lost_after);
}

}  // namespace
}  // namespace hv::launcher

int main(int argc, char** argv) {
  hv::open_missing_streams();
  return hv::launcher::run(argc, argv);
}
