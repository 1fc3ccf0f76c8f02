// The part of PMIx's server interface (versions 2 to 5) that hvrun-pmix uses, in addition to that
// of clients (src/rendezvous/pmix_abi.h). A unit test compares it with an installed pmix_server.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "src/rendezvous/pmix_abi.h"

namespace hv::pmix {

constexpr int kNotFound = -46, kNotSupported = -47;
constexpr int kDoneAtOnce = -157;  // PMIX_OPERATION_SUCCEEDED: no callback follows
constexpr std::size_t kMostSpace = 255;
constexpr std::uint16_t kText = 3, kUint16 = 13, kInfo = 24, kDataArray = 39, kRank = 40;

inline constexpr char kServerDirectory[] = "pmix.srvr.tmpdir";
inline constexpr char kSystemDirectory[] = "pmix.sys.tmpdir";
inline constexpr char kServerSpace[] = "pmix.srv.nspace";
inline constexpr char kServerRank[] = "pmix.srv.rank";
inline constexpr char kHostName[] = "pmix.hname";
inline constexpr char kNodeNumber[] = "pmix.nodeid";
inline constexpr char kNodeMap[] = "pmix.nmap";
inline constexpr char kProcessMap[] = "pmix.pmap";
inline constexpr char kProcessData[] = "pmix.pdata";
inline constexpr char kJobName[] = "pmix.jobid";
inline constexpr char kUniverseSize[] = "pmix.univ.size";
inline constexpr char kMostProcesses[] = "pmix.max.size";
inline constexpr char kApplications[] = "pmix.job.napps";
inline constexpr char kNodes[] = "pmix.num.nodes";
inline constexpr char kLocalSize[] = "pmix.local.size";
inline constexpr char kNodeSize[] = "pmix.node.size";
inline constexpr char kLocalPeers[] = "pmix.lpeers";
inline constexpr char kLocalLeader[] = "pmix.lldr";
inline constexpr char kSessionDirectory[] = "pmix.tmpdir";
inline constexpr char kSpaceDirectory[] = "pmix.nsdir";
inline constexpr char kProcessDirectory[] = "pmix.pdir";
inline constexpr char kDirectoriesAreRemoved[] = "pmix.tdir.rmclean";
inline constexpr char kProcessRank[] = "pmix.rank";
inline constexpr char kGlobalRank[] = "pmix.grank";
inline constexpr char kApplicationRank[] = "pmix.apprank";
inline constexpr char kApplication[] = "pmix.appnum";
inline constexpr char kApplicationLeader[] = "pmix.aldr";
inline constexpr char kLocalRank[] = "pmix.lrank";
inline constexpr char kNodeRank[] = "pmix.nrank";

struct DataArray {
  std::uint16_t type;
  std::size_t size;
  void* array;
};

using Release = void (*)(void* context);
using GiveData = void (*)(int status, const char* bytes, std::size_t size, void* context,
                          Release release, void* release_context);

// Callbacks, which the library calls from its own thread. `others` stay null: those functions are
// not implemented. It is long enough for later versions.
struct ServerModule {
  int (*client_connected)(const Process*, void* object, Done, void* context);
  int (*client_finalized)(const Process*, void* object, Done, void* context);
  int (*abort)(const Process*, void* object, int status, const char* message, Process*,
               std::size_t count, Done, void* context);
  int (*fence)(const Process*, std::size_t count, const Info*, std::size_t infos, char* bytes,
               std::size_t size, GiveData, void* context);
  int (*direct_modex)(const Process*, const Info*, std::size_t infos, GiveData, void* context);
  void* others[59];
};

}  // namespace hv::pmix
