// IP addresses and socket addresses as values; numeric only, names are resolved elsewhere.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hv {

class SocketAddress {
 public:
  SocketAddress() = default;
  // "10.0.0.1", "fd00::1", "fe80::1%eth0"; nothing is resolved.
  static std::optional<SocketAddress> parse(std::string_view ip, std::uint16_t port);
  static SocketAddress any(int family, std::uint16_t port);
  static SocketAddress from_raw(const sockaddr* raw, socklen_t size);

  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const { return size_; }
  int family() const { return storage_.ss_family; }
  std::uint16_t port() const;
  std::string ip() const;    // "10.0.0.1"
  std::string text() const;  // "10.0.0.1:22", "[fd00::1]:22", "[fe80::1%eth0]:22"
  bool is_loopback() const;
  bool is_link_local() const;

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

}  // namespace hv
