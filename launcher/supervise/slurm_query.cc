// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/slurm_query.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "launcher/plan/slurm_settings.h"
#include "launcher/spawn/process_channel.h"
#include "launcher/supervise/hosts/host_steps.h"
#include "launcher/supervise/timeouts.h"
#include "src/base/clock.h"
#include "src/base/text.h"

namespace hv::launcher {

namespace asio = boost::asio;

namespace {

constexpr std::size_t kReasonShown = 300;

// The settings, or the reason why they are unknown.
struct Answer {
  std::optional<SlurmSettings> settings;
  std::string reason;
};

asio::awaitable<Answer> run_scontrol(Job& job, const Environment& environment) {
  Command command;
  command.argv = {"scontrol", "show", "config"};
  command.environment = environment.entries();
  // Shared with the timer's handler, which may still be queued when this coroutine has ended.
  const auto cancel = std::make_shared<std::function<void()>>();
  const auto is_late = std::make_shared<bool>(false);
  asio::steady_timer limit(job.executor, kSlurmQueryTimeout);
  limit.async_wait([cancel, is_late](const boost::system::error_code& error) {
    if (error || !*cancel) return;
    *is_late = true;
    (*cancel)();
  });
  try {
    const CommandOutput output =
        co_await run_command(command, kMostSlurmConfigBytes, "ask Slurm", cancel.get());
    if (*is_late)
      co_return Answer{
          {}, "scontrol show config has not answered within " + seconds_text(kSlurmQueryTimeout)};
    if (output.text.size() > kMostSlurmConfigBytes)
      co_return Answer{{},
                       "scontrol show config printed more than " +
                           std::to_string(kMostSlurmConfigBytes >> 10) + " KiB"};
    if (!output.clean) co_return Answer{{}, output.words};
    co_return Answer{parse_slurm_settings(output.text),
                     "scontrol show config printed no ProctrackType"};
  } catch (const std::exception& error) {  // what waits for the query must hear of its end
    co_return Answer{{}, error.what()};
  }
}

// Whether Slurm signals the ranks. Reports it, and a KillWait that cuts --grace short.
bool apply_answer(LaunchContext& context, const Answer& answer) {
  if (!answer.settings) {
    context.phase("assuming that Slurm signals the agents alone: " +
                  printable(answer.reason, kReasonShown));
    return false;
  }
  const SlurmSettings& settings = *answer.settings;
  const bool signals_ranks = signals_every_process(settings);
  context.phase(std::string("Slurm signals ") +
                (signals_ranks ? "every process of a step" : "the agents alone") +
                ": ProctrackType is " + settings.proctrack);
  const Duration grace = context.job.spec.ending.grace;
  if (settings.kill_wait && grace > *settings.kill_wait)
    context.warn("warning: --grace " + seconds_text(grace) + " is longer than Slurm's KillWait, " +
                 seconds_text(*settings.kill_wait) +
                 ": at the job's time limit and after scancel Slurm kills the ranks earlier");
  return signals_ranks;
}

}  // namespace

asio::awaitable<void> SlurmQuery::run(LaunchContext& context) {
  const Answer answer = co_await run_scontrol(context.job, context.environment);
  signals_ranks_ = apply_answer(context, answer);
  state_ = State::kAnswered;
  context.job.change.notify();
}

void SlurmQuery::begin(LaunchContext& context) {
  Job& job = context.job;
  if (job.spec.access.spawner != SpawnerChoice::kSrun &&
      !context.environment.get_filled("SLURM_STEP_ID"))
    return;
  state_ = State::kRunning;
  asio::co_spawn(job.executor, run(context), asio::detached);
}

asio::awaitable<void> SlurmQuery::wait(LaunchContext& context) const {
  const std::function<bool()> has_ended = [this] { return state_ != State::kRunning; };
  co_await context.job.until(has_ended, TimePoint::max());  // the query has a limit of its own
}

}  // namespace hv::launcher
