// Where a rank's identity and store come from.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/birth.h"

#include <unistd.h>

#include <atomic>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/backend/mpi/mpi_library.h"
#include "runtime/transport/shm/host_memory.h"
#include "src/base/boot_id.h"
#include "src/base/bounded_seconds.h"
#include "src/base/knob.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/contract/runtime_knobs.h"
#include "src/net/port_range.h"
#include "src/rendezvous/agent_store.h"
#include "src/rendezvous/gathered_store.h"
#include "src/rendezvous/inproc_store.h"
#include "src/rendezvous/launcher_exchange.h"
#include "src/rendezvous/slurm_step.h"

namespace hv::runtime {
namespace {

constexpr std::chrono::seconds kAgentTimeout{30};
// As good as for ever: a rank may prepare its data for hours before it joins. hvrun names who is
// missing after HVRUN_STALL_SECONDS, and a rank that ends is told to those who wait.
constexpr std::chrono::hours kMeetingTimeout{24 * 365};
constexpr std::chrono::minutes kLaunchersTimeout{30};

std::string host_name() {
  char host[256] = "localhost";
  ::gethostname(host, sizeof host - 1);
  return host;
}

// who: this rank, or, before it knows its number, its process.
void set_up_log(const Environment& environment, const std::string& who) {
  LogLevel level = LogLevel::kWarn;
  parse_log_level(KnobReader(runtime_knobs(), environment).text("HVRUN_LOG_LEVEL"), &level);
  configure_log(level, host_name() + "/" + who);
}

// Where no hvrun tells who is missing.
MeetingTerms launchers_terms(const Environment& environment) {
  const KnobReader knobs(runtime_knobs(), environment);
  const Duration stall = bounded_seconds(knobs.seconds("HVRUN_STALL_SECONDS"));
  return {{kLaunchersTimeout, std::chrono::duration_cast<std::chrono::milliseconds>(stall)},
          *parse_port_range(knobs.text("HVRUN_PORT_RANGE"))};
}

// The launcher's, for every context of this process in turn. Once a gathering has failed, ranks
// may have come to different ones.
class SharedExchange : public Exchange {
 public:
  explicit SharedExchange(std::unique_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  int rank() const override { return exchange_->rank(); }
  int size() const override { return exchange_->size(); }
  Status gather(const std::string& mine, const WaitLimits& limits,
                std::vector<std::string>* all) override {
    const std::unique_lock lock(mutex_, limits.timeout);
    if (!lock.owns_lock())
      return {StatusCode::kSystem,
              "another context of this process has met the others for too long"};
    if (!failed_.ok())
      return {failed_.code, "meet the other ranks again, which has failed before (" +
                                failed_.message + "); start the job anew"};
    failed_ = exchange_->gather(mine, limits, all);
    return failed_;
  }

 private:
  std::timed_mutex mutex_;
  const std::unique_ptr<Exchange> exchange_;  // guarded by mutex_
  Status failed_;                             // guarded by mutex_
};

// Alone: the store is a table in this process, its ranks a list of one.
void be_alone(ContextParts* parts) {
  auto hub = std::make_shared<InprocStoreHub>(1);
  parts->store = hub->store(0);
  parts->keeps = std::move(hub);
  parts->fabric.local = LocalTransport::kInproc;
  parts->identity.job_id =
      "alone-" + std::to_string(::getpid()) + "-" + std::to_string(parts->fabric.epoch);
}

// Of this process, whatever becomes of its contexts: launchers take a second greeting for an error.
// nullptr: there is none. A child that was forked leaves it alone.
Status exchange_of_process(const Environment& environment, std::shared_ptr<Exchange>* exchange) {
  static std::mutex mutex;
  static std::shared_ptr<Exchange> kept;  // guarded by mutex
  const std::lock_guard lock(mutex);
  if (kept == nullptr) {
    std::unique_ptr<Exchange> made;
    const MeetingTerms terms = launchers_terms(environment);
    Status status = open_mpi_exchange(environment, terms.limits, &made);
    if (status.ok() && made == nullptr) status = open_launcher_exchange(environment, terms, &made);
    if (!status.ok()) return status;
    if (made != nullptr)
      kept.reset(new SharedExchange(std::move(made)), [pid = ::getpid()](Exchange* one) {
        if (::getpid() == pid) delete one;
      });
  }
  *exchange = kept;
  return Status::success();
}

Status check_launcher(const Environment& environment, const Exchange& exchange) {
  const std::string size(environment.get_or("WORLD_SIZE", ""));
  if (size.empty() || size == std::to_string(exchange.size())) return Status::success();
  return {StatusCode::kContract,
          "join the job: WORLD_SIZE=" + printable(size) + " and the launcher's " +
              std::to_string(exchange.size()) +
              " ranks are of two launchers, one started by the other; start the program by one "
              "of them, best by hvrun"};
}

Status meet_by(std::shared_ptr<Exchange> exchange, ContextParts* parts) {
  const int rank = exchange->rank();
  GatheredStore::Meeting meeting;
  const Status met = GatheredStore::meet(std::move(exchange), host_name() + " " + boot_id(),
                                         launchers_terms(parts->environment).limits,
                                         parts->fabric.epoch, &parts->store, &meeting);
  if (!met.ok()) return met;
  parts->fabric.epoch = meeting.epoch;
  parts->identity = identities_by_host(meeting.hosts).at(static_cast<std::size_t>(rank));
  parts->identity.job_id = meeting.job_id;
  parts->fabric.meeting_timeout = kLaunchersTimeout;
  parts->fabric.heap_bytes = kHeapBytes;
  return Status::success();
}

// One rank a host says so.
void warn_of_hidden_gpus(const ContextParts& parts) {
  if (parts.identity.local_rank != 0 || parts.identity.local_size < 2) return;
  const std::string words = hidden_gpus(parts.environment);
  if (words.empty()) return;
  HV_LOG(kWarn, "rendezvous") << words;
}

Status join_agent(const Contract& contract, ContextParts* parts) {
  parts->fabric.meeting_timeout = kMeetingTimeout;
  parts->fabric.heap_bytes = kHeapBytes;
  std::unique_ptr<AgentStore> store;
  const Status joined = AgentStore::join(contract.agent_socket, parts->identity.rank,
                                         parts->fabric.epoch, kAgentTimeout, &store);
  parts->store = std::move(store);
  return joined;
}

// Of a job of hvrun's: the communicator's ranks are all of its, in its order.
Status check_whole(const Contract& contract, const WaitLimits& limits, Exchange& exchange) {
  std::vector<std::string> ranks;
  Status status = exchange.gather(std::to_string(contract.identity.rank), limits, &ranks);
  if (!status.ok()) return status;
  if (exchange.size() != contract.identity.size)
    return {StatusCode::kArgument,
            "join the job: the communicator has " + std::to_string(exchange.size()) +
                " of the job's " + std::to_string(contract.identity.size) +
                " ranks; try: join without one, and make a process set of its ranks"};
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i] != std::to_string(i))
      return {StatusCode::kArgument, "join the job: rank " + std::to_string(i) +
                                         " of the communicator is the job's rank " +
                                         printable(ranks[i]) +
                                         ", and hvrun has numbered its ranks; try: join without "
                                         "a communicator, or with one in the job's order"};
  return status;
}

// communicator: the program's, or nullptr. *exchange stays empty where hvrun's agent is asked.
Status find_exchange(const Environment& environment, bool is_hvruns, const void* communicator,
                     std::shared_ptr<Exchange>* exchange) {
  if (communicator != nullptr) {
    std::unique_ptr<Exchange> made;
    const Status status =
        open_communicator(environment, communicator, launchers_terms(environment).limits, &made);
    *exchange = std::move(made);
    return status;
  }
  if (is_hvruns) return Status::success();
  const Status status = exchange_of_process(environment, exchange);
  const bool is_found = status.ok() && *exchange != nullptr && (*exchange)->size() > 1;
  return is_found ? check_launcher(environment, **exchange) : status;
}

}  // namespace

