// SPDX-License-Identifier: Apache-2.0
#include "src/contract/contract.h"

#include <array>
#include <map>
#include <set>

#include "src/base/text.h"

namespace hv {
namespace {

struct NumberName {
  const char* name;
  int RankIdentity::*field;
};
constexpr std::array<NumberName, 6> kNumbers{{{"HVRUN_RANK", &RankIdentity::rank},
                                              {"HVRUN_SIZE", &RankIdentity::size},
                                              {"HVRUN_LOCAL_RANK", &RankIdentity::local_rank},
                                              {"HVRUN_LOCAL_SIZE", &RankIdentity::local_size},
                                              {"HVRUN_CROSS_RANK", &RankIdentity::cross_rank},
                                              {"HVRUN_CROSS_SIZE", &RankIdentity::cross_size}}};
// Far above any machine; keeps sums of counts inside an int.
constexpr std::int64_t kMostRanks = 1 << 24;

struct Launcher {
  const char* variable;
  const char* name;
};
// Set to the number of processes by launchers other than hvrun. SLURM_NTASKS is not among them: a
// batch script has it too.
constexpr std::array<Launcher, 4> kLaunchers{{{"WORLD_SIZE", "torchrun or a like launcher"},
                                              {"PMI_SIZE", "an MPI launcher (PMI)"},
                                              {"OMPI_COMM_WORLD_SIZE", "OpenMPI's mpirun"},
                                              {"SLURM_STEP_NUM_TASKS", "Slurm's srun"}}};

// Refuses everything but a single process: several processes must never each run alone.
Status check_launcher(const Launcher& launcher, const std::string& value) {
  if (value.empty() || value == "0" || value == "1") return Status::success();
  const std::string setting =
      std::string("join the job: ") + launcher.variable + "=" + printable(value);
  const std::string otherwise = std::string(" (or unset ") + launcher.variable + " to run alone)";
  if (parse_integer(value).value_or(0) > 1) {
    return {StatusCode::kContract, setting + " says that " + launcher.name + " started " + value +
                                       " processes, but they have no way to meet that libhvrun "
                                       "can trust; start them with 'hvrun -np " +
                                       value + " program ...' instead" + otherwise};
  }
  return {StatusCode::kContract,
          setting + " (the way of " + launcher.name +
              ") is no plain number of processes, so this one may be one of several; start them "
              "with 'hvrun -np N program ...' instead" +
              otherwise};
}

// Without HVRUN_RANK this process is alone, unless another variable contradicts that.
Status check_alone(const Environment& environment) {
  for (const NumberName& number : kNumbers) {
    const auto value = environment.get(number.name);
    if (!value) continue;
    return {StatusCode::kContract, std::string("join the job: ") + number.name + " is '" +
                                       printable(*value) +
                                       "' although HVRUN_RANK is not set; start the program with "
                                       "hvrun, which sets them all, or unset " +
                                       number.name + " to run alone"};
  }
  for (const Launcher& launcher : kLaunchers) {
    Status status = check_launcher(launcher, environment.get_or(launcher.variable, ""));
    if (!status.ok()) return status;
  }
  return Status::success();
}

Status read_number(const Environment& environment, const char* name, int* number) {
  const auto text = environment.get(name);
  if (!text) {
    return {StatusCode::kContract, std::string("join the job: ") + name +
                                       " is not set although HVRUN_RANK is; "
                                       "start the program with hvrun, which sets them all"};
  }
  const auto value = parse_integer(*text);
  if (!value || *value < 0 || *value > kMostRanks) {
    return {StatusCode::kContract, std::string("join the job: ") + name + " is '" +
                                       printable(*text) + "', not a whole number from 0 to " +
                                       std::to_string(kMostRanks)};
  }
  *number = static_cast<int>(*value);
  return Status::success();
}

Status check_ranges(const RankIdentity& who) {
  const auto within = [](int index, int size) { return index < size; };
  if (within(who.rank, who.size) && within(who.local_rank, who.local_size) &&
      within(who.cross_rank, who.cross_size)) {
    return Status::success();
  }
  return {StatusCode::kContract,
          "join the job: rank " + std::to_string(who.rank) + " of " + std::to_string(who.size) +
              ", local rank " + std::to_string(who.local_rank) + " of " +
              std::to_string(who.local_size) + ", cross rank " + std::to_string(who.cross_rank) +
              " of " + std::to_string(who.cross_size) + " cannot be: a rank is below its size"};
}

}  // namespace

std::vector<RankIdentity> identities_by_host(const std::vector<std::string>& hosts) {
  std::map<std::string, int> ranks_of;  // ranks so far, by host
  std::vector<int> hosts_with;          // number of hosts, by local rank
  std::vector<RankIdentity> result;
  for (const std::string& host : hosts) {
    RankIdentity who;
    who.rank = static_cast<int>(result.size());
    who.size = static_cast<int>(hosts.size());
    who.local_rank = ranks_of[host]++;
    const auto local = static_cast<std::size_t>(who.local_rank);
    if (hosts_with.size() <= local) hosts_with.resize(local + 1);
    who.cross_rank = hosts_with[local]++;
    result.push_back(who);
  }
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    result[rank].local_size = ranks_of[hosts[rank]];
    result[rank].cross_size = hosts_with[static_cast<std::size_t>(result[rank].local_rank)];
  }
  return result;
}

