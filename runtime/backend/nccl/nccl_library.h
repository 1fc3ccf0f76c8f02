// NCCL, opened at run time: where it was found, its functions, and words for what it answers.
// SPDX-License-Identifier: Apache-2.0
//
// Any thread may call. Two copies in one process have two sets of connections and threads, and
// registrations of one mean nothing to the other: the one that is there already comes first.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/backend/nccl/nccl_abi.h"
#include "src/base/status.h"

namespace hv::nccl {

constexpr int kOldestVersion = 21800;        // ncclConfig_t as nccl_abi.h has it
constexpr int kOwnGroupsFrom = 22700;        // groups that go on need no thread's own memory
constexpr int kWindowsFrom = 22700;          // ncclCommWindowRegister
constexpr int kFusesBroadcastsFrom = 22900;  // one operation of a group's, of several roots
constexpr int kSharesGpusFrom = 23000;       // NCCL_MULTI_RANK_GPU_ENABLE
constexpr int kFloat8From = 22400;           // reductions of 8-bit floats

struct LibraryFunctions {
#define HV_ONE(here, exported, parameters) int(*here) parameters = nullptr;
  HV_NCCL_FUNCTIONS(HV_ONE)
  HV_NCCL_NEWER_FUNCTIONS(HV_ONE)
#undef HV_ONE
  const char* (*error_words)(int result) = nullptr;
  const char* (*last_error)(Comm comm) = nullptr;  // nullptr: it has none
};

// A place to look in, and how it is called in words.
struct Place {
  std::string path;  // a file, or a name that the system's loader looks for; "": there is none
  bool is_loaded = false;  // only if the process has it already
  std::string words;
};

// In order: the process's own copy, HVRUN_NCCL, the system's, those of Python packages (nvidia/nccl
// in a folder of `packages`). wanted: HVRUN_NCCL, which is the only one after the process's own.
std::vector<Place> places(const std::string& wanted, const std::vector<std::string>& packages);
// Folders of Python packages that this library, at `own_path`, may be used by: those above it,
// those of these environments of Python ("": none), and the system's.
std::vector<std::string> package_folders(const std::string& own_path,
                                         const std::vector<std::string>& environments);

class Library {
 public:
  // The first place where there is one decides. kUnsupported: there is none, with what was looked
  // for where; or it is too old, or lacks a function.
  static Status open(const std::vector<Place>& places, std::shared_ptr<const Library>* made);

  const LibraryFunctions& call() const { return functions_; }
  int version() const { return version_; }  // 22803 for 2.28.3
  const std::string& path() const { return path_; }

  // doing: "make a communicator"; success for kSuccess and kInProgress, else kSystem with NCCL's
  // words. comm: whose last error is told, too; may be nullptr.
  Status check(int result, const std::string& doing, Comm comm = nullptr) const;

 private:
  Library() = default;
  Status begin(void* opened, const Place& place);

  LibraryFunctions functions_;
  int version_ = 0;
  std::string path_;
};

// "2.28.3"
std::string version_text(int version);

}  // namespace hv::nccl
