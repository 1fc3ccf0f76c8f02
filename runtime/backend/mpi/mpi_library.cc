// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/mpi/mpi_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "runtime/backend/gpu/gpu_choice.h"
#include "runtime/backend/mpi/mpi_choice.h"
#include "runtime/backend/plugin_file.h"
#include "src/base/knob.h"
#include "src/base/log.h"
#include "src/contract/runtime_knobs.h"

namespace hv::runtime {
namespace {

constexpr const char* kFoundKey = "mpi.found";
constexpr const char* kFactsKey = "mpi";
constexpr int kLeastThreadLevel = 2;  // MPI_THREAD_SERIALIZED

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

// The program's copy of it and the one that the plugin is linked against are two where they are of
// different builds: the one's communicators mean nothing to the other.
Status check_single(const MpiFlavour& flavour) {
  std::set<void*> copies;
  for (const char* const library : flavour.libraries) {
    void* const found = ::dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (found == nullptr) continue;
    copies.insert(found);
    ::dlclose(found);
  }
  if (copies.size() <= 1) return Status::success();
  return {StatusCode::kUnsupported,
          std::string("use MPI: this process has ") + flavour.libraries[0] + " and " +
              flavour.libraries[1] + " in it, which are two builds of MPI; try: build hvrun with " +
              "the program's MPI, or HVRUN_BACKEND=native"};
}

// Open MPI opens parts of itself, which look its symbols up among those of the whole process.
void show_to_its_parts(const MpiFlavour& flavour) {
  for (const char* const library : flavour.libraries)
    if (::dlopen(library, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD) != nullptr) return;
}

struct Found {
  MpiPlugin* plugin = nullptr;
  const MpiFlavour* flavour = nullptr;
  Status status;
};

Status open_one(const MpiFlavour& flavour, Found* found) {
  const void* entry = nullptr;
  Status status = open_plugin("MPI", plugin_path(flavour.plugin), kMpiPluginSymbol, 0, &entry);
  if (status.ok()) status = check_single(flavour);
  if (!status.ok()) return status;
  found->plugin = static_cast<const MpiPluginEntry*>(entry)->plugin();
  found->flavour = &flavour;
  return status;
}

Status open_any(const Environment& environment, Found* found) {
  const std::string wanted = KnobReader(runtime_knobs(), environment).text("HVRUN_MPI");
  Status first;
  for (const MpiFlavour* const one : mpi_order(wanted, held_mpi(), environment)) {
    const Status status = open_one(*one, found);
    if (status.ok()) return status;
    if (first.ok()) first = status;
  }
  first.message +=
      "; on Debian and Ubuntu Open MPI is openmpi-bin and libopenmpi-dev, MPICH is mpich";
  return first;
}

// The process's: the first call opens it, and what came of that stays.
const Found& find(const Environment& environment) {
  static const Found found = [&] {
    Found one;
    one.status = open_any(environment, &one);
    return one;
  }();
  return found;
}

MpiFacts inspect(const Environment& environment, const RankIdentity& who) {
  const Found& found = find(environment);
  if (found.status.ok())
    return found.plugin->inspect(who.size == 1 || is_started_by_mpi(environment));
  MpiFacts facts;
  ::gethostname(facts.host, sizeof facts.host - 1);
  put_words(facts.words, found.status.message);
  return facts;
}

// What each rank has, by rank, once all have put theirs.
Status exchange_facts(const std::string& key, const MpiFacts& own, int size, Store& store,
                      std::chrono::milliseconds timeout, std::vector<MpiFacts>* facts) {
  std::string bytes(sizeof own, '\0');
  std::memcpy(bytes.data(), &own, sizeof own);
  Status status = store.put(key, bytes);
  if (status.ok()) status = store.fence(timeout);
  facts->resize(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size && status.ok(); ++rank) {
    status = store.get(rank, key, &bytes);
    if (!status.ok()) break;
    if (bytes.size() != sizeof own)
      return {StatusCode::kContract, "join the job: rank " + std::to_string(rank) +
                                         " is of another libhvrun; do all ranks run the same one?"};
    MpiFacts& one = (*facts)[static_cast<std::size_t>(rank)];
    std::memcpy(&one, bytes.data(), sizeof one);
    one.library[sizeof one.library - 1] = one.host[sizeof one.host - 1] = '\0';
    one.words[sizeof one.words - 1] = '\0';
  }
  return status;
}

void warn(const std::string& words) { HV_LOG(kWarn, "rendezvous") << words; }

}  // namespace

Status find_mpi_plugin(const Environment& environment, MpiPlugin** plugin) {
  *plugin = find(environment).plugin;
  return find(environment).status;
}

Status open_communicator(const Environment& environment, const void* communicator,
                         const WaitLimits& limits, std::unique_ptr<Exchange>* made) {
  const Found& found = find(environment);
  if (!found.status.ok()) return found.status;
  show_to_its_parts(*found.flavour);
  return found.plugin->open_exchange(communicator, limits, warn, made);
}

Status open_mpi_exchange(const Environment& environment, const WaitLimits& limits,
                         std::unique_ptr<Exchange>* made) {
  if (!is_started_by_mpi(environment)) return Status::success();
  const bool is_named = names_mpi(KnobReader(runtime_knobs(), environment).text("HVRUN_BACKEND"));
  if (!is_named && held_mpi().empty()) return Status::success();
  const Found& found = find(environment);
  // A program's own MPI serves, unless threads may not call it: then the launcher's way does.
  if (!is_named && (!found.status.ok() || found.plugin->thread_level() < kLeastThreadLevel))
    return Status::success();
  const Status status = open_communicator(environment, nullptr, limits, made);
  const std::int64_t told = ranks_of_launcher(environment);
  if (!status.ok() || (*made)->size() > 1 || told <= 1) return status;
  return {StatusCode::kUnsupported,
          "use MPI: the launcher has started " + std::to_string(told) + " ranks, and " +
              found.plugin->library() +
              " finds this one alone: it is not that launcher's; try: its own mpirun, or "
              "HVRUN_MPI=openmpi or mpich, whichever the launcher is of"};
}

// MPI's beginning waits for all ranks: one that could not begin it would hold up the others without
// a word, so they tell each other before.
Status meet_in_mpi(const Environment& environment, const RankIdentity& who, Store& store,
                   std::chrono::milliseconds timeout, MpiPlacesPtr* places) {
  std::vector<MpiFacts> facts;
  Status status =
      exchange_facts(kFoundKey, inspect(environment, who), who.size, store, timeout, &facts);
  if (status.ok()) status = can_begin_together(facts);
  if (!status.ok()) return status;
  const Found& found = find(environment);
  show_to_its_parts(*found.flavour);
  status = exchange_facts(kFactsKey, found.plugin->begin(), who.size, store, timeout, &facts);
  const auto made = std::make_shared<MpiPlaces>();
  if (status.ok()) status = place_in_world(facts, &made->world_ranks);
  if (!status.ok()) return status;
  made->plugin = found.plugin;
  made->library = facts.front().library;
  made->is_cuda_aware = std::all_of(facts.begin(), facts.end(),
                                    [](const MpiFacts& one) { return one.is_cuda_aware != 0; });
  made->has_all_threads = facts[static_cast<std::size_t>(who.rank)].has_all_threads != 0;
  *places = made;
  return status;
}

}  // namespace hv::runtime
