// The environment of a rank, an entry a line: the contract and the runtime's knobs.
// SPDX-License-Identifier: Apache-2.0
#include "src/base/error.h"
#include "src/base/knob.h"
#include "src/base/text.h"
#include "src/contract/contract.h"
#include "src/contract/runtime_knobs.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;

namespace {

bool is_below(int index, int count) { return index >= 0 && index < count; }

void check_contract(const Environment& environment) {
  Contract contract;
  const Status status = read_contract(environment, &contract);
  if (!status.ok()) {
    HV_CHECK(status.code == StatusCode::kContract && !status.message.empty(), "in words");
    return;
  }
  const RankIdentity& who = contract.identity;
  HV_CHECK(is_below(who.rank, who.size) && is_below(who.local_rank, who.local_size) &&
               is_below(who.cross_rank, who.cross_size),
           "each rank is below its size");
  HV_CHECK(who.size == 1 || !contract.agent_socket.empty(), "a way to meet the others");
  Environment again;
  for (const auto& [name, value] : contract_environment(contract, {})) again.set(name, value);
  Contract same;
  HV_CHECK(read_contract(again, &same).ok(), "what is written can be read");
  HV_CHECK(same.identity.rank == who.rank && same.identity.size == who.size &&
               same.identity.job_id == who.job_id && same.agent_socket == contract.agent_socket,
           "and is the same");
}

void check_knobs(const Environment& environment) {
  const KnobReader knobs(runtime_knobs(), environment);
  try {
    knobs.check_all();
    HV_CHECK(knobs.integer("HVRUN_FUSION_THRESHOLD") >= 0, "bytes");
    HV_CHECK(knobs.integer("HVRUN_CACHE_CAPACITY") <= 1 << 20, "within its bounds");
    HV_CHECK(knobs.seconds("HVRUN_STALL_SECONDS") <= 1e9, "a time");
    const std::vector<std::string> levels = {"error", "warn", "info", "debug", "trace"};
    HV_CHECK(join(levels, ",").find(knobs.text("HVRUN_LOG_LEVEL")) != std::string::npos, "a level");
  } catch (const Error& error) {
    HV_CHECK(error.kind() == ErrorKind::kUsage && !error.hint().empty(), "with the accepted form");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Environment environment = Environment::from_entries(split(fuzz::view(data, size), '\n'));
  check_contract(environment);
  check_knobs(environment);
  return 0;
}