std::vector<std::pair<std::string, std::string>> contract_environment(
    const Contract& contract, const ContractAddresses& addresses) {
  const RankIdentity& who = contract.identity;
  std::vector<std::pair<std::string, std::string>> result;
  for (const NumberName& number : kNumbers)
    result.emplace_back(number.name, std::to_string(who.*number.field));
  result.emplace_back("HVRUN_JOB_ID", who.job_id);
  result.emplace_back("HVRUN_AGENT", contract.agent_socket);
  result.emplace_back("HVRUN_RESTART", std::to_string(contract.restarts));
  result.emplace_back("RANK", std::to_string(who.rank));
  result.emplace_back("WORLD_SIZE", std::to_string(who.size));
  result.emplace_back("LOCAL_RANK", std::to_string(who.local_rank));
  result.emplace_back("LOCAL_WORLD_SIZE", std::to_string(who.local_size));
  result.emplace_back("GROUP_RANK", std::to_string(addresses.host_index));
  result.emplace_back("MASTER_ADDR", addresses.master_address);
  result.emplace_back(kMasterPort, std::to_string(addresses.master_port));
  return result;
}

std::vector<std::pair<std::string, std::string>> horovod_environment(const RankIdentity& who) {
  constexpr std::string_view kOwn = "HVRUN_";
  std::vector<std::pair<std::string, std::string>> result;
  for (const NumberName& number : kNumbers)
    result.emplace_back("HOROVOD_" + std::string(number.name + kOwn.size()),
                        std::to_string(who.*number.field));
  return result;
}

bool has_contract(const Environment& environment) { return environment.has("HVRUN_RANK"); }

Status read_contract(const Environment& environment, Contract* contract) {
  *contract = Contract{};
  if (!has_contract(environment)) return check_alone(environment);
  RankIdentity who;
  for (const NumberName& number : kNumbers) {
    if (Status status = read_number(environment, number.name, &(who.*number.field)); !status.ok())
      return status;
  }
  if (Status status = check_ranges(who); !status.ok()) return status;
  who.job_id = environment.get_or("HVRUN_JOB_ID", "");
  contract->identity = who;
  contract->agent_socket = environment.get_or("HVRUN_AGENT", "");
  if (contract->agent_socket.empty() && who.size > 1) {
    return {StatusCode::kContract,
            "join the job: HVRUN_AGENT is not set, so this rank cannot meet the other " +
                std::to_string(who.size - 1) + "; start the program with hvrun"};
  }
  return Status::success();
}

const std::vector<std::string>& contract_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const auto& [name, value] : contract_environment({}, {})) result.push_back(name);
    result.insert(result.begin(), {kJobLostAfter, kResultDescriptor});  // ours stand first
    return result;
  }();
  return names;
}

bool is_contract_name(std::string_view name) {
  static const std::set<std::string, std::less<>> names(contract_names().begin(),
                                                        contract_names().end());
  return names.find(name) != names.end();
}

}  // namespace hv
