// PmixServer: a PMIx server for the ranks of one host. Opens libpmix at run time, registers the
// job, and gets the variables that its ranks need in their environment.
// SPDX-License-Identifier: Apache-2.0
//
// Ranks of several hosts exchange data in a fence: the library passes the data of this host's ranks
// once all of them have reached the fence; on_fence carries it to the agent; pass() returns the
// data of all hosts to the library. Fences of some of the job's ranks across hosts are refused: no
// MPI begins with one.
//
// The library calls from its own thread, and its callbacks carry no pointer to an object. So a
// process has one server, which lives until the process ends.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "launcher/pmix/pmix_server_abi.h"
#include "src/wire/mpi_wiring.h"

namespace hv::launcher {

class PmixServer {
 public:
  using OnFence = std::function<void(const wire::PmixFence&)>;
  using OnClient = std::function<void(const wire::PmixClient&)>;
  PmixServer(wire::PmixJob job, OnFence on_fence, OnClient on_client);
  ~PmixServer();
  PmixServer(const PmixServer&) = delete;
  PmixServer& operator=(const PmixServer&) = delete;

  // Returns the variables of this host's ranks, or a problem. path: of libpmix; "": the system's.
  wire::PmixReady start(const std::string& path);
  void pass(const wire::PmixFence& fence);

 private:
  struct Library;
  struct Waiting {
    pmix::GiveData give = nullptr;
    void* context = nullptr;
  };
  friend struct Calls;

  bool is_whole_job(const pmix::Process* processes, std::size_t count) const;
  bool is_of_this_host(const pmix::Process* processes, std::size_t count) const;
  int fence(const pmix::Process* processes, std::size_t count, const char* bytes, std::size_t size,
            Waiting waiting);
  wire::PmixReady register_job(const Library& library);
  void report_client(const pmix::Process& process, bool has_ended);

  const wire::PmixJob job_;
  const OnFence on_fence_;
  const OnClient on_client_;
  std::mutex mutex_;
  std::uint32_t fences_ = 0;                  // mutex_
  std::map<std::uint32_t, Waiting> waiting_;  // mutex_
};

}  // namespace hv::launcher
