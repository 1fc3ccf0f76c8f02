// The one symbol of libhvrun-openmpi.so and libhvrun-mpich.so.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/mpi/mpi_backend.h"
#include "runtime/backend/plugin_file.h"

namespace {

hv::runtime::MpiPlugin* plugin() {
  static auto* const one = new hv::mpi::MpiBackendPlugin;
  return one;
}

}  // namespace

extern "C" __attribute__((visibility("default")))
const hv::runtime::MpiPluginEntry hvrun_mpi_plugin;
const hv::runtime::MpiPluginEntry hvrun_mpi_plugin = {hv::runtime::kPluginBuild, plugin};
