// Do all ranks mean the same operation on a tensor? If not, the words that say who said what.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "runtime/engine/negotiation/control_messages.h"
#include "runtime/engine/negotiation/readiness.h"
#include "src/base/status.h"

namespace hv::runtime {

// kOk for one variant; else kMismatch: "tensor 'w': ranks 0-2 have float32 [3,4], rank 3 has
// float32 [4,3]". Names what differs and nothing more. Pure.
Status judge(const std::string& name, std::vector<Variant> variants,
             const std::vector<int>& members = {});

// kUnsupported when some ranks have joined and have no part in this tensor, which is no allreduce.
Status judge_absence(const CompleteTensor& tensor, const JoinedRanks& joined,
                     const std::vector<int>& members, int size);

// members: the job's rank of each member of a set, by place; empty: the same.
int job_rank(const std::vector<int>& members, int place);
// "rank 3", "ranks 0-2,5", of very many "ranks 0,2,4 and 500 more": the job's ranks of these
// members.
std::string ranks_text(const std::vector<std::uint32_t>& places,
                       const std::vector<int>& members = {});

}  // namespace hv::runtime
