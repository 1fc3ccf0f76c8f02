// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/mpi/mpi_library.h"

#include <dlfcn.h>

#include <cstring>

#include "runtime/backend/gpu/gpu_choice.h"
#include "runtime/backend/mpi/mpi_choice.h"
#include "runtime/backend/plugin_file.h"
#include "src/base/knob.h"
#include "src/contract/runtime_knobs.h"

namespace hv::runtime {
namespace {

constexpr const char* kFactsKey = "mpi";

// By its program, by mpi4py or the like.
std::string held_mpi() {
  for (const MpiFlavour& one : mpi_flavours()) {
    for (const char* const library : one.libraries) {
      void* const found = ::dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
      if (found == nullptr) continue;
      ::dlclose(found);
      return one.name;
    }
  }
  return "";
}

// Open MPI opens parts of itself, which look its symbols up among those of the whole process.
void show_to_its_parts(const MpiFlavour& flavour) {
  for (const char* const library : flavour.libraries)
    if (::dlopen(library, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD) != nullptr) return;
}

Status open_one(const MpiFlavour& flavour, MpiPlugin** plugin) {
  const void* entry = nullptr;
  Status status = open_plugin("MPI", plugin_path(flavour.plugin), kMpiPluginSymbol, 0, &entry);
  if (!status.ok()) return status;
  show_to_its_parts(flavour);
  *plugin = static_cast<const MpiPluginEntry*>(entry)->plugin();
  return status;
}

Status open_any(const Environment& environment, MpiPlugin** plugin) {
  const std::string wanted = KnobReader(runtime_knobs(), environment).text("HVRUN_MPI");
  Status first;
  for (const MpiFlavour* const one : mpi_order(wanted, held_mpi(), environment)) {
    const Status status = open_one(*one, plugin);
    if (status.ok()) return status;
    if (first.ok()) first = status;
  }
  first.message +=
      "; on Debian and Ubuntu Open MPI is openmpi-bin and libopenmpi-dev, MPICH is mpich";
  return first;
}

MpiFacts look(const Environment& environment, const RankIdentity& who) {
  MpiFacts facts;
  MpiPlugin* plugin = nullptr;
  const Status status = find_mpi_plugin(environment, &plugin);
  if (status.ok()) return plugin->look(who.size == 1 || is_started_by_mpi(environment));
  put_words(facts.words, status.message);
  return facts;
}

}  // namespace

Status find_mpi_plugin(const Environment& environment, MpiPlugin** plugin) {
  struct Found {
    MpiPlugin* plugin = nullptr;
    Status status;
  };
  static const Found found = [&] {
    Found one;
    one.status = open_any(environment, &one.plugin);
    return one;
  }();
  *plugin = found.plugin;
  return found.status;
}

Status open_mpi_exchange(const Environment& environment, std::unique_ptr<Exchange>* made) {
  if (!is_started_by_mpi(environment)) return Status::success();
  const bool is_named = names_mpi(KnobReader(runtime_knobs(), environment).text("HVRUN_BACKEND"));
  if (!is_named && held_mpi().empty()) return Status::success();
  MpiPlugin* plugin = nullptr;
  Status status = find_mpi_plugin(environment, &plugin);
  if (!is_named && (!status.ok() || plugin->thread_level() < 0)) return Status::success();
  if (status.ok()) status = plugin->open_exchange(nullptr, made);
  const std::int64_t told = ranks_of_launcher(environment);
  if (!status.ok() || (*made)->size() > 1 || told <= 1) return status;
  return {StatusCode::kUnsupported,
          "use MPI: the launcher has started " + std::to_string(told) + " ranks, and " +
              plugin->library() +
              " finds this one alone: it is not that launcher's; try: its own mpirun, or "
              "HVRUN_MPI=openmpi or mpich, whichever the launcher is of"};
}

Status meet_in_mpi(const Environment& environment, const RankIdentity& who, Store& store,
                   std::chrono::milliseconds timeout, MpiPlacesPtr* places) {
  const MpiFacts own = look(environment, who);
  std::string bytes(sizeof own, '\0');
  std::memcpy(bytes.data(), &own, sizeof own);
  Status status = store.put(kFactsKey, bytes);
  if (status.ok()) status = store.fence(timeout);
  std::vector<MpiFacts> facts(static_cast<std::size_t>(who.size));
  for (int rank = 0; rank < who.size && status.ok(); ++rank) {
    status = store.get(rank, kFactsKey, &bytes);
    if (!status.ok()) break;
    if (bytes.size() != sizeof own)
      return {StatusCode::kContract, "join the job: rank " + std::to_string(rank) +
                                         " is of another libhvrun; do all ranks run the same one?"};
    MpiFacts& one = facts[static_cast<std::size_t>(rank)];
    std::memcpy(&one, bytes.data(), sizeof one);
    one.library[sizeof one.library - 1] = one.host[sizeof one.host - 1] = '\0';
    one.words[sizeof one.words - 1] = '\0';
  }
  const auto made = std::make_shared<MpiPlaces>();
  if (status.ok()) status = place_in_world(facts, &made->world_ranks);
  if (status.ok()) status = find_mpi_plugin(environment, &made->plugin);
  made->library = facts.front().library;
  if (status.ok()) *places = made;
  return status;
}

}  // namespace hv::runtime
