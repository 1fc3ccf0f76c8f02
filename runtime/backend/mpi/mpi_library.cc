// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/mpi/mpi_library.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

#include "runtime/backend/mpi/mpi_choice.h"
#include "runtime/backend/plugin_file.h"
#include "src/base/knob.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/contract/backend_words.h"
#include "src/contract/runtime_knobs.h"
#include "src/wire/codec.h"

namespace hv::runtime {
namespace {

constexpr const char* kFoundKey = "mpi.found";
constexpr const char* kFactsKey = "mpi";
constexpr int kLeastThreadLevel = 2;             // MPI_THREAD_SERIALIZED
constexpr std::size_t kMostVersionBytes = 8192;  // MPICH's; Open MPI's is 256

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

// Two of different builds: the one's communicators mean nothing to the other.
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
              flavour.libraries[1] + " in it, which are two builds of MPI; try: a program that " +
              "loads one, or HVRUN_BACKEND=native"};
}

// The file that a function of the MPI in `scope` is of; "": it has none. By the name that profilers
// leave alone.
std::string file_of_mpi(void* scope) {
  Dl_info info{};
  void* const found = ::dlsym(scope, "PMPI_Init_thread");
  return found != nullptr && ::dladdr(found, &info) != 0 ? info.dli_fname : "";
}

// A plugin's functions are those that the whole process sees first: a program that is linked with
// another MPI would have that one called with this one's handles.
Status check_seen(void* opened) {
  const std::string seen = file_of_mpi(RTLD_DEFAULT), wanted = file_of_mpi(opened);
  if (seen == wanted) return Status::success();
  return {StatusCode::kUnsupported,
          "use MPI: this program has " + (seen.empty() ? "another one" : seen) +
              " in it, and HVRUN_MPI or its launcher means " + wanted +
              "; try: HVRUN_MPI as the program has it, or HVRUN_BACKEND=native"};
}

// Where an MPI of that kind may be: by its names, and in the folder beside which hvrun was built.
std::vector<std::string> paths_of(const MpiFlavour& flavour) {
  std::vector<std::string> paths(flavour.libraries.begin(), flavour.libraries.end());
  if (*flavour.folder != '\0')
    for (const char* const library : flavour.libraries)
      paths.push_back(std::string(flavour.folder) + "/" + library);
  return paths;
}

// As the loader has found it.
std::string file_of(void* opened, const std::string& path) {
  link_map* map = nullptr;
  if (::dlinfo(opened, RTLD_DI_LINKMAP, &map) != 0 || map->l_name == nullptr) return path;
  return map->l_name;
}

// "" where it is what its name says: an MPI of that kind. Another's handles would mean something
// else to hvrun's part, or it could not be opened at all.
std::string why_not(const MpiFlavour& flavour, void* opened) {
  if (::dlsym(opened, "PMPI_Init_thread") == nullptr) return "it is no MPI";
  const bool is_open_mpi = ::dlsym(opened, kOpenMpisSymbol) != nullptr;
  return is_open_mpi == flavour.is_open_mpi ? "" : "it is another MPI";
}

// "FILE: reason", as the loader tells it of a file that is there; of one that is not, or of one of
// those that it needs, the name alone stands before it.
BrokenLibrary read_reason(const std::string& path, const std::string& reason) {
  const std::size_t colon = reason.find(": ");
  if (reason.starts_with('/') && colon != std::string::npos)
    return {reason.substr(0, colon), reason.substr(colon + 2)};
  return {path, reason};
}

