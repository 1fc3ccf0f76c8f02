// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/nccl/handles.h"

#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>

#include "tests/fakes/cuda/faults.h"
#include "tests/fakes/nccl/fake_nccl.h"
#include "tests/fakes/nccl/outside.h"

namespace hv::nccl {

struct CommState {
  std::shared_ptr<fake::Communicator> communicator;
};
struct WindowState {
  Comm comm = nullptr;
  const std::byte* begin = nullptr;  // nullptr: a buffer's registration
  std::size_t bytes = 0;
};

}  // namespace hv::nccl

namespace hv::fake {
namespace {

struct World {
  std::mutex mutex;  // guards all below
  std::set<nccl::Comm> comms;
  std::set<nccl::Window> registrations;
  std::set<void*> memory;
};

World& world() {
  static World* const one = new World;
  return *one;
}

[[noreturn]] void hang() {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  for (;;) never.wait(lock);
}

}  // namespace

// Never destroyed: streams outlive main().
Faults& Faults::of_process() {
  static Faults* const faults = new Faults("NCCL");
  return *faults;
}

int enter(const char* function, bool* hangs) {
  const Faults::Fault fault = Faults::of_process().take(function);
  if (fault.way == Faults::Way::kResult) return fault.result;
  if (hangs != nullptr)
    *hangs = fault.way == Faults::Way::kHang;
  else if (fault.way == Faults::Way::kHang)
    hang();
  return nccl::kSuccess;
}

nccl::Comm make_handle(std::shared_ptr<Communicator> communicator) {
  const std::lock_guard lock(world().mutex);
  return *world().comms.insert(new nccl::CommState{std::move(communicator)}).first;
}

std::shared_ptr<Communicator> find(nccl::Comm comm) {
  const std::lock_guard lock(world().mutex);
  if (world().comms.count(comm) == 0) refuse("a call with a communicator that is none");
  return comm->communicator;
}

std::shared_ptr<Communicator> take(nccl::Comm comm, bool forgets_registrations) {
  std::shared_ptr<Communicator> taken = find(comm);
  const std::lock_guard lock(world().mutex);
  world().comms.erase(comm);
  if (forgets_registrations)
    std::erase_if(world().registrations, [comm](nccl::Window one) {
      const bool is_its = one->comm == comm;
      if (is_its) delete one;
      return is_its;
    });
  delete comm;
  return taken;
}

nccl::Window make_registration(nccl::Comm comm, const void* window, std::size_t bytes) {
  const std::lock_guard lock(world().mutex);
  const auto* const begin = static_cast<const std::byte*>(window);
  return *world().registrations.insert(new nccl::WindowState{comm, begin, bytes}).first;
}

std::uint64_t window_place(nccl::Comm comm, const void* from, const void* to) {
  const std::lock_guard lock(world().mutex);
  const auto lies_in = [](nccl::Window one, const void* buffer) {
    const auto* const at = static_cast<const std::byte*>(buffer);
    return one->begin != nullptr && at >= one->begin && at < one->begin + one->bytes;
  };
  for (nccl::Window const one : world().registrations)
    if (one->comm == comm && lies_in(one, from) && lies_in(one, to))
      return 1 + static_cast<std::uint64_t>(static_cast<const std::byte*>(from) - one->begin);
  return 0;
}

int drop_registration(nccl::Window registration) {
  const std::lock_guard lock(world().mutex);
  if (world().registrations.erase(registration) == 0) return nccl::kInvalidArgument;
  delete registration;
  return nccl::kSuccess;
}

void add_memory(void* address) {
  const std::lock_guard lock(world().mutex);
  world().memory.insert(address);
}

int drop_memory(void* address) {
  const std::lock_guard lock(world().mutex);
  return world().memory.erase(address) == 0 ? nccl::kInvalidArgument : nccl::kSuccess;
}

}  // namespace hv::fake

void fake_nccl_faults(const char* list) { hv::fake::Faults::of_process().begin_anew(list); }

int fake_nccl_calls(const char* function) { return hv::fake::Faults::of_process().calls(function); }

int fake_nccl_guests() { return hv::fake::count_guests(); }

int fake_nccl_left() {
  const hv::fake::World& all = hv::fake::world();
  const std::lock_guard lock(hv::fake::world().mutex);
  return static_cast<int>(all.comms.size() + all.registrations.size() + all.memory.size());
}
