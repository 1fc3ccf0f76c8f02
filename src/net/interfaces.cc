// SPDX-License-Identifier: Apache-2.0
#include "src/net/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <utility>

#include "src/base/text.h"
#include "src/net/address.h"

namespace hv {
namespace {

// Bridges and wires that containers and virtual machines of one host hang on.
constexpr std::array<std::string_view, 10> kInsideHostNames{
    "docker", "br-", "virbr", "veth", "lxcbr", "lxdbr", "podman", "cni", "vmnet", "vboxnet"};

// The address's bytes, 4 or 16; empty when the text is none.
std::string bytes_of(const std::string& ip) {
  char bytes[16];
  if (ip.find('\0') != std::string::npos) return {};
  if (::inet_pton(AF_INET, ip.c_str(), bytes) == 1) return {bytes, 4};
  if (::inet_pton(AF_INET6, ip.c_str(), bytes) == 1) return {bytes, 16};
  return {};
}

bool equal_bits(const std::string& left, const std::string& right, int bits) {
  for (std::size_t at = 0; bits > 0; ++at, bits -= 8) {
    const int keep = bits >= 8 ? 0xff : 0xff << (8 - bits);
    if ((left[at] & keep) != (right[at] & keep)) return false;
  }
  return true;
}

bool is_inside_host(const std::string& interface) {
  return std::any_of(
      kInsideHostNames.begin(), kInsideHostNames.end(),
      [&](std::string_view beginning) { return interface.rfind(beginning, 0) == 0; });
}

// Ascending: a likely way to another host first.
int link_local_order(const InterfaceAddress& address, const InterfaceFilter& filter) {
  if (!address.has_carrier) return 2;
  return is_inside_host(address.interface) && !filter.names(address) ? 1 : 0;
}

}  // namespace

AddressKind kind_of_address(const std::string& interface, const std::string& ip) {
  const auto address = SocketAddress::parse(ip, 0);
  if (address && address->is_loopback()) return AddressKind::kLoopback;
  if (address && address->is_link_local()) return AddressKind::kLinkLocal;
  return is_inside_host(interface) ? AddressKind::kInsideHost : AddressKind::kNetwork;
}

std::vector<InterfaceAddress> interfaces_up() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  std::vector<InterfaceAddress> four, six;
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || !(entry->ifa_flags & IFF_UP)) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const std::string ip =
        SocketAddress::from_raw(entry->ifa_addr,
                                family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6))
            .ip();
    (family == AF_INET ? four : six)
        .push_back({entry->ifa_name, ip, kind_of_address(entry->ifa_name, ip),
                    (entry->ifa_flags & IFF_RUNNING) != 0});
  }
  ::freeifaddrs(list);
  four.insert(four.end(), six.begin(), six.end());
  return four;
}

bool is_own_address(const std::string& ip) {
  if (kind_of_address("", ip) == AddressKind::kLoopback) return true;
  const std::vector<InterfaceAddress> own = interfaces_up();
  return std::any_of(own.begin(), own.end(),
                     [&](const InterfaceAddress& address) { return address.ip == ip; });
}

std::string own_hostname() {
  char name[HOST_NAME_MAX + 1] = "";
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

bool is_own_name(const std::string& name) {
  const std::string form = lower(name);
  return form == "localhost" || form == lower(own_hostname()) || is_own_address(name);
}

std::optional<InterfaceFilter::Item> InterfaceFilter::parse_item(std::string_view text,
                                                                 bool is_excluded) {
  Item item;
  item.is_excluded = is_excluded;
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    item.is_beginning = !text.empty() && text.back() == '*';
    item.name = text.substr(0, text.size() - (item.is_beginning ? 1 : 0));
    const bool is_name = item.name.find_first_of("*!^ \t") == std::string::npos;
    return is_name && !item.name.empty() ? std::optional(item) : std::nullopt;
  }
  item.network = bytes_of(std::string(text.substr(0, slash)));
  const auto bits = parse_integer(text.substr(slash + 1));
  if (item.network.empty() || !bits || *bits < 0 ||
      *bits > static_cast<std::int64_t>(item.network.size()) * 8)
    return std::nullopt;
  item.bits = static_cast<int>(*bits);
  return item;
}

std::optional<InterfaceFilter> InterfaceFilter::parse(std::string_view text) {
  InterfaceFilter filter;
  filter.text_ = text;
  if (text.empty()) return filter;
  const bool excludes_all = text.front() == '^';
  if (excludes_all) text.remove_prefix(1);
  for (const std::string& piece : split(text, ',')) {
    std::string_view item = trim(piece);
    const bool is_excluded = !item.empty() && (item.front() == '!' || item.front() == '^');
    if (is_excluded) item.remove_prefix(1);
    const auto parsed = parse_item(item, is_excluded || excludes_all);
    if (!parsed) return std::nullopt;
    filter.items_.push_back(*parsed);
  }
  return filter;
}

bool InterfaceFilter::matches(const Item& item, const InterfaceAddress& address) {
  if (item.network.empty())
    return item.is_beginning ? address.interface.rfind(item.name, 0) == 0
                             : address.interface == item.name;
  const std::string bytes = bytes_of(address.ip);
  return bytes.size() == item.network.size() && equal_bits(bytes, item.network, item.bits);
}

bool InterfaceFilter::names(const InterfaceAddress& address) const {
  return std::any_of(items_.begin(), items_.end(),
                     [&](const Item& item) { return !item.is_excluded && matches(item, address); });
}

bool InterfaceFilter::allows(const InterfaceAddress& address) const {
  const auto is_out = [&](const Item& item) { return item.is_excluded && matches(item, address); };
  if (std::any_of(items_.begin(), items_.end(), is_out)) return false;
  const bool only_excludes =
      std::all_of(items_.begin(), items_.end(), [](const Item& item) { return item.is_excluded; });
  return only_excludes || names(address);
}

std::vector<InterfaceAddress> choose_addresses(const std::vector<InterfaceAddress>& all,
                                               const InterfaceFilter& filter) {
  std::vector<InterfaceAddress> chosen;
  for (InterfaceAddress address : all) {
    if (!filter.allows(address)) continue;
    if (address.kind == AddressKind::kInsideHost && filter.names(address))
      address.kind = AddressKind::kNetwork;
    chosen.push_back(std::move(address));
  }
  const auto order = [&](const InterfaceAddress& address) {
    return std::pair(address.kind, address.kind == AddressKind::kLinkLocal
                                       ? link_local_order(address, filter)
                                       : 0);
  };
  std::stable_sort(chosen.begin(), chosen.end(),
                   [&](const auto& left, const auto& right) { return order(left) < order(right); });
  return chosen;
}

std::vector<InterfaceAddress> useful_addresses(bool loopback) {
  std::vector<InterfaceAddress> useful;
  for (InterfaceAddress& address : choose_addresses(interfaces_up(), {}))
    if (address.kind < AddressKind::kLinkLocal ||
        (loopback && address.kind == AddressKind::kLoopback))
      useful.push_back(std::move(address));
  return useful;
}

std::vector<std::string> interface_addresses(bool loopback) {
  std::vector<std::string> ips;
  for (InterfaceAddress& address : useful_addresses(loopback)) ips.push_back(std::move(address.ip));
  return ips;
}

std::string describe(const std::vector<InterfaceAddress>& addresses) {
  std::string text;
  for (const InterfaceAddress& address : addresses)
    text += (text.empty() ? "" : ", ") + address.interface + " " + address.ip;
  return text.empty() ? "none" : text;
}

}  // namespace hv
