// A job as PMIx wants to be told of it: names of nodes, ranks of each, and what a rank is. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "launcher/pmix/pmix_server_abi.h"
#include "src/wire/mpi_wiring.h"

namespace hv::launcher {

// A list of PMIx's infos, with all that they point to.
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

  // Good until the next add.
  pmix::Info* data() { return infos_.data(); }
  std::size_t size() const { return infos_.size(); }

 private:
  pmix::Value& add(const char* key, std::uint16_t type);

  std::vector<pmix::Info> infos_;
  // Their elements stay where they are.
  std::list<std::string> texts_;
  std::list<InfoList> lists_;
  std::list<pmix::DataArray> arrays_;
};

constexpr std::size_t kMostRanksOfMap = 1 << 20;

// Every rank is on a host that is there and of a program, this host has some, and the names can be
// told.
bool is_well_formed(const wire::PmixJob& job);

// Names that PMIx's own separators cannot be in, one a host, no two alike.
std::vector<std::string> node_names(const std::vector<std::string>& hosts);

// In ascending order.
std::vector<std::uint32_t> ranks_on(const wire::MpiWorld& world, std::uint32_t host);

// "0,1,4"
std::string ranks_text(const std::vector<std::uint32_t>& ranks);
// "0,1;2,3": of every host, in order.
std::string process_text(const wire::MpiWorld& world);

// All that ranks can ask of their job. node_map, process_map: what PMIx has made of the names
// joined by commas, and of process_text().
InfoList job_infos(const wire::PmixJob& job, const std::string& node_map,
                   const std::string& process_map);

}  // namespace hv::launcher
