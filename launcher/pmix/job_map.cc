// SPDX-License-Identifier: Apache-2.0
#include "launcher/pmix/job_map.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "src/base/text.h"

namespace hv::launcher {

pmix::Value& InfoList::add(const char* key, std::uint16_t type) {
  pmix::Info& info = infos_.emplace_back();
  std::strncpy(info.key, key, sizeof info.key - 1);
  info.value.type = type;
  return info.value;
}

void InfoList::add_text(const char* key, const std::string& text) {
  add(key, pmix::kText).data.text = texts_.emplace_back(text).data();
}

void InfoList::add_flag(const char* key, bool flag) { add(key, pmix::kBool).data.flag = flag; }

void InfoList::add_uint16(const char* key, std::uint16_t number) {
  add(key, pmix::kUint16).data.uint16 = number;
}

void InfoList::add_uint32(const char* key, std::uint32_t number) {
  add(key, pmix::kUint32).data.uint32 = number;
}

void InfoList::add_rank(const char* key, std::uint32_t rank) {
  add(key, pmix::kRank).data.uint32 = rank;
}

void InfoList::add_list(const char* key, InfoList list) {
  InfoList& owned = lists_.emplace_back(std::move(list));
  add(key, pmix::kDataArray).data.pointer =
      &arrays_.emplace_back(pmix::DataArray{pmix::kInfo, owned.size(), owned.data()});
}

namespace {

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_';
}

std::string directory_of(const wire::PmixJob& job, std::size_t rank) {
  return job.folder + "/" + std::to_string(rank);
}

// The data of each rank, in ascending order of ranks.
class ProcessInfos {
 public:
  explicit ProcessInfos(const wire::PmixJob& job)
      : job_(job), names_(node_names(job.world.hosts)), seen_(job.world.hosts.size()) {}
  InfoList next();

 private:
  const wire::PmixJob& job_;
  const std::vector<std::string> names_;
  std::size_t rank_ = 0;
  std::vector<std::uint32_t> seen_;  // by host: how many of its ranks next() has returned
  struct Program {
    std::uint32_t leader;
    std::uint32_t ranks = 0;
  };
  std::map<std::uint32_t, Program> programs_;
};

InfoList ProcessInfos::next() {
  const std::size_t rank = rank_++;
  const std::uint32_t host = job_.world.host_of_rank[rank];
  const std::uint32_t program = job_.world.program_of_rank[rank];
  const std::uint32_t position = seen_[host]++;
  Program& own =
      programs_.try_emplace(program, Program{static_cast<std::uint32_t>(rank)}).first->second;
  const auto number = static_cast<std::uint32_t>(rank);
  const auto local = static_cast<std::uint16_t>(std::min<std::uint32_t>(position, UINT16_MAX));
  InfoList infos;
  infos.add_rank(pmix::kProcessRank, number);
  infos.add_rank(pmix::kGlobalRank, number);
  infos.add_rank(pmix::kApplicationRank, own.ranks++);
  infos.add_rank(pmix::kApplicationLeader, own.leader);
  infos.add_uint32(pmix::kApplication, program);
  infos.add_uint16(pmix::kLocalRank, local);
  infos.add_uint16(pmix::kNodeRank, local);
  infos.add_uint32(pmix::kNodeNumber, host);
  infos.add_text(pmix::kHostName, names_[host]);
  if (host == job_.host) infos.add_text(pmix::kProcessDirectory, directory_of(job_, rank));
  return infos;
}

}  // namespace

bool is_well_formed(const wire::PmixJob& job) {
  const wire::MpiWorld& world = job.world;
  const auto is_there = [&world](std::uint32_t host) { return host < world.hosts.size(); };
  return !world.space.empty() && world.space.size() <= pmix::kMostSpace &&
         world.space.find('\0') == std::string::npos && !job.folder.empty() &&
         job.folder[0] == '/' && world.host_of_rank.size() <= kMostRanksOfMap &&
         std::all_of(world.host_of_rank.begin(), world.host_of_rank.end(), is_there) &&
         world.program_of_rank.size() == world.host_of_rank.size() &&
         !ranks_on(world, job.host).empty();
}

std::vector<std::string> node_names(const std::vector<std::string>& hosts) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const std::string& host : hosts) {
    std::string name = host;
    for (char& c : name)
      if (!is_plain(c)) c = '-';
    // PMIx splits a name at its digits; a name that is an address must begin with a letter.
    if (name.empty() || !std::isalpha(static_cast<unsigned char>(name[0]))) name = "node-" + name;
    while (!taken.insert(name).second) name += "-" + std::to_string(names.size());
    names.push_back(name);
  }
  return names;
}

std::vector<std::uint32_t> ranks_on(const wire::MpiWorld& world, std::uint32_t host) {
  std::vector<std::uint32_t> ranks;
  for (std::size_t rank = 0; rank < world.host_of_rank.size(); ++rank)
    if (world.host_of_rank[rank] == host) ranks.push_back(static_cast<std::uint32_t>(rank));
  return ranks;
}

std::string ranks_text(const std::vector<std::uint32_t>& ranks) {
  std::string text;
  for (const std::uint32_t rank : ranks) {
    if (!text.empty()) text += ',';
    text += std::to_string(rank);
  }
  return text;
}

std::string process_text(const wire::MpiWorld& world) {
  std::vector<std::string> of_hosts(world.hosts.size());
  for (std::size_t rank = 0; rank < world.host_of_rank.size(); ++rank) {
    std::string& text = of_hosts[world.host_of_rank[rank]];
    if (!text.empty()) text += ',';
    text += std::to_string(rank);
  }
  return join(of_hosts, ";");
}

InfoList job_infos(const wire::PmixJob& job, const std::string& node_map,
                   const std::string& process_map) {
  const wire::MpiWorld& world = job.world;
  const auto size = static_cast<std::uint32_t>(world.host_of_rank.size());
  const std::vector<std::uint32_t> local = ranks_on(world, job.host);
  const std::set<std::uint32_t> programs(world.program_of_rank.begin(),
                                         world.program_of_rank.end());
  const auto local_size = static_cast<std::uint32_t>(local.size());
  InfoList infos;
  infos.add_text(pmix::kJobName, world.space);
  infos.add_uint32(pmix::kJobSize, size);
  infos.add_uint32(pmix::kUniverseSize, size);
  infos.add_uint32(pmix::kMostProcesses, size);
  infos.add_uint32(pmix::kApplications, static_cast<std::uint32_t>(programs.size()));
  infos.add_uint32(pmix::kNodes, static_cast<std::uint32_t>(world.hosts.size()));
  infos.add_uint32(pmix::kNodeNumber, job.host);
  infos.add_uint32(pmix::kLocalSize, local_size);
  infos.add_uint32(pmix::kNodeSize, local_size);
  infos.add_text(pmix::kLocalPeers, ranks_text(local));
  infos.add_rank(pmix::kLocalLeader, local.front());
  infos.add_text(pmix::kNodeMap, node_map);
  infos.add_text(pmix::kProcessMap, process_map);
  infos.add_text(pmix::kSessionDirectory, job.folder);
  infos.add_text(pmix::kSpaceDirectory, job.folder);
  infos.add_flag(pmix::kDirectoriesAreRemoved, true);
  ProcessInfos processes(job);
  for (std::size_t rank = 0; rank < size; ++rank)
    infos.add_list(pmix::kProcessData, processes.next());
  return infos;
}

}  // namespace hv::launcher
