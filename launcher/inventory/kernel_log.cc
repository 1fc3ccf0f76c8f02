// SPDX-License-Identifier: Apache-2.0
#include "launcher/inventory/kernel_log.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "launcher/facts/read_file.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostXids = 8, kMostText = 200;
constexpr std::int64_t kMicroseconds = 1000000;
constexpr char kLoaded[] = "NVRM: loading NVIDIA";  // "... UNIX x86_64 Kernel Module  580.82.07"
constexpr char kXid[] = "NVRM: Xid (";

struct Entry {
  std::string address;
  wire::Xid xid;
};

// "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=a, GPU has fallen off the bus."; old drivers leave
// "PCI:" out.
std::optional<Entry> parse_xid(std::string_view message) {
  const std::size_t begin = message.find(kXid);
  if (begin == std::string_view::npos) return std::nullopt;
  message.remove_prefix(begin + sizeof kXid - 1);
  const std::size_t end = message.find("): ");
  if (end == std::string_view::npos) return std::nullopt;
  std::string address = lower(message.substr(0, end));
  if (address.rfind("pci:", 0) == 0) address.erase(0, 4);
  message.remove_prefix(end + 3);
  const std::size_t comma = std::min(message.find(','), message.size());
  const auto number = parse_integer(message.substr(0, comma));
  if (!number || *number <= 0 || *number > 100000) return std::nullopt;
  message.remove_prefix(comma);
  while (!message.empty() && (message.front() == ',' || message.front() == ' '))
    message.remove_prefix(1);
  return Entry{address + ".0",
               {static_cast<std::uint32_t>(*number), 0, printable(message, kMostText)}};
}

// One line of a record "priority,sequence,microseconds,flags;message"; others have no stamp.
void take_line(std::string_view line, std::int64_t uptime_us, XidReading* reading) {
  const std::size_t semicolon = line.find(';');
  if (semicolon == std::string_view::npos) return;
  const std::string_view message = line.substr(semicolon + 1);
  if (message.find(kLoaded) != std::string_view::npos) {
    reading->by_address.clear();
    return;
  }
  auto entry = parse_xid(message);
  const std::vector<std::string> head = split(std::string(line.substr(0, semicolon)), ',');
  if (!entry || head.size() < 3) return;
  const std::int64_t stamp = parse_integer(head[2]).value_or(uptime_us);
  entry->xid.seconds_ago =
      static_cast<std::uint64_t>(std::max<std::int64_t>(uptime_us - stamp, 0) / kMicroseconds);
  std::vector<wire::Xid>& xids = reading->by_address[entry->address];
  if (xids.size() == kMostXids) xids.erase(xids.begin());
  xids.push_back(std::move(entry->xid));
}

}  // namespace

XidReading read_xids(std::int64_t uptime_us, const std::string& root) {
  XidReading reading;
  const std::string path = root + "/dev/kmsg";
  const UniqueFd log(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const int error = !log ? errno : read_kernel_messages(log.get(), [&](std::string_view line) {
    take_line(line, uptime_us, &reading);
  });
  if (error != 0) reading.problem = path + ": " + errno_text(error);
  return reading;
}

}  // namespace hv::launcher
