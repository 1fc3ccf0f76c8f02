// A rank that has come where all of the launcher's meet, and has not said who it is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "src/base/status.h"

namespace hv {

// Of this rank's first meeting. way: "PMIx". reason: the launcher's own.
Status silent_rank(const std::string& way, int self, int silent, const std::string& reason);

}  // namespace hv
