// Describes a job in PMIx's terms: names of nodes, the ranks of each node, the data of each rank.
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "launcher/pmix/pmix_server_abi.h"
#include "src/wire/mpi_wiring.h"

namespace hv::launcher {

// A list of PMIx infos that owns the values to which they point.
class InfoList {
 public:
  InfoList() = default;
  InfoList(InfoList&&) = default;
  InfoList& operator=(InfoList&&) = default;

  void add_text(const char* key, const std::string& text);
  void add_flag(const char* key, bool flag);
  void add_uint16(const char* key, std::uint16_t number);
  void add_uint32(const char* key, std::uint32_t number);
  void add_rank(const char* key, std::uint32_t rank);
  void add_list(const char* key, InfoList list);

  // Valid until the next add.
  pmix::Info* data() { return infos_.data(); }
  std::size_t size() const { return infos_.size(); }

 private:
  pmix::Value& add(const char* key, std::uint16_t type);

  std::vector<pmix::Info> infos_;
  // Lists, because infos_ point to their elements.
  std::list<std::string> texts_;
  std::list<InfoList> lists_;
  std::list<pmix::DataArray> arrays_;
};

constexpr std::size_t kMostRanksOfMap = 1 << 20;

// Every rank has an existing host and a program, this host has ranks, and the names are ones that
// PMIx accepts.
bool is_well_formed(const wire::PmixJob& job);

// A unique name for each host, without the separators of PMIx.
std::vector<std::string> node_names(const std::vector<std::string>& hosts);

// In ascending order.
std::vector<std::uint32_t> ranks_on(const wire::MpiWorld& world, std::uint32_t host);

// "0,1,4"
std::string ranks_text(const std::vector<std::uint32_t>& ranks);
// "0,1;2,3": the ranks of every host, in the order of hosts.
std::string process_text(const wire::MpiWorld& world);

// The data about the job that ranks can request. node_map, process_map: PMIx's encodings of the
// names joined by commas, and of process_text().
InfoList job_infos(const wire::PmixJob& job, const std::string& node_map,
                   const std::string& process_map);

}  // namespace hv::launcher
