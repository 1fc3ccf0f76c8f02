// SPDX-License-Identifier: Apache-2.0
#include "src/rendezvous/exchange.h"

#include <dlfcn.h>

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "src/base/symbol.h"
#include "src/rendezvous/long_wait.h"
#include "src/rendezvous/pmix_abi.h"

namespace hv {
namespace {

constexpr const char* kLibraries[] = {"libpmix.so.2", "libpmix.so"};

std::string pmix_context(const std::string& what) {
  return "meet the other ranks by PMIx: " + what;
}

struct Library {
  int (*init)(pmix::Process*, pmix::Info*, std::size_t) = nullptr;
  int (*finalize)(const pmix::Info*, std::size_t) = nullptr;
  int (*put)(std::uint8_t scope, const char* key, pmix::Value*) = nullptr;
  int (*commit)() = nullptr;
  int (*fence)(const pmix::Process*, std::size_t, const pmix::Info*, std::size_t, pmix::Done,
               void*) = nullptr;
  int (*get)(const pmix::Process*, const char* key, const pmix::Info*, std::size_t,
             pmix::Value**) = nullptr;
  const char* (*words)(int status) = nullptr;

  Status failure(const std::string& what, int status) const {
    return {StatusCode::kContract, pmix_context(what + ": " + words(status))};
  }
};

// What the process holds; the launcher's own; the system's. An MPI that brings its own, of the same
// name, could no longer be loaded behind the system's.
void* open_library(const std::string& prefix) {
  std::vector<std::string> files;
  if (!prefix.empty())
    for (const char* folder : {"/lib/openmpi/", "/lib/", "/lib64/"})
      files.push_back(prefix + folder + kLibraries[0]);
  files.insert(files.end(), std::begin(kLibraries), std::end(kLibraries));
  for (const char* name : kLibraries)
    if (void* const handle = ::dlopen(name, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD)) return handle;
  for (const std::string& file : files)
    if (void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL)) return handle;
  return nullptr;
}

// Never closed: it leaves threads behind.
Status load(const std::string& prefix, Library* library) {
  void* const handle = open_library(prefix);
  if (handle == nullptr) {
    const char* const reason = ::dlerror();
    return {
        StatusCode::kContract,
        pmix_context(std::string("open libpmix: ") + (reason != nullptr ? reason : "not found") +
                     "; install it (Debian: libpmix2), or start the program with hvrun")};
  }
  if (find_function(handle, "PMIx_Init", &library->init) &&
      find_function(handle, "PMIx_Finalize", &library->finalize) &&
      find_function(handle, "PMIx_Put", &library->put) &&
      find_function(handle, "PMIx_Commit", &library->commit) &&
      find_function(handle, "PMIx_Fence_nb", &library->fence) &&
      find_function(handle, "PMIx_Get", &library->get) &&
      find_function(handle, "PMIx_Error_string", &library->words))
    return Status::success();
  return {StatusCode::kContract,
          pmix_context("libpmix lacks a function that versions 2 to 5 have")};
}

// A fence that is under way; PMIx's thread ends it, perhaps after nobody waits any more.
struct Fence {
  std::mutex mutex;
  std::condition_variable change;
  bool is_done = false;
  int status = 0;
  pmix::Info collect{};  // PMIx's until it is done

  Fence() {
    std::memcpy(collect.key, pmix::kCollect, sizeof pmix::kCollect);
    collect.value.type = pmix::kBool;
    collect.value.data.flag = true;
  }

  static void done(int status, void* context) {
    const std::unique_ptr<std::shared_ptr<Fence>> fence(
        static_cast<std::shared_ptr<Fence>*>(context));
    const std::lock_guard lock((*fence)->mutex);
    (*fence)->is_done = true;
    (*fence)->status = status;
    (*fence)->change.notify_all();
  }
};

class PmixExchange : public Exchange {
 public:
  PmixExchange(Library library, const pmix::Process& self) : library_(library), self_(self) {}
  ~PmixExchange() override { library_.finalize(nullptr, 0); }

  int rank() const override { return static_cast<int>(self_.rank); }
  int size() const override { return size_; }

