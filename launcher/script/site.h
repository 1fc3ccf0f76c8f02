// Site: a computing centre as its site file describes it: scheduler, kinds of nodes, limits.
// SPDX-License-Identifier: Apache-2.0
//
// hvrun-site(5) describes the file, hostfiles/sites/site.schema.json its form; a test compares the
// schema with what is read here. Figures that a file leaves out are unknown, and limit nothing.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hv::launcher {

enum class BatchScheduler { kSlurm, kPbs, kLsf };

// "slurm", "pbs", "lsf".
std::string name_of(BatchScheduler scheduler);

// A quality of service and what one job may take of it. 0: no limit is known.
struct Qos {
  std::string name;
  std::optional<std::chrono::seconds> max_time;
  int max_nodes = 0;
  int max_gpus = 0;
  int max_cores = 0;
};

// A kind of node, and how the scheduler is asked for it.
struct Partition {
  std::string name;
  std::string description;
  std::string queue;       // the scheduler's partition or queue; empty: its default
  std::string constraint;  // Slurm's --constraint, PBS's resource in the chunk, LSF's -R
  std::string account_suffix;
  std::vector<std::string> options;  // directives as they are
  std::vector<std::string> modules;
  std::vector<std::string> qos;  // those it takes, the default first; empty: any
  int cores = 0;                 // physical ones of a node; 0: unknown
  int threads_per_core = 1;
  std::optional<int> gpus;  // of a node
  std::string gpu_model;
  int memory_gb = 0;  // 0: unknown
  int max_nodes = 0;  // of a job; 0: no limit is known
  std::optional<std::chrono::seconds> max_time;
  bool is_exclusive = false;  // a job has whole nodes
};

struct Site {
  std::string name;
  BatchScheduler scheduler = BatchScheduler::kSlurm;
  std::string description;
  std::string documentation;
  std::string hint;         // Slurm's --hint
  std::string gpu_request;  // with {gpus} for those of a node
  bool needs_account = false;
  bool takes_any_partition = false;
  std::optional<std::chrono::seconds> default_time;
  std::vector<std::string> options;
  std::vector<std::string> modules;
  std::vector<Partition> partitions;  // never empty; the default first
  std::vector<Qos> qos;

  const Qos* find_qos(std::string_view name) const;
  // By its name, else the first whose queue it is.
  const Partition* find_partition(std::string_view name) const;
};

constexpr std::size_t kMostSiteBytes = 256 * 1024;
constexpr int kMostNodes = 65536;
constexpr int kMostCoresPerNode = 65536;

// source: the file's name, for messages. Throws Error(kUsage): file, place in it, what was
// expected.
Site parse_site(std::string_view text, const std::string& source);

}  // namespace hv::launcher