// The first that opens, with these flags beside RTLD_NOW. Adds those that lie before it, and cannot
// be used.
Status open_first(const MpiFlavour& flavour, int flags, void** opened,
                  std::vector<BrokenLibrary>* broken) {
  std::vector<std::string> reasons;
  for (const std::string& path : paths_of(flavour)) {
    *opened = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // until it is known what it is
    if (*opened != nullptr) {
      const std::string reason = why_not(flavour, *opened);
      if (reason.empty() && ::dlopen(path.c_str(), RTLD_NOW | flags) != nullptr)
        ::dlclose(*opened);  // one of the two
      if (reason.empty()) return Status::success();
      broken->push_back({file_of(*opened, path), reason});
      ::dlclose(std::exchange(*opened, nullptr));
      continue;
    }
    const char* const words = ::dlerror();
    const std::string reason = words != nullptr ? words : path + ": cannot be opened";
    reasons.push_back(reason);
    if (reason != path + ": cannot open shared object file: No such file or directory")
      broken->push_back(read_reason(path, reason));
  }
  if (!broken->empty()) return broken_libraries(flavour, *broken);
  return {StatusCode::kUnsupported,
          std::string("use MPI: ") + flavour.title + " is not found: " + join(reasons, ", ") +
              "; try: its package (on Debian and Ubuntu " + flavour.packages +
              "), or the folder of its libraries in LD_LIBRARY_PATH"};
}

// What the plugin finds MPI's functions in, for it is linked against none: the process's own, else
// the first that opens. All of the process sees it: Open MPI opens parts of itself, which look
// their functions up there, too.
Status open_library(const MpiFlavour& flavour, void** opened, std::vector<BrokenLibrary>* broken) {
  for (const char* const library : flavour.libraries) {
    *opened = ::dlopen(library, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
    if (*opened == nullptr) continue;
    if (const std::string reason = why_not(flavour, *opened); !reason.empty())
      return broken_libraries(flavour, {{file_of(*opened, library), reason}});
    const Status status = check_single(flavour);
    return status.ok() ? check_seen(*opened) : status;
  }
  const Status status = open_first(flavour, RTLD_GLOBAL, opened, broken);
  return status.ok() ? check_seen(*opened) : status;
}

struct Found {
  MpiPlugin* plugin = nullptr;
  const MpiFlavour* flavour = nullptr;
  std::string replaced;  // why this one, and not what lies before it; empty: nothing does
  Status status;
};

Status open_one(const MpiFlavour& flavour, Found* found) {
  const void* entry = nullptr;
  void* library = nullptr;
  std::vector<BrokenLibrary> broken;
  Status status = open_library(flavour, &library, &broken);
  if (!broken.empty() && found->replaced.empty())
    found->replaced = broken_libraries(flavour, broken).message;
  if (status.ok())
    status = open_plugin("MPI", plugin_path(flavour.plugin), kMpiPluginSymbol, 0, &entry);
  if (!status.ok()) {
    if (library != nullptr) ::dlclose(library);  // where another is tried next, it alone is seen
    return status;
  }
  found->plugin = static_cast<const MpiPluginEntry*>(entry)->plugin();
  found->flavour = &flavour;
  return status;
}

bool has_part(const MpiFlavour& flavour) {
  return ::access(plugin_path(flavour.plugin).c_str(), F_OK) == 0;
}

Status without_part(const MpiFlavour& flavour) {
  std::vector<const MpiFlavour*> others;
  for (const MpiFlavour& other : mpi_flavours())
    if (has_part(other)) others.push_back(&other);
  return not_built(flavour, plugin_path(flavour.plugin), others);
}

Status open_any(const Environment& environment, Found* found) {
  const std::string wanted = KnobReader(runtime_knobs(), environment).text("HVRUN_MPI");
  Status first;  // of those that are tried: of one whose part is here, if any is
  const MpiFlavour* failed = nullptr;
  for (const MpiFlavour* const one : mpi_order(wanted, held_mpi(), environment)) {
    const Status status = has_part(*one) ? open_one(*one, found) : without_part(*one);
    if (status.ok()) return status;
    if (first.ok() || (!has_part(*failed) && has_part(*one))) {
      first = status;
      failed = one;
    }
  }
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
  MpiFacts facts;
  if (found.status.ok()) {
    facts = found.plugin->inspect(who.size == 1 || is_started_by_mpi(environment));
    if (facts.is_usable != 0 && !found.replaced.empty())
      facts.words = replaced_words(found.replaced, facts.library);
    return facts;
  }
  facts.words = found.status.message;
  return facts;
}

std::string host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

// What each rank has, by rank, once all have put theirs.
Status exchange_facts(const std::string& key, MpiFacts own, int size, Store& store,
                      std::chrono::milliseconds timeout, std::vector<MpiFacts>* facts) {
  own.host = host_name();
  Status status = store.put(key, encode(own));
  if (status.ok()) status = store.fence(timeout);
  facts->resize(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size && status.ok(); ++rank) {
    std::string bytes;
    status = store.get(rank, key, &bytes);
    if (!status.ok()) break;
    if (!decode(bytes, &(*facts)[static_cast<std::size_t>(rank)]))
      return {StatusCode::kContract, "join the job: rank " + std::to_string(rank) +
                                         " is of another libhvrun; do all ranks run the same one?"};
  }
  return status;
}

// Of ranks that can use MPI, the first that does not have what it looked for first. Once a job.
void warn_of_replaced(const std::vector<MpiFacts>& facts, int rank) {
  static std::atomic_flag is_told;  // of an earlier job of this process
  const auto first = std::find_if(facts.begin(), facts.end(),
                                  [](const MpiFacts& one) { return !one.words.empty(); });
  if (first - facts.begin() != rank || is_told.test_and_set()) return;
  HV_LOG(kWarn, "backend") << first->words;
}

void warn(const std::string& words) { HV_LOG(kWarn, "rendezvous") << words; }

}  // namespace

