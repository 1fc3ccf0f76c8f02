// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/slurm/srun_spawner.h"

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "launcher/allocation/scheduler.h"
#include "launcher/spawn/loader_settings.h"
#include "launcher/spawn/process_channel.h"
#include "launcher/spawn/slurm/srun_command.h"
#include "launcher/spawn/start_deadline.h"
#include "src/base/text.h"
#include "src/wire/agent_greeting.h"
#include "src/wire/wipe.h"

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kSrunTextShown = 600;
// One may take no programs (noexec).
constexpr std::array kFoldersForCopies{"/tmp", "/dev/shm", "/var/tmp"};
constexpr auto kTimeToRemove = std::chrono::seconds(10);
// After an agent's stream has ended srun may still tell why.
constexpr auto kTimeForWords = std::chrono::milliseconds(300);

}  // namespace

struct SrunSpawner::Step {
  std::string name;    // of this start: what agents of an earlier one, still on their way, lack
  int component = -1;  // SrunStep's
  std::vector<std::string> nodes;
  std::unique_ptr<ProcessChannel> srun;
  std::optional<Error> error;  // srun has ended, or was never there
  std::size_t arrived = 0;

  bool is_complete() const { return arrived == nodes.size(); }
};

struct SrunSpawner::Arrival {
  Arrival(asio::any_io_executor executor, std::string name)
      : node(std::move(name)), change(executor, TimePoint::max()) {}
  std::string node;
  std::shared_ptr<Step> step;
  std::unique_ptr<AgentChannel> channel;
  asio::steady_timer change;
};

SrunSpawner::SrunSpawner(const SpawnOptions& options)
    : options_(options),
      environment_(srun_environment(options.environment).entries()),
      component_of_(slurm_component_of_nodes(options.environment)) {}

namespace {

// An agent's channel that keeps its srun, and has the words of both.
template <class Step>
class StepChannel : public AgentChannel {
 public:
  StepChannel(std::unique_ptr<AgentChannel> channel, std::shared_ptr<Step> step, std::string node)
      : channel_(std::move(channel)), step_(std::move(step)), node_(std::move(node)) {}

