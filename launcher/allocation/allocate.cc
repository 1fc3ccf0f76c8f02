// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/allocate.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {
namespace {

std::string read_hostfile(const std::string& path) {
  const auto fail = [&](int error) {
    throw Error(ErrorKind::kUsage, "read hostfile " + printable(path) + ": " + errno_text(error),
                "name a file with a line per host, such as 'node1 slots=4'");
  };
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) fail(errno);
  std::string content;
  char buffer[65536];
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(errno);
    if (got == 0) return content;
    content.append(buffer, static_cast<std::size_t>(got));
    if (content.size() > kMostHostfileBytes) return content;  // the parser refuses it with words
  }
}

bool is_readable_file(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode) &&
         ::access(path.c_str(), R_OK) == 0;
}

}  // namespace

HostList allocate(const std::string& hosts, const std::string& host_file) {
  if (!hosts.empty() && !host_file.empty()) {
    throw Error(ErrorKind::kUsage, "both -H and --hostfile name hosts", "give one of them");
  }
  if (!host_file.empty()) return parse_hostfile(read_hostfile(host_file), host_file);
  if (hosts.empty()) return {{}, true};
  if (hosts.find_first_of(",:[]") == std::string::npos && is_readable_file(hosts)) {
    return parse_hostfile(read_hostfile(hosts), hosts);
  }
  return parse_host_expression(hosts);
}

}  // namespace hv::launcher
