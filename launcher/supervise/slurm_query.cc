// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/slurm_query.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "launcher/plan/slurm_settings.h"
#include "launcher/spawn/slurm/srun_command.h"
#include "launcher/supervise/hosts/host_steps.h"
#include "launcher/supervise/query_command.h"
#include "launcher/supervise/timeouts.h"
#include "src/base/text.h"

namespace hv::launcher {

namespace asio = boost::asio;

namespace {

constexpr std::size_t kReasonShown = 300;

// words: "show config".
asio::awaitable<QueryOutput> run_scontrol(LaunchContext& context, std::string words,
                                          Duration timeout) {
  QueryCommand query{split("scontrol " + words, ' '), "ask Slurm", kMostSlurmConfigBytes, timeout};
  co_return co_await run_query(context.job.executor, srun_environment(context.environment),
                               std::move(query));
}

// Whether agents of this job are processes of a Slurm step: srun starts them, or has started hvrun
// and so the agent on hvrun's own host. Agents that ssh starts are in no step.
bool are_agents_in_step(const LaunchContext& context) {
  if (context.job.spec.access.spawner == SpawnerChoice::kSrun) return true;
  return context.environment.get_filled("SLURM_STEP_ID") &&
         !context.job.all_hosts([](const Host& host) { return !host.target.is_local; });
}

// A restart repeats no warning of the first attempt.
void warn_once(const LaunchContext& context, const std::string& text) {
  if (context.job.identity.restarts == 0) context.warn("warning: " + text);
}

// Returns whether Slurm signals the ranks.
bool report_signals(const LaunchContext& context, const SlurmSettings& settings) {
  const bool signals_ranks = signals_every_process(settings);
  const std::string what = std::string("Slurm signals ") +
                           (signals_ranks ? "every process of a step" : "the agents alone") +
                           ": ProctrackType is " + settings.proctrack;
  context.phase(what);
  if (!signals_ranks || !are_agents_in_step(context)) return signals_ranks;
  const bool is_cgroup = settings.proctrack == "cgroup";
  warn_once(context,
            "Slurm signals every process of a step itself here (ProctrackType=" +
                settings.proctrack + (is_cgroup ? ", SignalChildrenProcesses=yes" : "") +
                "): children of ranks, such as workers that load data, get SIGUSR1 and SIGTERM, "
                "too; with " +
                (is_cgroup ? "SignalChildrenProcesses=no" : "proctrack/cgroup") +
                " ranks alone get them");
  return signals_ranks;
}

// Sets the job's time_to_end, and warns of a --grace that is longer.
void apply_time_to_end(const LaunchContext& context, const SlurmSettings& settings,
                       const QueryOutput& partition) {
  context.job.signals.time_to_end = time_to_end(settings, parse_grace_time(partition.text));
  if (const auto time = context.job.signals.time_to_end)
    context.phase("Slurm leaves a job " + format_duration(*time) + " between SIGTERM and SIGKILL");
  const std::optional<Duration> grace = context.job.spec.ending.grace;
  if (grace && settings.kill_wait && *grace > *settings.kill_wait)
    warn_once(context, "--grace " + format_duration(*grace) + " is longer than Slurm's KillWait, " +
                           format_duration(*settings.kill_wait) +
                           ": at the job's time limit and after scancel Slurm kills the ranks "
                           "earlier");
}

}  // namespace

asio::awaitable<void> SlurmQuery::ask(LaunchContext& context) {
  const TimePoint deadline = now() + kSchedulerQueryTimeout;
  const QueryOutput config = co_await run_scontrol(context, "show config", kSchedulerQueryTimeout);
  const std::optional<SlurmSettings> settings =
      config.reason.empty() ? parse_slurm_settings(config.text) : std::nullopt;
  if (!settings) {
    const std::string reason =
        config.reason.empty() ? "scontrol show config printed no ProctrackType" : config.reason;
    context.phase("assuming that Slurm signals the agents alone: " +
                  printable(reason, kReasonShown));
    co_return;
  }
  QueryOutput partition;
  const auto name = context.environment.get_filled("SLURM_JOB_PARTITION");
  if (settings->preempts && name)
    partition = co_await run_scontrol(context, "-o show partition " + *name, deadline - now());
  signals_ranks_ = report_signals(context, *settings);
  apply_time_to_end(context, *settings, partition);
}

asio::awaitable<void> SlurmQuery::run(LaunchContext& context) {
  co_await ask(context);
  state_ = State::kAnswered;
  context.job.change.notify();
}

void SlurmQuery::begin(LaunchContext& context) {
  Job& job = context.job;
  if (job.spec.access.spawner != SpawnerChoice::kSrun &&
      !context.environment.get_filled("SLURM_STEP_ID") &&
      !context.environment.get_filled("SLURM_JOB_ID"))
    return;
  state_ = State::kRunning;
  asio::co_spawn(job.executor, run(context), asio::detached);
}

asio::awaitable<void> SlurmQuery::wait(LaunchContext& context) const {
  const std::function<bool()> has_ended = [this] { return state_ != State::kRunning; };
  co_await context.job.until(has_ended, TimePoint::max());  // the query has a limit of its own
}

}  // namespace hv::launcher
