// The backends of this build, in order of preference: the first that supports a request carries it
// out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/backend/backend.h"
#include "runtime/transport/fabric.h"

namespace hv::runtime {

// Names that HVRUN_BACKEND accepts, in order of preference.
std::vector<std::string> backend_names();

// wanted: one of those names, or "" for all that work here. kUnsupported, with the names there are,
// for any other. The fabric outlives the backends.
Status make_backends(Fabric& fabric, const std::string& wanted,
                     std::vector<std::unique_ptr<Backend>>* backends);

}  // namespace hv::runtime
