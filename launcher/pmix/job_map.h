// A job as PMIx wants to be told of it: names of nodes, ranks of each, and what a rank is. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/pmix/info_list.h"
#include "src/wire/mpi_wiring.h"

namespace hv::launcher {

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
