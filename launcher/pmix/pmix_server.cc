// SPDX-License-Identifier: Apache-2.0
#include "launcher/pmix/pmix_server.h"

#include <dlfcn.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "launcher/pmix/job_map.h"
#include "src/base/check.h"
#include "src/base/environment.h"
#include "src/base/symbol.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr const char* kLibraries[] = {"libpmix.so.2", "libpmix.so"};
constexpr char kServersSpace[] = "hvrun-pmix";
// Limit of one host's part. hvrun checks the sum over all hosts.
constexpr std::size_t kMostFenceBytes = wire::kMaxAgentPayload / 2;

// The only one of this process.
PmixServer* the_server = nullptr;

wire::PmixReady problem(std::string what, std::string hint) {
  wire::PmixReady ready;
  ready.problem = std::move(what);
  ready.hint = std::move(hint);
  return ready;
}

// Waits for a call that the library completes from its own thread.
class Operation {
 public:
  static void done(int status, void* context) {
    auto* const operation = static_cast<Operation*>(context);
    const std::lock_guard lock(operation->mutex_);
    operation->status_ = status;
    operation->change_.notify_all();
  }
  // started: the return value of the call itself.
  int wait(int started) {
    if (started == pmix::kDoneAtOnce) return pmix::kSuccess;
    if (started != pmix::kSuccess) return started;
    std::unique_lock lock(mutex_);
    change_.wait(lock, [this] { return status_.has_value(); });
    return *status_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable change_;
  std::optional<int> status_;
};

pmix::Process process_of(const std::string& space, std::uint32_t rank) {
  pmix::Process process{};
  std::memcpy(process.space, space.data(), std::min(space.size(), sizeof process.space - 1));
  process.rank = rank;
  return process;
}

wire::Pairs pairs_of(char** entries) {
  wire::Pairs pairs;
  for (char** entry = entries; entry != nullptr && *entry != nullptr; ++entry) {
    if (const auto variable = split_variable(*entry))
      pairs.emplace_back(variable->first, variable->second);
    std::free(*entry);
  }
  std::free(entries);
  return pairs;
}

// Open MPI 4 runs as a singleton unless its own launcher, or one that it knows by name, has started
// it. ess=pmi makes it get its rank from PMIx; schizo=ompi leaves only the detector that finds no
// launcher. Open MPI 5 ignores both, and always uses PMIx.
void add_open_mpi_variables(wire::Pairs* variables) {
  variables->emplace_back("OMPI_MCA_ess", "pmi");
  variables->emplace_back("OMPI_MCA_schizo", "ompi");
}

// Open MPI must not bind ranks, because hvrun does, and must put shared memory into a directory
// that the agent removes.
wire::Pairs defaults_of(const std::string& directory) {
  return {{"OMPI_MCA_hwloc_base_binding_policy", "none"},
          {"OMPI_MCA_orte_externally_bound", "1"},
          {"OMPI_MCA_btl_vader_backing_directory", directory},
          {"OMPI_MCA_btl_sm_backing_directory", directory},
          {"OMPI_MCA_osc_sm_backing_directory", directory}};
}

}  // namespace

struct PmixServer::Library {
  int (*init)(pmix::ServerModule*, pmix::Info*, std::size_t) = nullptr;
  int (*make_node_map)(const char* names, char** map) = nullptr;
  int (*make_process_map)(const char* ranks, char** map) = nullptr;
  int (*add_space)(const char* space, int local_ranks, pmix::Info*, std::size_t, pmix::Done,
                   void*) = nullptr;
  int (*add_client)(const pmix::Process*, uid_t, gid_t, void* object, pmix::Done, void*) = nullptr;
  int (*set_up_fork)(const pmix::Process*, char*** environment) = nullptr;
  const char* (*error_string)(int status) = nullptr;

  // Returns why the library cannot be opened; "": it is open, and stays so, because it runs
  // threads.
  std::string load(const std::string& path);
  wire::PmixReady failure(const std::string& doing, int status) const {
    return problem(doing + ": PMIx: " + error_string(status),
                   "PMIX_MCA_ptl_base_verbose=5 in the login environment there makes it tell more");
  }
};