Status parts_of_process(ContextParts* parts, const void* communicator) {
  static std::atomic<int> contexts{0};
  parts->environment = Environment::of_process();
  parts->number = contexts++;
  parts->fabric.epoch = parts->number;
  set_up_log(parts->environment, "pid " + std::to_string(::getpid()));
  const bool is_hvruns = has_contract(parts->environment);
  std::shared_ptr<Exchange> exchange;
  if (Status status = find_exchange(parts->environment, is_hvruns, communicator, &exchange);
      !status.ok())
    return status;
  if (!is_hvruns && exchange != nullptr && (exchange->size() > 1 || communicator != nullptr)) {
    const Status met = meet_by(std::move(exchange), parts);
    set_up_log(parts->environment, std::to_string(parts->identity.rank));
    if (met.ok()) warn_of_hidden_gpus(*parts);
    return met;
  }
  Contract contract;
  if (Status status = read_contract(parts->environment, &contract); !status.ok()) return status;
  if (exchange != nullptr && is_hvruns)
    if (Status status =
            check_whole(contract, launchers_terms(parts->environment).limits, *exchange);
        !status.ok())
      return status;
  parts->identity = contract.identity;
  set_up_log(parts->environment, std::to_string(parts->identity.rank));
  if (!contract.agent_socket.empty()) return join_agent(contract, parts);
  be_alone(parts);
  return Status::success();
}

namespace {

Status of_set(std::size_t index, Status status) {
  status.message = "hvrun_init: process_sets[" + std::to_string(index) + "]: " + status.message;
  return status;
}

}  // namespace

Status check_first_sets(const hvrun_options& options) {
  if (options.process_sets == nullptr && options.process_set_count > 0)
    return {StatusCode::kArgument,
            "hvrun_init: process_sets is NULL, and process_set_count is not 0"};
  for (std::size_t i = 0; i < options.process_set_count; ++i) {
    const hvrun_rank_list& list = options.process_sets[i];
    if (list.ranks == nullptr && list.count > 0)
      return of_set(i, {StatusCode::kArgument, "ranks is NULL, and count is not 0"});
  }
  return Status::success();
}

Status add_first_sets(const hvrun_options& options, Context& context) {
  for (std::size_t i = 0; i < options.process_set_count; ++i) {
    const hvrun_rank_list& list = options.process_sets[i];
    std::uint32_t number = 0;
    Status status = context.add_process_set({list.ranks, list.ranks + list.count}, &number);
    if (!status.ok()) return of_set(i, std::move(status));
  }
  return Status::success();
}

}  // namespace hv::runtime
