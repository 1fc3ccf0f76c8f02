// SPDX-License-Identifier: Apache-2.0
#include "src/contract/runtime_knobs.h"

#include "src/base/text.h"
#include "src/contract/backend_words.h"
#include "src/contract/contract.h"
#include "src/net/interfaces.h"
#include "src/net/port_range.h"

namespace hv {

namespace {

bool is_port_range(const std::string& text) { return parse_port_range(text).has_value(); }
// A shorter one would take a busy host for a lost one.
bool is_peer_timeout(const std::string& text) {
  constexpr double kLeast = 0.5, kMost = 1e9;  // as --lost-after
  const auto seconds = parse_seconds(text);
  return seconds && (*seconds == 0 || (*seconds >= kLeast && *seconds <= kMost));
}
bool is_interface_list(const std::string& text) { return InterfaceFilter::parse(text).has_value(); }

std::vector<Knob> carrier_knobs() {
  return {
      {"HVRUN_BACKEND", KnobType::kText, "",
       "Who carries out collectives, the first that can: nccl, mpi, native; unset: nccl,native.",
       "", "nccl|mpi|native", 0, INT64_MAX, "", 0, is_backend_list, "a list of nccl, mpi, native"},
      {"HVRUN_MPI", KnobType::kChoice, "",
       "The MPI to use; unset: the process's own, its launcher's, or the first that is here.", "",
       "openmpi|mpich"},
      {"HVRUN_MPI_THREADS_DISABLE", KnobType::kBool, "0",
       "One thread makes all calls of MPI, which is asked for no threads.",
       "HOROVOD_MPI_THREADS_DISABLE"},
      {"HVRUN_MPI_CUDA", KnobType::kChoice, "auto",
       "Whether MPI is given addresses of GPUs' memory; auto: where it says that it takes them.",
       "", "auto|never|always"},
      {"HVRUN_ALGORITHM", KnobType::kText, "",
       "Algorithms to take before those of the table, such as allreduce:shares,cross:ring@1M."},
      {"HVRUN_KERNELS", KnobType::kChoice, "",
       "The instructions that reductions use; unset: the best that the processor has.", "",
       "portable|avx2|avx512|neon"},
      {"HVRUN_NCCL", KnobType::kText, "",
       "The libnccl.so.2 for GPUs; unset: the process's own, the system's or a Python package's."},
      {"HVRUN_SHARE_GPU", KnobType::kBool, "0",
       "Several ranks may share a GPU, which NCCL 2.30 and newer can do."},
      {"HVRUN_NCCL_WINDOWS", KnobType::kBool, "0",
       "Buckets on GPUs lie in memory that NCCL 2.27 and newer reach on all of them; on all "
       "ranks."},
  };
}

std::vector<Knob> other_knobs() {
  return {
      {"HVRUN_LOG_LEVEL", KnobType::kChoice, "warn", "How much a rank says on stderr.",
       "HOROVOD_LOG_LEVEL", "error|warn|info|debug|trace", 0, INT64_MAX,
       "warning=warn|fatal=error"},
      {"HVRUN_FUSION_THRESHOLD", KnobType::kBytes, "64M",
       "Tensors are fused into buckets of at most so many bytes.", "HOROVOD_FUSION_THRESHOLD"},
      {"HVRUN_BUCKET_BYTES", KnobType::kBytes, "25M",
       "Tensors that come together step after step travel in buckets of at most so many bytes; 0: "
       "no "
       "buckets."},
      {"HVRUN_CACHE_CAPACITY", KnobType::kInteger, "4096",
       "Tensors known by number, so that ranks agree by a bit each.", "HOROVOD_CACHE_CAPACITY", "",
       0, 1 << 20},
      {"HVRUN_STALL_SECONDS", KnobType::kSeconds, "60",
       "A tensor that some ranks miss for so long is warned about; 0: never.",
       "HOROVOD_STALL_CHECK_TIME_SECONDS", "", 0, INT64_MAX, "", 0, nullptr, "",
       "HOROVOD_STALL_CHECK_DISABLE"},
      {"HVRUN_STALL_SHUTDOWN_SECONDS", KnobType::kSeconds, "1800",
       "A tensor that some ranks miss for so long ends the job; 0: never.",
       "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "", 0, INT64_MAX, "", 0, nullptr, "",
       "HOROVOD_STALL_CHECK_DISABLE"},
      {kStragglerSeconds, KnobType::kSeconds, "0",
       "So often rank 0 says for whom the others waited; 0: at the end, if it is worth a word."},
      {"HVRUN_TIMELINE", KnobType::kText, "",
       "File for rank 0's timeline; with %r in its name one for each rank.", "HOROVOD_TIMELINE", "",
       0, INT64_MAX, "", 0, nullptr, "", "", "DYNAMIC"},
      {"HVRUN_DETERMINISTIC", KnobType::kBool, "0",
       "The same bits in every run, whatever the fusion and the order of arrival."},
      {"HVRUN_PORT_RANGE", KnobType::kText, "",
       "TCP ports that ranks and hvrun listen on for other hosts; unset: any.", "", "", 0,
       INT64_MAX, "", 0, is_port_range, "a range of ports such as 20000-20099"},
      {"HVRUN_INTERFACES", KnobType::kText, "",
       "Interfaces and subnets that ranks of other hosts reach this one by; unset: all.", "", "", 0,
       INT64_MAX, "", 0, is_interface_list,
       "a list of interfaces and subnets such as eth0,ib*,10.1.0.0/16 or ^docker0,lo"},
      {"HVRUN_PYTHON_START", KnobType::kBool, "1",
       "Python programs offer hvrun their stacks and report waits in torch.distributed."},
      {"HVRUN_STREAMS", KnobType::kInteger, "1",
       "TCP connections between two ranks of different hosts.", "", "", 1, 16},
      {"HVRUN_PEER_TIMEOUT", KnobType::kSeconds, "15",
       "A rank that gives no sign of life for so long counts as lost; 0: never.", kJobLostAfter, "",
       0, INT64_MAX, "", 0, is_peer_timeout, "a time of at least 0.5 s such as 15 or 2m, or 0"},
  };
}

}  // namespace

const std::vector<Knob>& runtime_knobs() {
  static const std::vector<Knob> table = [] {
    std::vector<Knob> all = other_knobs();
    const std::vector<Knob> carriers = carrier_knobs();
    all.insert(all.end(), carriers.begin(), carriers.end());
    return all;
  }();
  return table;
}

}  // namespace hv