// What a program loads afterwards must not find an MPI that only a question has opened.
Status ask_mpi(const Environment& environment, std::string* library, int* thread_level) {
  const std::string wanted = KnobReader(runtime_knobs(), environment).text("HVRUN_MPI");
  if (!wanted.empty() || !held_mpi().empty()) {
    const Found& found = find(environment);
    if (!found.status.ok()) return found.status;
    *library = found.plugin->library();
    *thread_level = found.plugin->thread_level();
    return Status::success();
  }
  Status first;
  for (const MpiFlavour* const one : mpi_order(wanted, "", environment)) {
    void* opened = nullptr;
    std::vector<BrokenLibrary> broken;
    const Status status =
        has_part(*one) ? open_first(*one, RTLD_LOCAL, &opened, &broken) : without_part(*one);
    if (first.ok()) first = status;
    if (!status.ok()) continue;
    char text[kMostVersionBytes] = {};
    int length = 0;
    const auto ask =
        reinterpret_cast<int (*)(char*, int*)>(::dlsym(opened, "MPI_Get_library_version"));
    if (ask != nullptr) ask(text, &length);
    ::dlclose(opened);
    *library = library_words(text);
    *thread_level = -1;
    return Status::success();
  }
  return first;
}

Status open_communicator(const Environment& environment, const void* communicator,
                         const WaitLimits& limits, std::unique_ptr<Exchange>* made) {
  const Found& found = find(environment);
  if (!found.status.ok()) return found.status;
  return found.plugin->open_exchange(communicator, limits, warn, made);
}

Status open_mpi_exchange(const Environment& environment, const WaitLimits& limits,
                         std::unique_ptr<Exchange>* made) {
  if (!is_started_by_mpi(environment)) return Status::success();
  const bool is_named = names_mpi(KnobReader(runtime_knobs(), environment).text("HVRUN_BACKEND"));
  const bool has_own = !held_mpi().empty();  // the program; behind find() it may be ours
  if (!is_named && !has_own) return Status::success();
  const Found& found = find(environment);
  // A program's own MPI serves, unless threads may not call it: then the launcher's way does.
  if (!is_named && (!found.status.ok() || found.plugin->thread_level() < kLeastThreadLevel))
    return Status::success();
  const Status status = open_communicator(environment, nullptr, limits, made);
  const std::int64_t told = ranks_of_launcher(environment);
  if (!status.ok() || (*made)->size() > 1 || told <= 1) return status;
  return {StatusCode::kUnsupported,
          "use MPI: the launcher has started " + std::to_string(told) + " ranks, and " +
              found.plugin->library() + " finds this one alone: it is not that launcher's; try: " +
              (has_own ? "the mpirun of the MPI that the program has (Debian's are called "
                         "mpirun.openmpi and mpirun.mpich)"
                       : "HVRUN_MPI=openmpi or mpich, whichever the launcher is of")};
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
  warn_of_replaced(facts, who.rank);
  const Found& found = find(environment);
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
