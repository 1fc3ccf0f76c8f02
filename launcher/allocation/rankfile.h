// Rankfiles: which rank on which host, with which cores and GPUs. Pure but for look_up (HostIndex).
// SPDX-License-Identifier: Apache-2.0
//
//   rank 0=node1 slot=0-3 gpus=0      OpenMPI's form, with gpus= as in a hostfile
//   rank 1=+n1 slot=4,6               the host of that number, from 0, in the order of the list
//   rank 2=node1 slot=1:0-2           cores 0 to 2 of socket 1; 0:* is all of socket 0, ';' between
// Every rank from 0 on has one line, in any order. slot= without a socket is logical cores as the
// system numbers them.
#pragma once

#include <string>
#include <string_view>

#include "launcher/allocation/host_list.h"

namespace hv::launcher {

constexpr std::size_t kMostRankfileBytes = 64u << 20;
constexpr int kMostRankfileRanks = 1 << 20;

// The hosts of `named` with their ranks' places; where nobody has named hosts, those of the file,
// each with as many slots as it has ranks. Throws Error(kUsage) with file:line:column.
HostList add_rankfile(HostList named, std::string_view content, const std::string& source,
                      const AddressLookup& look_up = {});

}  // namespace hv::launcher
