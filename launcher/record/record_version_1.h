// Records of jobs as version 1 had them, for `hvrun explain`. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace hv::launcher {

// Gives an object of version 1 the names of version 2.
void upgrade_record_from_1(nlohmann::json* record);

}  // namespace hv::launcher
