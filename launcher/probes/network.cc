// SPDX-License-Identifier: Apache-2.0
#include "launcher/probes/host_probe.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "launcher/facts/read_file.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"
#include "src/net/interfaces.h"

namespace hv::launcher {
namespace {

// "ACTIVE" where the file of /sys holds "4: ACTIVE".
std::string state_in(const std::string& file) {
  const std::string text(trim(read_file(file).value_or("")));
  const std::size_t colon = text.find(':');
  return std::string(trim(text.substr(colon == std::string::npos ? 0 : colon + 1)));
}

std::vector<wire::RdmaPortFacts> read_ports(const std::string& root) {
  const std::string directory = root + "/sys/class/infiniband";
  std::vector<wire::RdmaPortFacts> ports;
  for (const std::string& adapter : names_in(directory))
    for (const std::string& port : names_in(directory + "/" + adapter + "/ports")) {
      const auto number = parse_integer(port);
      if (!number || *number < 0 || *number > UINT16_MAX) continue;
      const std::string files = directory + "/" + adapter + "/ports/" + port;
      ports.push_back({adapter, static_cast<std::uint32_t>(*number), state_in(files + "/state"),
                       state_in(files + "/phys_state")});
    }
  std::sort(ports.begin(), ports.end(), [](const auto& a, const auto& b) {
    return std::pair(a.adapter, a.port) < std::pair(b.adapter, b.port);
  });
  return ports;
}

ifreq request_for(const std::string& interface) {
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), IFNAMSIZ - 1);
  return request;
}

// Mbit/s; 0: unknown. Not from /sys, which may belong to another network namespace.
std::uint32_t speed_of(int socket, const std::string& interface) {
  ethtool_cmd command{};
  command.cmd = ETHTOOL_GSET;
  ifreq request = request_for(interface);
  request.ifr_data = reinterpret_cast<char*>(&command);
  if (::ioctl(socket, SIOCETHTOOL, &request) != 0) return 0;
  const std::uint32_t speed = ethtool_cmd_speed(&command);
  return speed == static_cast<std::uint32_t>(SPEED_UNKNOWN) ? 0 : speed;
}

wire::InterfaceFacts& interface_in(std::vector<wire::InterfaceFacts>* all,
                                   const std::string& name) {
  for (wire::InterfaceFacts& interface : *all)
    if (interface.name == name) return interface;
  all->emplace_back();
  all->back().name = name;
  return all->back();
}

std::vector<wire::InterfaceFacts> read_interfaces() {
  std::vector<wire::InterfaceFacts> interfaces;
  for (const InterfaceAddress& address : interfaces_up())
    if (address.kind != AddressKind::kLoopback)
      interface_in(&interfaces, address.interface).addresses.push_back(address.ip);
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  for (wire::InterfaceFacts& interface : interfaces) {
    interface.is_up = true;
    ifreq request = request_for(interface.name);
    if (socket && ::ioctl(socket.get(), SIOCGIFMTU, &request) == 0)
      interface.mtu = static_cast<std::uint32_t>(request.ifr_mtu);
    if (socket) interface.megabits = speed_of(socket.get(), interface.name);
  }
  return interfaces;
}

}  // namespace

wire::NetworkFacts read_network(const std::string& root) {
  return {read_interfaces(), read_ports(root)};
}

void inspect_network(const wire::CheckRequest&, const Environment&, wire::CheckReply* reply) {
  reply->network = read_network();
}

}  // namespace hv::launcher
