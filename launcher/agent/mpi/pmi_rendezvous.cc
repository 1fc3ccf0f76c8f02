// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/mpi/pmi_rendezvous.h"

#include <algorithm>
#include <set>
#include <utility>

#include "src/base/environment.h"
#include "src/base/text.h"
#include "src/wire/mpi_wiring.h"

namespace hv::launcher {
namespace {

constexpr char kMappingKey[] = "PMI_process_mapping";
constexpr std::size_t kMostSpaceName = 256;

std::set<std::uint32_t> ranks_of(const std::map<std::uint32_t, std::uint32_t>& applications) {
  std::set<std::uint32_t> ranks;
  for (const auto& [rank, application] : applications) ranks.insert(rank);
  return ranks;
}

// NAME=VALUE, separated by blanks; the first of repeated names counts.
std::map<std::string, std::string, std::less<>> parse_fields(std::string_view line) {
  std::map<std::string, std::string, std::less<>> fields;
  for (const std::string& part : split(line, ' ')) {
    if (const auto variable = split_variable(part))
      fields.emplace(variable->first, variable->second);
  }
  return fields;
}

std::string field(const std::map<std::string, std::string, std::less<>>& fields,
                  std::string_view name) {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string() : found->second;
}

}  // namespace

PmiRendezvous::PmiRendezvous(wire::PmiWorld world, std::string space,
                             std::map<std::uint32_t, std::uint32_t> applications)
    : world_(std::move(world)),
      space_(std::move(space)),
      applications_(std::move(applications)),
      rendezvous_(ranks_of(applications_)) {}

std::optional<std::string> PmiRendezvous::answer(std::uint32_t rank, std::string_view line) {
  if (line.size() > kMostLine || !rendezvous_.is_local(rank)) return std::nullopt;
  const Fields fields = parse_fields(line);
  const std::string command = field(fields, "cmd");
  if (command == "init") return init(rank, fields);
  if (!rendezvous_.is_joined(rank)) return std::nullopt;
  return answer_joined(rank, fields);
}

std::optional<std::string> PmiRendezvous::answer_joined(std::uint32_t rank, const Fields& fields) {
  const std::string command = field(fields, "cmd");
  if (command == "get_maxes")
    return "cmd=maxes kvsname_max=" + std::to_string(kMostSpaceName) +
           " keylen_max=" + std::to_string(kMostKey) + " vallen_max=" + std::to_string(kMostValue) +
           "\n";
  if (command == "get_appnum")
    return "cmd=appnum appnum=" + std::to_string(applications_.at(rank)) + "\n";
  if (command == "get_universe_size")
    return "cmd=universe_size size=" + std::to_string(world_.size) + "\n";
  if (command == "get_my_kvsname") return "cmd=my_kvsname kvsname=" + space_ + "\n";
  if (command == "put") return put(rank, fields);
  if (command == "get") return get(fields);
  if (command == "finalize") return finalize(rank);
  if (command == "abort") {
    aborts_[rank] = static_cast<int>(parse_integer(field(fields, "exitcode")).value_or(1) & 0xff);
    return "";
  }
  if (command == "barrier_in") {
    rendezvous_.come_to_fence(rank, wire::kPmiEpoch, ++barriers_[rank]);
    return "";
  }
  // Publishing names is not supported; other commands, such as spawn, do not consist of one line.
  for (const char* name : {"publish_name", "unpublish_name", "lookup_name"})
    if (command == name)
      return "cmd=" +
             std::string(command == "publish_name"     ? "publish_result"
                         : command == "unpublish_name" ? "unpublish_result"
                                                       : "lookup_result") +
             " rc=-1 msg=not_supported\n";
  return std::nullopt;
}

// A rank may run one program after another.
std::string PmiRendezvous::init(std::uint32_t rank, const Fields& fields) {
  const bool is_version_1 = field(fields, "pmi_version") == "1";
  if (is_version_1) {
    rendezvous_.join(rank, wire::kPmiEpoch);
    barriers_[rank] = 0;
  }
  return std::string("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=") +
         (is_version_1 ? "0" : "-1") + "\n";
}

std::string PmiRendezvous::put(std::uint32_t rank, const Fields& fields) {
  const std::string key = field(fields, "key"), value = field(fields, "value");
  const bool is_taken = !key.empty() && key.size() <= kMostKey && value.size() <= kMostValue &&
                        field(fields, "kvsname") == space_ &&
                        rendezvous_.put(rank, wire::kPmiEpoch, key, value);
  return is_taken ? "cmd=put_result rc=0 msg=success\n" : "cmd=put_result rc=-1 msg=refused\n";
}

std::string PmiRendezvous::get(const Fields& fields) const {
  const std::string key = field(fields, "key");
  const auto found = values_.find(key);
  if (key == kMappingKey && !world_.mapping.empty())
    return "cmd=get_result rc=0 msg=success value=" + world_.mapping + "\n";
  if (field(fields, "kvsname") != space_ || found == values_.end())
    return "cmd=get_result rc=-1 msg=key_not_found value=unknown\n";
  return "cmd=get_result rc=0 msg=success value=" + found->second + "\n";
}

std::string PmiRendezvous::finalize(std::uint32_t rank) {
  rendezvous_.leave(rank, wire::kPmiEpoch);
  bool has_joined_rank = false;
  for (const auto& [other, application] : applications_)
    has_joined_rank = has_joined_rank || rendezvous_.is_joined(other);
  if (!has_joined_rank) values_.clear();
  return "cmd=finalize_ack\n";
}

wire::MpiEnd PmiRendezvous::note_end(std::uint32_t rank) {
  rendezvous_.note_end(rank);
  if (rendezvous_.has_ended_in_order(rank)) return wire::MpiEnd::kInOrder;
  has_missing_rank_ = true;
  return rendezvous_.has_ever_joined(rank) ? wire::MpiEnd::kNotFinalized : wire::MpiEnd::kNotBegun;
}

bool PmiRendezvous::has_waiting_rank() const {
  return std::any_of(applications_.begin(), applications_.end(),
                     [this](const auto& entry) { return rendezvous_.is_waiting(entry.first); });
}

bool PmiRendezvous::is_beginning() const {
  return std::any_of(barriers_.begin(), barriers_.end(), [this](const auto& barriers) {
    return barriers.second == 1 && rendezvous_.is_waiting(barriers.first);
  });
}

std::vector<std::uint32_t> PmiRendezvous::beginning() const {
  std::vector<std::uint32_t> ranks;
  for (const auto& [rank, count] : barriers_) {
    const bool is_first = count == 0 || (count == 1 && rendezvous_.is_waiting(rank));
    if (world_.size > 1 && is_first && rendezvous_.is_joined(rank)) ranks.push_back(rank);
  }
  return ranks;
}

std::optional<int> PmiRendezvous::abort_of(std::uint32_t rank) const {
  const auto found = aborts_.find(rank);
  if (found == aborts_.end()) return std::nullopt;
  return found->second == 0 ? 1 : found->second;
}

std::vector<std::uint32_t> PmiRendezvous::pass(const wire::FenceOut& out) {
  const std::vector<std::uint32_t> ranks = rendezvous_.pass(out);
  if (ranks.empty()) return ranks;
  for (const wire::FencePut& put : out.puts)
    if (put.key.size() <= kMostKey && put.value.size() <= kMostValue)
      values_.insert_or_assign(put.key, put.value);
  return ranks;
}

}  // namespace hv::launcher
