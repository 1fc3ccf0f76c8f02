// What a shared object beside libhvrun has that carries out collectives by an MPI:
// libhvrun-openmpi.so and libhvrun-mpich.so, of the same sources.
// SPDX-License-Identifier: Apache-2.0
//
// The two are of one build: its interface is C++, and the only symbol is kMpiPluginSymbol, an
// MpiPluginEntry. Any thread may call; each call may block for what MPI takes but where told
// otherwise.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/backend/backend.h"
#include "src/rendezvous/exchange.h"

namespace hv::runtime {

// What a rank tells the others of its job.
struct MpiFacts {
  std::int32_t is_usable = 0;  // 0: words say why not
  std::int32_t rank = 0;       // in MPI_COMM_WORLD
  std::int32_t size = 0;
  std::int32_t has_all_threads = 0;  // MPI_THREAD_MULTIPLE
  std::int32_t is_cuda_aware = 0;    // MPI takes addresses of GPUs' memory
  std::string library;               // "Open MPI v4.1.4", "MPICH 4.0.2"
  std::string host;                  // set by who tells the others
  std::string words;                 // what to warn of where it is usable

  void fields(auto& a) {
    a(is_usable, rank, size, has_all_threads, is_cuda_aware, library, host, words);
  }
};

class MpiPlugin {
 public:
  virtual ~MpiPlugin() = default;
  // "Open MPI v4.1.4", "MPICH 4.0.2". Whether MPI has begun or not.
  virtual std::string library() = 0;
  // MPI_THREAD_MULTIPLE and so on, from 0 to 3; -1: MPI has not begun, or has ended.
  virtual int thread_level() = 0;
  // Whether MPI can be used here as it stands, or be begun: what is known without the other ranks.
  // is_wired: MPI is told how to find them. Never waits.
  virtual MpiFacts inspect(bool is_wired) = 0;
  // Where inspect() has nothing against it: initializes MPI where the program has not, for the rest
  // of the process, which waits for the other ranks of MPI_COMM_WORLD, without limit.
  virtual MpiFacts begin() = 0;
  // Among these ranks of MPI_COMM_WORLD, one for each member; all of them call, for one set after
  // the other in the same order. self: this member. is_cuda_aware: of all of them. ring: called in
  // another thread once the backend is prepared or never will be, while it lives. pairs: lives as
  // long as the backend, which need not be prepared for it. Never blocks: what there is to wait for
  // is in the backend's preparation.
  virtual std::unique_ptr<Backend> make(std::vector<int> world_ranks, int self, bool is_cuda_aware,
                                        std::function<void()> ring, PairCarrier** pairs) = 0;
  // Until all that has gone has been given back to MPI: the program may end it then.
  virtual void settle() = 0;
  // Ranks of a communicator meet: where an MPI_Comm lies; nullptr: MPI_COMM_WORLD. All ranks of it
  // call. warn: is called with what to tell the user of those that are missing, also later.
  // kUnsupported where there is no MPI to be used, kArgument where this is no communicator.
  virtual Status open_exchange(const void* communicator, const WaitLimits& limits,
                               std::function<void(const std::string&)> warn,
                               std::unique_ptr<Exchange>* made) = 0;
};

// What MPI_Get_library_version says ("Open MPI v4.1.4, package: ...", "MPICH Version:\t4.0.2\n..."
// and more), in as many words as MpiPlugin::library() has.
inline std::string library_words(std::string_view said) {
  constexpr std::string_view kMpich = "MPICH Version:";
  if (!said.starts_with(kMpich)) return std::string(said.substr(0, said.find_first_of(",\n")));
  said.remove_prefix(std::min(said.find_first_not_of(" \t", kMpich.size()), said.size()));
  return "MPICH " + std::string(said.substr(0, said.find('\n')));
}

struct MpiPluginEntry {
  const char* build;
  MpiPlugin* (*plugin)();  // one a process, never destroyed
};
constexpr const char* kMpiPluginSymbol = "hvrun_mpi_plugin";

}  // namespace hv::runtime
