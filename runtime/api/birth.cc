// Where a rank's identity and store come from.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/birth.h"

#include <unistd.h>

#include <atomic>

#include "runtime/transport/shm/host_memory.h"
#include "src/base/knob.h"
#include "src/base/log.h"
#include "src/contract/runtime_knobs.h"
#include "src/rendezvous/agent_store.h"
#include "src/rendezvous/inproc_store.h"

namespace hv::runtime {
namespace {

constexpr std::chrono::seconds kAgentTimeout{30};
// As good as for ever: a rank may prepare its data for hours before it joins. hvrun names who is
// missing after HVRUN_STALL_SECONDS, and a rank that ends is told to those who wait.
constexpr std::chrono::hours kMeetingTimeout{24 * 365};

void set_up_log(const Environment& environment, const RankIdentity& identity) {
  LogLevel level = LogLevel::kWarn;
  parse_log_level(KnobReader(runtime_knobs(), environment).text("HVRUN_LOG_LEVEL"), &level);
  char host[256] = "localhost";
  ::gethostname(host, sizeof host - 1);
  configure_log(level, std::string(host) + "/" + std::to_string(identity.rank));
}

// Alone: the store is a table in this process, its ranks a list of one.
void be_alone(ContextParts* parts) {
  auto hub = std::make_shared<InprocStoreHub>(1);
  parts->store = hub->store(0);
  parts->keeps = std::move(hub);
  parts->fabric.local = LocalTransport::kInproc;
  parts->identity.job_id =
      "alone-" + std::to_string(::getpid()) + "-" + std::to_string(parts->fabric.epoch);
}

}  // namespace

Status parts_of_process(ContextParts* parts) {
  static std::atomic<int> epochs{0};
  parts->environment = Environment::of_process();
  Contract contract;
  if (Status status = read_contract(parts->environment, &contract); !status.ok()) return status;
  parts->identity = contract.identity;
  set_up_log(parts->environment, parts->identity);
  parts->fabric.epoch = epochs++;
  if (contract.agent_socket.empty()) {
    be_alone(parts);
    return Status::success();
  }
  parts->fabric.meeting_timeout = kMeetingTimeout;
  parts->fabric.heap_bytes = kHeapBytes;
  std::unique_ptr<AgentStore> store;
  const Status joined = AgentStore::join(contract.agent_socket, parts->identity.rank,
                                         parts->fabric.epoch, kAgentTimeout, &store);
  parts->store = std::move(store);
  return joined;
}

}  // namespace hv::runtime