  asio::awaitable<std::size_t> read_some(asio::mutable_buffer buffer) override {
    const std::size_t got = co_await channel_->read_some(buffer);
    if (got == 0 && !is_closed_ && !step_->error) {
      boost::system::error_code ignored;
      asio::steady_timer pause(co_await asio::this_coro::executor, kTimeForWords);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    co_return got;
  }
  asio::awaitable<bool> write(asio::const_buffer buffer) override {
    return channel_->write(buffer);
  }
  void close() override {
    is_closed_ = true;
    channel_->close();
  }
  std::string last_words() const override {
    const std::string own = channel_->last_words(),
                      said = gist_of_srun(step_->srun->last_words(), node_, kSrunTextShown);
    return own.empty() || said.empty() ? own + said : own + "; " + said;
  }

 private:
  std::unique_ptr<AgentChannel> channel_;
  std::shared_ptr<Step> step_;
  const std::string node_;
  bool is_closed_ = false;
};

}  // namespace

// The first one that is asked for opens a step, and whoever is asked for in the same turn of the
// loop comes with it; each component of a heterogeneous job takes a step of its own.
std::shared_ptr<SrunSpawner::Step> SrunSpawner::step_for(asio::any_io_executor executor,
                                                         const std::string& node) {
  const auto found = component_of_.find(node);
  const int component = found == component_of_.end() ? -1 : found->second;
  std::shared_ptr<Step>& next = next_[component];
  if (next == nullptr) {
    next = std::make_shared<Step>();
    next->component = component;
    asio::post(executor, [this, executor, component] {
      asio::co_spawn(executor, run(std::exchange(next_[component], nullptr)), asio::detached);
    });
  }
  next->nodes.push_back(node);
  return next;
}

SrunSpawner::Arrival* SrunSpawner::awaited(const std::string& agent) {
  const auto found = std::find_if(arrivals_.begin(), arrivals_.end(), [&](const Arrival* arrival) {
    return arrival->channel == nullptr && arrival->step->name + "/" + arrival->node == agent;
  });
  return found == arrivals_.end() ? nullptr : *found;
}

void SrunSpawner::open_gate(const asio::any_io_executor& executor) {
  gate_ = std::make_unique<AgentGate>(
      executor, options_.port_range,
      GateCallbacks{[this](const std::string& agent) { return awaited(agent) != nullptr; },
                    [this](const std::string& agent, std::unique_ptr<AgentChannel> channel) {
                      Arrival* const arrival = awaited(agent);
                      arrival->channel = std::move(channel);
                      if (++arrival->step->arrived == arrival->step->nodes.size())
                        wake(*arrival->step);
                    }});
}

void SrunSpawner::wake(const Step& step) {
  for (Arrival* arrival : arrivals_)
    if (arrival->step.get() == &step) arrival->change.cancel();
}

// Nobody goes on before all of the step are there: it may have to be begun anew.
asio::awaitable<std::unique_ptr<AgentChannel>> SrunSpawner::start(HostTarget host) {
  const auto executor = co_await asio::this_coro::executor;
  StartDeadline deadline(executor, options_.start_timeout);
  if (gate_ == nullptr) open_gate(executor);
  Arrival arrival(executor, host.name);
  const std::string doing = "start the agent on host " + host.name + " by srun";
  const auto phase = deadline.enter(
      doing,
      "see whether the step runs (squeue -s), and whether its nodes reach this host at " +
          join(gate_->addresses(), " or "),
      [&arrival] { arrival.change.cancel(); });
  arrival.step = step_for(executor, host.name);
  const auto place = arrivals_.insert(arrivals_.end(), &arrival);
  while (!arrival.step->is_complete() && !arrival.step->error && !deadline.passed()) {
    boost::system::error_code ignored;
    co_await arrival.change.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  arrivals_.erase(place);
  if (arrival.channel != nullptr && !arrival.step->error)
    co_return std::make_unique<StepChannel<Step>>(std::move(arrival.channel), arrival.step,
                                                  arrival.node);
  if (arrival.step->error) throw Error(*arrival.step->error);
  const std::string words = arrival.step->srun == nullptr ? "" : arrival.step->srun->last_words();
  if (words.empty()) deadline.throw_if_passed();
  throw Error(
      ErrorKind::kTimeout,
      doing + ": not done within " + format_duration(options_.start_timeout) +
          " (--start-timeout); srun said: " + gist_of_srun(words, arrival.node, kSrunTextShown),
      srun_advice(words));
}

Error SrunSpawner::failure(const std::string& words) {
  return {ErrorKind::kStart, "start the agents by srun: " + gist_of_srun(words, "", kSrunTextShown),
          srun_advice(words)};
}

// To the end of srun. A copy of the agent goes with it only where its own file is not on all nodes.
asio::awaitable<void> SrunSpawner::run(std::shared_ptr<Step> step) {
  try {
    std::vector<std::string> tried = environment_;
    std::string words = co_await run_srun(step, "");
    // Another component's step may have removed them from environment_ meanwhile.
    if (step->arrived == 0 && !is_over_ && is_loader_failure(words) &&
        remove_loader_settings(&tried)) {
      environment_ = std::move(tried);
      warn_of_loader_settings("srun", words);
      words = co_await run_srun(step, "");
    }
    const bool is_elsewhere = !step->is_complete() && is_agent_missing(words);
    for (const char* folder : kFoldersForCopies) {
      if (!is_elsewhere || is_over_) break;
      step->arrived = 0;
      for (Arrival* arrival : arrivals_)
        if (arrival->step == step) arrival->channel = nullptr;
      const std::string copy = std::string(folder) + "/hvrun-agent-" + random_hex(8);
      copies_.push_back({step, copy});
      words = co_await run_srun(step, copy);
      // Of the last try tidy_up() removes them, once the reason has been told.
      if (step->is_complete() || is_over_ || !is_agent_forbidden(words)) break;
      Copies refused{step, copy};
      copies_.pop_back();
      co_await remove_copies(std::move(refused));
    }
    step->error = failure(words);
  } catch (const Error& error) {
    step->error = error;
  }
  wake(*step);
}

// How it ended.
asio::awaitable<std::string> SrunSpawner::run_srun(std::shared_ptr<Step> step,
                                                   const std::string& copy_as) {
  Command command;
  step->name = random_hex(4);
  command.argv = srun_words({step->nodes, options_.agent_program, gate_->addresses(), step->name,
                             copy_as, gpus_of_nodes(options_.environment, step->component),
                             agent_words(options_), step->component});
  command.environment = environment_;
  step->srun = std::make_unique<ProcessChannel>(co_await asio::this_coro::executor, command,
                                                AtClose::kTerminate, "start srun");
  // Where one node cannot run the agent, those of the others go on, and srun with them.
  step->srun->when_it_speaks([step = step.get()] {
    const std::string words = step->srun->last_words();
    if (!step->is_complete() && (is_agent_missing(words) || is_agent_forbidden(words)))
      step->srun->close();
  });
  std::string key = key_as_text(gate_->key()) + "\n";
  // A failed write shows as the end of srun, with the reason.
  (void)co_await step->srun->write(asio::buffer(key));
  wipe(&key);
  std::string ignored(4096, '\0');
  while (co_await step->srun->read_some(asio::buffer(ignored)) > 0) continue;
  co_await step->srun->wait_for_end();
  co_return step->srun->last_words();
}

// Those that were never run. What fails here has nothing to add to why, nor may it take long.
asio::awaitable<void> SrunSpawner::remove_copies(Copies copies) {
  Command command;
  command.argv =
      remove_words({copies.step->nodes, "", {}, "", copies.file, 0, {}, copies.step->component});
  command.environment = environment_;
  try {
    const auto executor = co_await asio::this_coro::executor;
    const auto srun =
        std::make_shared<ProcessChannel>(executor, command, AtClose::kTerminate, "start srun");
    asio::steady_timer limit(executor, std::min<Duration>(kTimeToRemove, options_.start_timeout));
    limit.async_wait([srun](const boost::system::error_code& error) {
      if (!error) srun->close();
    });
    co_await srun->wait_for_end();
  } catch (const Error&) {
  }
}

// A step that still copies, or waits, is broken off before.
asio::awaitable<void> SrunSpawner::tidy_up() {
  is_over_ = true;
  for (Copies& copies : std::exchange(copies_, {})) {
    if (copies.step->is_complete()) continue;  // and its agents have removed their files
    if (copies.step->srun) copies.step->srun->close();
    co_await remove_copies(std::move(copies));
  }
}

std::string SrunSpawner::route(const HostTarget&) { return "srun"; }

std::string SrunSpawner::advice_if_lost(const HostTarget& host) {
  return "see 'scontrol show node " + host.name + "', and what its slurmd has logged";
}

}  // namespace hv::launcher
