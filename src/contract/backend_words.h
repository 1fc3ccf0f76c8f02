// HVRUN_BACKEND's list, "nccl,mpi,native", as hvrun and its ranks read it. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace hv {

// HVRUN_BACKEND where it is unset.
inline constexpr const char* kDefaultBackends = "nccl,native";

// A list of nccl, mpi and native: at least one, with blanks beside them or not.
bool is_backend_list(const std::string& text);

// Its names, in order, without blanks. Of "": none, which means the default.
std::vector<std::string> backend_words(const std::string& list);

bool names_mpi(const std::string& list);

}  // namespace hv
