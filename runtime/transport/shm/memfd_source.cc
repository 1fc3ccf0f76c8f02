// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/shm/memfd_source.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "src/base/text.h"

namespace hv::runtime {
namespace {
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
}

Status create_memfd(std::size_t bytes, UniqueFd* fd) {
  // Beyond it ftruncate would not fail but send SIGXFSZ, which ends the program.
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes)
    return {StatusCode::kMemory, "size shared memory to " + format_bytes(bytes) +
                                     ": the limit on the size of files is " +
                                     format_bytes(limit.rlim_cur) +
                                     ", and the ranks' shared memory counts as one; raise it "
                                     "(ulimit -f unlimited)"};
  UniqueFd made(::memfd_create("hvrun", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made) return system_status("make shared memory for the ranks of this host", errno);
  if (::ftruncate(made.get(), static_cast<off_t>(bytes)) != 0)
    return system_status("size shared memory to " + format_bytes(bytes), errno);
  if (::fcntl(made.get(), F_ADD_SEALS, kSeals) != 0)
    return system_status("seal shared memory", errno);
  *fd = std::move(made);
  return Status::success();
}

Status map_memfd(int fd, std::size_t bytes, MappedMemory* memory) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return system_status("inspect shared memory", errno);
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (info.st_size != static_cast<off_t>(bytes) || seals < 0 || (seals & kSeals) != kSeals)
    return {StatusCode::kSystem,
            "map shared memory: the leader of this host handed over something else (" +
                format_bytes(static_cast<std::uint64_t>(info.st_size)) + ", wanted " +
                format_bytes(bytes) + "); do all ranks run the same version of libhvrun?"};
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) {
    const int reason = errno;
    Status status = system_status("map " + format_bytes(bytes) + " of shared memory", reason);
    if (reason == ENOMEM)
      status.message += "; try a higher limit on the memory of a process (ulimit -v unlimited)";
    return status;
  }
  ::madvise(at, bytes, MADV_DONTFORK);
  memory->bytes = static_cast<std::byte*>(at);
  memory->size = bytes;
  memory->owner = std::shared_ptr<void>(at, [bytes](void* mapped) { ::munmap(mapped, bytes); });
  return Status::success();
}

}  // namespace hv::runtime