  Status learn_size() {
    pmix::Process all = self_;
    all.rank = pmix::kAnyRank;
    pmix::Value* value = nullptr;
    const int status = library_.get(&all, pmix::kJobSize, nullptr, 0, &value);
    if (status != pmix::kSuccess) return library_.failure("ask for the number of ranks", status);
    const bool is_number = value->type == pmix::kUint32;
    size_ = is_number ? static_cast<int>(value->data.uint32) : 0;
    std::free(value);
    if (size_ > 0 && self_.rank < static_cast<std::uint32_t>(size_)) return Status::success();
    return {StatusCode::kContract, pmix_context("the launcher gives no number of ranks")};
  }

  // The launcher does not tell who is missing. Two ranks say so: one of them may be missing itself.
  Status gather(const std::string& mine, const WaitLimits& limits,
                std::vector<std::string>* all) override {
    const std::string key = "hvrun-" + std::to_string(gathers_++);
    if (Status status = put(key, mine); !status.ok()) return status;
    {
      const LongWait wait(rank() < 2 ? limits.stall : std::chrono::milliseconds::zero(), [&] {
        return waited_words(rank(), limits.stall,
                            "one or more of " + std::to_string(size_) + " ranks");
      });
      if (Status status = fence(limits.timeout); !status.ok()) return status;
    }
    all->assign(static_cast<std::size_t>(size_), {});
    for (int rank = 0; rank < size_; ++rank)
      if (Status status = get(rank, key, &(*all)[static_cast<std::size_t>(rank)]); !status.ok())
        return status;
    return Status::success();
  }

 private:
  Status put(const std::string& key, const std::string& bytes) {
    pmix::Value value{};
    value.type = pmix::kByteObject;
    value.data.object = {const_cast<char*>(bytes.data()), bytes.size()};
    int status = library_.put(pmix::kGlobal, key.c_str(), &value);
    if (status == pmix::kSuccess) status = library_.commit();
    return status == pmix::kSuccess ? Status::success()
                                    : library_.failure("say who this rank is", status);
  }

  Status fence(std::chrono::milliseconds timeout) {
    const auto fence = std::make_shared<Fence>();
    auto kept = std::make_unique<std::shared_ptr<Fence>>(fence);
    const int status = library_.fence(nullptr, 0, &fence->collect, 1, Fence::done, kept.get());
    if (status != pmix::kSuccess) return library_.failure("wait for the others", status);
    (void)kept.release();  // Fence::done has it
    std::unique_lock lock(fence->mutex);
    if (!fence->change.wait_for(lock, timeout, [&] { return fence->is_done; }))
      return {StatusCode::kSystem, pmix_context("not all have come in time")};
    return fence->status == pmix::kSuccess ? Status::success()
                                           : library_.failure("wait for the others", fence->status);
  }

  Status get(int rank, const std::string& key, std::string* bytes) {
    pmix::Process who = self_;
    who.rank = static_cast<std::uint32_t>(rank);
    pmix::Value* value = nullptr;
    const std::string what = "hear who rank " + std::to_string(rank) + " is";
    const int status = library_.get(&who, key.c_str(), nullptr, 0, &value);
    if (status != pmix::kSuccess && gathers_ == 1)
      return silent_rank("PMIx", this->rank(), rank, library_.words(status));
    if (status != pmix::kSuccess) return library_.failure(what, status);
    const bool is_ours = value->type == pmix::kByteObject;
    if (is_ours) {
      bytes->assign(value->data.object.bytes, value->data.object.size);
      std::free(value->data.object.bytes);
    }
    std::free(value);
    return is_ours ? Status::success()
                   : Status{StatusCode::kContract, pmix_context(what + ": it says something else")};
  }

  const Library library_;
  const pmix::Process self_;
  int size_ = 0;
  std::uint64_t gathers_ = 0;
};

}  // namespace

Status open_pmix(const std::string& prefix, std::unique_ptr<Exchange>* exchange) {
  Library functions;
  if (Status status = load(prefix, &functions); !status.ok()) return status;
  pmix::Process self{};
  const int status = functions.init(&self, nullptr, 0);
  if (status != pmix::kSuccess) return functions.failure("greet the launcher", status);
  auto made = std::make_unique<PmixExchange>(functions, self);
  if (Status known = made->learn_size(); !known.ok()) return known;
  *exchange = std::move(made);
  return Status::success();
}

}  // namespace hv
