// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/inproc/inproc_source.h"

#include <sys/mman.h>

#include <map>
#include <mutex>

#include "src/base/check.h"

namespace hv::runtime {

MappedMemory inproc_memory(const std::string& name, std::size_t bytes) {
  static std::mutex mutex;  // guards regions
  static std::map<std::string, std::weak_ptr<void>> regions;
  std::lock_guard lock(mutex);
  std::shared_ptr<void> region = regions[name].lock();
  if (!region) {
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    HV_CHECK(at != MAP_FAILED, "memory for ranks as threads");
    region = std::shared_ptr<void>(at, [bytes](void* mapped) { ::munmap(mapped, bytes); });
    regions[name] = region;
  }
  return {static_cast<std::byte*>(region.get()), bytes, region};
}

}  // namespace hv::runtime
