// Do all ranks mean the same operation on a tensor? If not, the words that say who said what.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "runtime/engine/control_messages.h"
#include "src/base/status.h"

namespace hv::runtime {

// kOk for one variant; else kMismatch: "tensor 'w': ranks 0-2 have float32 [3,4], rank 3 has
// float32 [4,3]". Names what differs and nothing more. Pure.
Status judge(const std::string& name, std::vector<Variant> variants);

// "rank 3", "ranks 0-2,5".
std::string ranks_text(std::vector<std::uint32_t> ranks);

}  // namespace hv::runtime
