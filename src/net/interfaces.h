// Which addresses of this host's interfaces other hosts may use, and which are tried first.
// SPDX-License-Identifier: Apache-2.0
//
// Only interfaces_up() asks the kernel; the rest are pure functions of what it said.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hv {

// How likely an address leads from one host to another; lower values are tried first.
enum class AddressKind : std::uint8_t {
  kNetwork = 0,  // of a network card, a bond, a VLAN, a tunnel
  kInsideHost,   // of docker0, virbr0 and their like: many hosts have the same, and it leaves none
  kLinkLocal,    // fe80::/10 or 169.254/16: good on one wire only
  kLoopback,     // good inside one network namespace only
};

struct InterfaceAddress {
  std::string interface;  // "eth0"
  std::string ip;         // without a scope
  AddressKind kind = AddressKind::kNetwork;
  bool has_carrier = true;  // something is at the other end of the wire
};

// Of the interfaces that are up; IPv4 first, else the kernel's order.
std::vector<InterfaceAddress> interfaces_up();

// Whether packets to this address stay on this machine: it belongs to an interface that is up, or
// to the loopback network.
bool is_own_address(const std::string& ip);

// As gethostname(2) says it.
std::string own_hostname();

// "localhost", the hostname, without case, or an own address. Resolves nothing.
bool is_own_name(const std::string& name);

// Of an address with that text on that interface.
AddressKind kind_of_address(const std::string& interface, const std::string& ip);

// HVRUN_INTERFACES: "eth0,ib*,10.1.0.0/16,!eth1". An item is an interface's name, with * at its end
// for all that begin so, or a subnet; ! in front of it excludes. ^ at the very front excludes
// every item of the list. With nothing but exclusions all else is allowed.
class InterfaceFilter {
 public:
  // nullopt when an item is empty or a subnet makes no sense.
  static std::optional<InterfaceFilter> parse(std::string_view text);

  bool allows(const InterfaceAddress& address) const;
  // An item that is no exclusion asks for it: then its kind tells nothing against it.
  bool names(const InterfaceAddress& address) const;
  bool is_empty() const { return items_.empty(); }
  const std::string& text() const { return text_; }  // as it was given

 private:
  struct Item {
    bool is_excluded = false;
    std::string name;  // of an interface, or its beginning; empty: a subnet
    bool is_beginning = false;
    std::string network;  // 4 or 16 bytes
    int bits = 0;         // of it that count
  };
  static bool matches(const Item& item, const InterfaceAddress& address);
  static std::optional<Item> parse_item(std::string_view text, bool is_excluded);

  std::vector<Item> items_;
  std::string text_;
};

// Those that the filter allows, in the order in which they are best tried. What it names itself
// counts as kNetwork, but a loopback or link-local address stays one. Every interface has a
// link-local address. Among these, addresses of containers' interfaces and of interfaces without
// carrier come last.
std::vector<InterfaceAddress> choose_addresses(const std::vector<InterfaceAddress>& all,
                                               const InterfaceFilter& filter);

// Addresses of this host's interfaces that are up, in that order, without link-local ones; loopback
// only if asked for.
std::vector<InterfaceAddress> useful_addresses(bool loopback = false);
std::vector<std::string> interface_addresses(bool loopback = false);

// "eth0 10.1.2.3, docker0 172.17.0.1": for messages.
std::string describe(const std::vector<InterfaceAddress>& addresses);

}  // namespace hv
