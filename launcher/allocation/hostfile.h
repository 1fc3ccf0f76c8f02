// Hostfiles of every dialect, recognised line by line. Pure.
// SPDX-License-Identifier: Apache-2.0
//
//   kSlots   name slots=4 max-slots=8 ...     OpenMPI, DeepSpeed
//   kColon   name:4 user=u ifname=eth1 ...    MPICH, Horovod
//   kNames   name                             PBS, Torque, LSF: one slot a line
//   kPairs   name 4 name 2 ...                LSF's $LSB_MCPU_HOSTS
//   kQueues  name 4 all.q@name UNDEFINED      SGE's $PE_HOSTFILE
//   kNodes   n[01-16,20],gpu[1-2]x[a]         Slurm
// A name may be a node expression in all of them; '#' begins a comment, and blank lines,
// CRLF and a last line without an end are as good as others. Where no form is stated, each line is
// of the one that it looks like. A name without a number is one slot a line where any such name
// stands in several lines, and has no stated slots where each stands in one.
#pragma once

#include <string>
#include <string_view>

#include "launcher/allocation/host_list.h"

namespace hv::launcher {

enum class HostfileForm { kAny, kSlots, kColon, kNames, kPairs, kQueues, kNodes };

constexpr std::size_t kMostHostfileBytes = 16u << 20;

// source names the file in messages. Throws Error(kUsage).
HostList parse_hostfile(std::string_view content, const std::string& source,
                        HostfileForm form = HostfileForm::kAny);

// Of --hostfile-format: "auto", "openmpi", "deepspeed", "mpich", "horovod", "pbs", "lsf", "sge",
// "slurm". Throws Error(kUsage).
HostfileForm hostfile_form(const std::string& word);

}  // namespace hv::launcher
