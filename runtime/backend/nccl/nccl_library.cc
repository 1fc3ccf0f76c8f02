// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/nccl_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "src/base/symbol.h"
#include "src/base/text.h"

namespace hv::nccl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "libnccl.so.2";
constexpr int kFoldersAbove = 5;  // site-packages/hvrun/lib/libhvrun-nccl.so, and some room

// The name of the first function that the library lacks; empty: it has all that it must have.
std::string find_functions(void* library, LibraryFunctions* functions) {
#define HV_ONE(here, exported, parameters) \
  if (!find_function(library, #exported, &functions->here)) return #exported;
  HV_NCCL_FUNCTIONS(HV_ONE)
#undef HV_ONE
#define HV_ONE(here, exported, parameters) find_function(library, #exported, &functions->here);
  HV_NCCL_NEWER_FUNCTIONS(HV_ONE)
#undef HV_ONE
  find_function(library, "ncclGetLastError", &functions->last_error);
  return find_function(library, "ncclGetErrorString", &functions->error_words)
             ? ""
             : "ncclGetErrorString";
}

Status unusable(const std::string& reason, const std::string& advice) {
  return {StatusCode::kUnsupported, "use NCCL: " + reason + "; try: " + advice};
}

// Where the library that holds this function lies.
std::string path_of(const void* function) {
  Dl_info info{};
  return ::dladdr(function, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

void add_matching(const fs::path& folder, const std::string& begin, const fs::path& below,
                  std::vector<std::string>* found) {
  std::error_code trouble;
  for (fs::directory_iterator at(folder, trouble), end; !trouble && at != end;
       at.increment(trouble)) {
    if (at->path().filename().string().starts_with(begin))
      found->push_back((at->path() / below).string());
  }
}

}  // namespace

std::string version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::vector<std::string> package_folders(const std::string& own_path,
                                         const std::vector<std::string>& environments) {
  std::vector<std::string> folders;
  fs::path above = fs::path(own_path).parent_path();
  for (int i = 0; i < kFoldersAbove && above.has_relative_path(); ++i, above = above.parent_path())
    folders.push_back(above.string());
  for (const std::string& one : environments)
    if (!one.empty()) add_matching(fs::path(one) / "lib", "python3", "site-packages", &folders);
  for (const char* const folder : {"/usr/local/lib", "/usr/lib"}) {
    for (const char* const kind : {"site-packages", "dist-packages"})
      add_matching(folder, "python3", kind, &folders);
  }
  return folders;
}

std::vector<Place> places(const std::string& wanted, const std::vector<std::string>& packages) {
  std::vector<Place> all{{kName, true, "this process (as PyTorch loads it)"}};
  if (!wanted.empty()) {
    all.push_back({wanted, false, "HVRUN_NCCL=" + printable(wanted)});
    return all;
  }
  all.push_back({kName, false, "the system's libraries"});
  std::vector<std::string> without;  // as pip would fill them
  for (const std::string& folder : packages) {
    const std::string path = folder + "/nvidia/nccl/lib/" + kName;
    std::error_code trouble;
    const bool is_told = std::count(without.begin(), without.end(), folder) > 0;
    if (fs::exists(path, trouble))
      all.push_back({path, false, path});
    else if (!is_told && folder.ends_with("-packages") && fs::is_directory(folder, trouble))
      without.push_back(folder);
  }
  if (!without.empty()) all.push_back({"", false, "no Python package in " + join(without, " or ")});
  return all;
}

Status Library::open(const std::vector<Place>& places, std::shared_ptr<const Library>* made) {
  std::vector<std::string> looked;
  for (const Place& place : places) {
    if (place.path.empty()) {
      looked.push_back(place.words);
      continue;
    }
    const int how = RTLD_NOW | RTLD_LOCAL | (place.is_loaded ? RTLD_NOLOAD : 0);
    void* const opened = ::dlopen(place.path.c_str(), how);  // never closed: it has threads
    if (opened != nullptr) {
      std::shared_ptr<Library> library(new Library);
      if (Status begun = library->begin(opened, place); !begun.ok()) return begun;
      *made = std::move(library);
      return Status::success();
    }
    const char* const reason = ::dlerror();
    looked.push_back(place.words + (place.is_loaded || reason == nullptr
                                        ? " has none"
                                        : std::string(" (") + reason + ")"));
  }
  return unusable(std::string("there is no ") + kName + ": " + join(looked, ", "),
                  "pip install nvidia-nccl-cu13 (or -cu12, as CUDA here), or HVRUN_NCCL=its path");
}

Status Library::begin(void* opened, const Place& place) {
  const std::string missing = find_functions(opened, &functions_);
  path_ = functions_.version != nullptr ? path_of(reinterpret_cast<const void*>(functions_.version))
                                        : place.path;
  const std::string advice = "NCCL " + version_text(kOldestVersion) + " or newer";
  if (functions_.version == nullptr || functions_.version(&version_) != kSuccess)
    return unusable(path_ + " does not tell its version", advice);
  if (version_ < kOldestVersion)
    return unusable(path_ + " is " + version_text(version_) + ", which is too old", advice);
  if (!missing.empty())
    return unusable(path_ + " is " + version_text(version_) + " and has no " + missing, advice);
  return Status::success();
}

Status Library::check(int result, const std::string& doing, Comm comm) const {
  if (result == kSuccess || result == kInProgress) return Status::success();
  std::string words = functions_.error_words(result);
  const char* const last = functions_.last_error ? functions_.last_error(comm) : nullptr;
  if (last != nullptr && *last != '\0') words += std::string(" (") + last + ")";
  return {StatusCode::kSystem, "NCCL " + version_text(version_) + ": " + doing + ": " + words};
}

}  // namespace hv::nccl