std::string PmixServer::Library::load(const std::string& path) {
  void* handle = nullptr;
  std::string reason;
  const auto open = [&](const char* name) {
    if (handle == nullptr) handle = ::dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    if (handle != nullptr || !reason.empty()) return;
    const char* const error = ::dlerror();
    reason = error != nullptr ? error : name;
  };
  if (!path.empty()) open(path.c_str());
  if (path.empty())
    for (const char* name : kLibraries) open(name);
  if (handle == nullptr) return reason;
  if (find_function(handle, "PMIx_server_init", &init) &&
      find_function(handle, "PMIx_generate_regex", &make_node_map) &&
      find_function(handle, "PMIx_generate_ppn", &make_process_map) &&
      find_function(handle, "PMIx_server_register_nspace", &add_space) &&
      find_function(handle, "PMIx_server_register_client", &add_client) &&
      find_function(handle, "PMIx_server_setup_fork", &set_up_fork) &&
      find_function(handle, "PMIx_Error_string", &error_string))
    return {};
  return "it lacks a function that versions 2 to 5 have";
}

// Callbacks of the library.
struct Calls {
  // The rank continues once connected or finalized has returned, so the agent gets the report
  // before the rank's process can end.
  static int connected(const pmix::Process* process, void*, pmix::Done, void*) {
    the_server->report_client(*process, false);
    return pmix::kDoneAtOnce;
  }
  static int finalized(const pmix::Process* process, void*, pmix::Done, void*) {
    the_server->report_client(*process, true);
    return pmix::kDoneAtOnce;
  }
  // Nothing to do: the rank exits with its own code, which hvrun reports.
  static int abort(const pmix::Process*, void*, int, const char*, pmix::Process*, std::size_t,
                   pmix::Done, void*) {
    return pmix::kDoneAtOnce;
  }
  static int fence(const pmix::Process* processes, std::size_t count, const pmix::Info*,
                   std::size_t, char* bytes, std::size_t size, pmix::GiveData give, void* context) {
    return the_server->fence(processes, count, bytes, size, {give, context});
  }
  // Data that another host's rank has not put into a fence is unknown here.
  static int not_here(const pmix::Process*, const pmix::Info*, std::size_t, pmix::GiveData, void*) {
    return pmix::kNotFound;
  }
};

PmixServer::PmixServer(wire::PmixJob job, OnFence on_fence, OnClient on_client)
    : job_(std::move(job)), on_fence_(std::move(on_fence)), on_client_(std::move(on_client)) {
  HV_CHECK(the_server == nullptr, "one PMIx server in a process");
  the_server = this;
}

PmixServer::~PmixServer() { the_server = nullptr; }

wire::PmixReady PmixServer::start(const std::string& path) {
  static Library library;
  if (const std::string reason = library.load(path); !reason.empty())
    return problem(
        "open libpmix.so.2, by which MPI programs find each other: " + printable(reason, 500),
        "install PMIx's library there (Debian: libpmix2), or put its folder into "
        "LD_LIBRARY_PATH; for MPICH, which needs none, --wire-mpi=pmi");
  static pmix::ServerModule module;
  module.client_connected = Calls::connected;
  module.client_finalized = Calls::finalized;
  module.abort = Calls::abort;
  module.fence = Calls::fence;
  module.direct_modex = Calls::not_here;
  InfoList infos;
  infos.add_text(pmix::kServerDirectory, job_.folder);
  infos.add_text(pmix::kSystemDirectory, job_.folder);
  infos.add_text(pmix::kServerSpace, kServersSpace);
  infos.add_rank(pmix::kServerRank, job_.host);
  infos.add_text(pmix::kHostName, node_names(job_.world.hosts)[job_.host]);
  const int status = library.init(&module, infos.data(), infos.size());
  if (status != pmix::kSuccess) return library.failure("start a PMIx server", status);
  return register_job(library);
}

