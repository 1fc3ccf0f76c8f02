// Shared objects beside this library that know what it does not link: NCCL, an MPI.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "hvrun_version.h"
#include "src/base/status.h"

namespace hv::runtime {

// As the object and this library must both have it: their interface is C++.
constexpr const char* kPluginBuild = HVRUN_VERSION_TEXT " by " __VERSION__;

// Beside the file that this code is in, or in lib beside its folder: programs that have all of it
// in themselves.
std::string plugin_path(const std::string& name);

// The entry of that name, which begins with the build's name; the object is never closed. what:
// "NCCL". flags: for dlopen, beside RTLD_NOW. kUnsupported: it cannot be opened, or is of another
// build.
Status open_plugin(const std::string& what, const std::string& path, const char* symbol, int flags,
                   const void** entry);

}  // namespace hv::runtime
