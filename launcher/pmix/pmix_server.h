// A PMIx server for the ranks of one host: libpmix, opened at run time, told of the job and asked
// what its ranks are to be born with.
// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of several hosts tell each other ends in a fence: the library hands over what this
// host's have said once the last of them has come, on_fence carries it to the agent, and pass()
// gives the library what all hosts have said. Fences of some ranks only, across hosts, are refused:
// no MPI begins with one.
//
// The library calls from a thread of its own and has no room for an object in its calls, so there
// is one server in a process; it is never taken down but by the process's end.
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

  // What the ranks are to be born with, or what stands in the way. library: "" is the system's.
  wire::PmixReady start(const std::string& library);
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
  wire::PmixReady tell(const Library& library);
  void tell(const pmix::Process& process, bool has_ended);

  const wire::PmixJob job_;
  const OnFence on_fence_;
  const OnClient on_client_;
  std::mutex mutex_;
  std::uint32_t fences_ = 0;                  // mutex_
  std::map<std::uint32_t, Waiting> waiting_;  // mutex_
};

}  // namespace hv::launcher
