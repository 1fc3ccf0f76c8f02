// Where the hosts of a job come from: -H, --hostfile, a scheduler, or nobody (this machine).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "launcher/allocation/host_list.h"
#include "src/base/environment.h"

namespace hv::launcher {

// What the command line says of hosts, as written.
struct HostWishes {
  std::string hosts{};     // -H; a word without comma, colon or bracket that is a file, or is named
                           // like one, is that hostfile
  std::string hostfile{};  // --hostfile; with -H, which chooses from it
  std::string hostfile_format{};     // --hostfile-format; empty: any
  std::string include{}, exclude{};  // one of them at most
  std::string rankfile{};            // --rankfile
  bool way_is_stated = false;  // of reaching them, by --rsh and its like: nobody else is asked
};

struct FoundHosts {
  HostList list;
  std::string source;  // who named them: "Slurm", "hosts"; empty: the command line, or nobody
};

// look_up: for names and addresses that choose among the hosts and are no form of their names.
// Throws Error(kUsage).
FoundHosts find_hosts(const HostWishes& wishes, const Environment& environment,
                      const AddressLookup& look_up = {});

}  // namespace hv::launcher