wire::PmixReady PmixServer::register_job(const Library& library) {
  const std::string& space = job_.world.space;
  const auto map = [](int (*make)(const char*, char**), const std::string& text, std::string* to) {
    char* encoded = nullptr;
    const int status = make(text.c_str(), &encoded);
    if (status == pmix::kSuccess) *to = encoded;
    std::free(encoded);
    return status;
  };
  std::string nodes, processes;
  int status = map(library.make_node_map, join(node_names(job_.world.hosts), ","), &nodes);
  if (status == pmix::kSuccess)
    status = map(library.make_process_map, process_text(job_.world), &processes);
  if (status != pmix::kSuccess) return library.failure("say which ranks run where", status);

  const std::vector<std::uint32_t> local = ranks_on(job_.world, job_.host);
  InfoList infos = job_infos(job_, nodes, processes);
  const pmix::Process padded = process_of(space, 0);  // the library reads the whole array
  Operation space_added;
  status =
      space_added.wait(library.add_space(padded.space, static_cast<int>(local.size()), infos.data(),
                                         infos.size(), Operation::done, &space_added));
  if (status != pmix::kSuccess) return library.failure("tell PMIx of the job", status);
  wire::PmixReady ready;
  ready.defaults = defaults_of(job_.folder);
  for (const std::uint32_t rank : local) {
    const pmix::Process process = process_of(space, rank);
    Operation added;
    status = added.wait(
        library.add_client(&process, ::geteuid(), ::getegid(), nullptr, Operation::done, &added));
    char** environment = nullptr;
    if (status == pmix::kSuccess) status = library.set_up_fork(&process, &environment);
    if (status != pmix::kSuccess)
      return library.failure("tell PMIx of rank " + std::to_string(rank), status);
    ready.variables.emplace_back(rank, pairs_of(environment));
    add_open_mpi_variables(&ready.variables.back().second);
  }
  return ready;
}

void PmixServer::report_client(const pmix::Process& process, bool has_ended) {
  if (job_.world.space == process.space) on_client_({process.rank, has_ended});
}

bool PmixServer::is_whole_job(const pmix::Process* processes, std::size_t count) const {
  if (count == 0 || job_.world.space != processes[0].space) return count == 0;
  return (count == 1 && processes[0].rank == pmix::kAnyRank) ||
         count == job_.world.host_of_rank.size();
}

bool PmixServer::is_of_this_host(const pmix::Process* processes, std::size_t count) const {
  const std::vector<std::uint32_t>& hosts = job_.world.host_of_rank;
  for (std::size_t i = 0; i < count; ++i)
    if (processes[i].rank >= hosts.size() || hosts[processes[i].rank] != job_.host) return false;
  return true;
}

int PmixServer::fence(const pmix::Process* processes, std::size_t count, const char* bytes,
                      std::size_t size, Waiting waiting) {
  wire::PmixFence fence;
  if (!is_whole_job(processes, count))
    return is_of_this_host(processes, count) ? pmix::kDoneAtOnce : pmix::kNotSupported;
  if (size > kMostFenceBytes) {
    std::fprintf(stderr, "MPI's programs exchange %zu MiB on this host, and hvrun takes %zu\n",
                 size >> 20, kMostFenceBytes >> 20);
    return pmix::kNotSupported;
  }
  if (size > 0) fence.bytes.assign(bytes, size);
  {
    const std::lock_guard lock(mutex_);
    fence.number = ++fences_;
    waiting_[fence.number] = waiting;
  }
  on_fence_(fence);
  return pmix::kSuccess;
}

void PmixServer::pass(const wire::PmixFence& fence) {
  Waiting waiting;
  {
    const std::lock_guard lock(mutex_);
    const auto found = waiting_.find(fence.number);
    if (found == waiting_.end()) return;
    waiting = found->second;
    waiting_.erase(found);
  }
  // The library reads the bytes later, and then calls the deleter.
  auto* const copy = new std::string(fence.bytes);
  waiting.give(
      pmix::kSuccess, copy->data(), copy->size(), waiting.context,
      [](void* bytes) { delete static_cast<std::string*>(bytes); }, copy);
}

}  // namespace hv::launcher
