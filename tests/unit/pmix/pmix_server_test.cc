// Tests of PMIx's interface as it is written down here, and of a server without a library.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/pmix/pmix_server.h"

#include <doctest/doctest.h>

#include <cstring>

#if __has_include(<pmix_server.h>)
#include <pmix_server.h>
#endif

using namespace hv;
using namespace hv::launcher;

#if __has_include(<pmix_server.h>)
TEST_CASE("declarations of PMIx's server interface equal those of its header") {
  CHECK(sizeof(pmix::Info) == sizeof(pmix_info_t));
  CHECK(offsetof(pmix::Info, value) == offsetof(pmix_info_t, value));
  CHECK(sizeof(pmix::Value) == sizeof(pmix_value_t));
  CHECK(offsetof(pmix::Value, data) == offsetof(pmix_value_t, data));
  CHECK(sizeof(pmix::Process) == sizeof(pmix_proc_t));
  CHECK(sizeof(pmix::DataArray) == sizeof(pmix_data_array_t));
  CHECK(offsetof(pmix::DataArray, size) == offsetof(pmix_data_array_t, size));
  CHECK(offsetof(pmix::DataArray, array) == offsetof(pmix_data_array_t, array));
  CHECK(sizeof(pmix::ServerModule) >= sizeof(pmix_server_module_t));
  CHECK(offsetof(pmix::ServerModule, abort) == offsetof(pmix_server_module_t, abort));
  CHECK(offsetof(pmix::ServerModule, fence) == offsetof(pmix_server_module_t, fence_nb));
  CHECK(offsetof(pmix::ServerModule, direct_modex) == offsetof(pmix_server_module_t, direct_modex));
  CHECK(pmix::kNotFound == PMIX_ERR_NOT_FOUND);
  CHECK(pmix::kNotSupported == PMIX_ERR_NOT_SUPPORTED);
  CHECK(pmix::kDoneAtOnce == PMIX_OPERATION_SUCCEEDED);
  CHECK(pmix::kMostSpace == PMIX_MAX_NSLEN);
  CHECK(pmix::kText == PMIX_STRING);
  CHECK(pmix::kUint16 == PMIX_UINT16);
  CHECK(pmix::kInfo == PMIX_INFO);
  CHECK(pmix::kDataArray == PMIX_DATA_ARRAY);
  CHECK(pmix::kRank == PMIX_PROC_RANK);
}

TEST_CASE("keys of PMIx's server interface equal those of its header") {
  const std::pair<const char*, const char*> keys[] = {
      {pmix::kServerDirectory, PMIX_SERVER_TMPDIR},
      {pmix::kSystemDirectory, PMIX_SYSTEM_TMPDIR},
      {pmix::kServerSpace, PMIX_SERVER_NSPACE},
      {pmix::kServerRank, PMIX_SERVER_RANK},
      {pmix::kHostName, PMIX_HOSTNAME},
      {pmix::kNodeNumber, PMIX_NODEID},
      {pmix::kNodeMap, PMIX_NODE_MAP},
      {pmix::kProcessMap, PMIX_PROC_MAP},
      {pmix::kProcessData, PMIX_PROC_DATA},
      {pmix::kJobName, PMIX_JOBID},
      {pmix::kUniverseSize, PMIX_UNIV_SIZE},
      {pmix::kMostProcesses, PMIX_MAX_PROCS},
      {pmix::kApplications, PMIX_JOB_NUM_APPS},
      {pmix::kNodes, PMIX_NUM_NODES},
      {pmix::kLocalSize, PMIX_LOCAL_SIZE},
      {pmix::kNodeSize, PMIX_NODE_SIZE},
      {pmix::kLocalPeers, PMIX_LOCAL_PEERS},
      {pmix::kLocalLeader, PMIX_LOCALLDR},
      {pmix::kSessionDirectory, PMIX_TMPDIR},
      {pmix::kSpaceDirectory, PMIX_NSDIR},
      {pmix::kProcessDirectory, PMIX_PROCDIR},
      {pmix::kDirectoriesAreRemoved, PMIX_TDIR_RMCLEAN},
      {pmix::kProcessRank, PMIX_RANK},
      {pmix::kGlobalRank, PMIX_GLOBAL_RANK},
      {pmix::kApplicationRank, PMIX_APP_RANK},
      {pmix::kApplication, PMIX_APPNUM},
      {pmix::kApplicationLeader, PMIX_APPLDR},
      {pmix::kLocalRank, PMIX_LOCAL_RANK},
      {pmix::kNodeRank, PMIX_NODE_RANK},
  };
  for (const auto& [ours, theirs] : keys) CHECK(std::strcmp(ours, theirs) == 0);
}
#endif

TEST_CASE("a missing libpmix is reported with what was searched and a hint") {
  PmixServer server(
      {}, [](const wire::PmixFence&) {}, [](const wire::PmixClient&) {});
  const wire::PmixReady ready = server.start("/none/libpmix.so.2");
  CHECK(ready.problem.rfind("open libpmix.so.2, by which MPI programs find each other: /none/",
                            0) == 0);
  CHECK(ready.hint.find("(Debian: libpmix2)") != std::string::npos);
  CHECK(ready.hint.find("--wire-mpi=pmi") != std::string::npos);
}

TEST_CASE("a library that is no PMIx is reported") {
  PmixServer server(
      {}, [](const wire::PmixFence&) {}, [](const wire::PmixClient&) {});
  CHECK(server.start("libm.so.6").problem.find("lacks a function") != std::string::npos);
}
