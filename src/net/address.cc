// SPDX-License-Identifier: Apache-2.0
#include "src/net/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace hv {

std::optional<SocketAddress> SocketAddress::parse(std::string_view ip, std::uint16_t port) {
  if (ip.find('\0') != std::string_view::npos) return std::nullopt;  // C would read up to it only
  SocketAddress result;
  std::string text(ip);
  auto* four = reinterpret_cast<sockaddr_in*>(&result.storage_);
  if (::inet_pton(AF_INET, text.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    result.size_ = sizeof *four;
    return result;
  }
  auto* six = reinterpret_cast<sockaddr_in6*>(&result.storage_);
  const std::size_t percent = text.find('%');
  if (percent != std::string::npos) {
    six->sin6_scope_id = ::if_nametoindex(text.c_str() + percent + 1);
    if (six->sin6_scope_id == 0) return std::nullopt;
    text.resize(percent);
  }
  if (::inet_pton(AF_INET6, text.c_str(), &six->sin6_addr) != 1) return std::nullopt;
  six->sin6_family = AF_INET6;
  six->sin6_port = htons(port);
  result.size_ = sizeof *six;
  return result;
}

SocketAddress SocketAddress::any(int family, std::uint16_t port) {
  return *parse(family == AF_INET6 ? "::" : "0.0.0.0", port);
}

SocketAddress SocketAddress::from_raw(const sockaddr* raw, socklen_t size) {
  SocketAddress result;
  result.size_ = std::min<socklen_t>(size, sizeof result.storage_);
  std::memcpy(&result.storage_, raw, result.size_);
  return result;
}

std::uint16_t SocketAddress::port() const {
  // sin_port and sin6_port lie at the same place.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
}

std::string SocketAddress::ip() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (family() == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr, text,
                sizeof text);
  } else if (family() == AF_INET6) {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr, text,
                sizeof text);
  }
  return text;
}

std::string SocketAddress::text() const {
  const std::string port_text = ":" + std::to_string(port());
  if (family() != AF_INET6) return ip() + port_text;
  char name[IF_NAMESIZE];
  const unsigned scope = reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_scope_id;
  if (scope == 0) return "[" + ip() + "]" + port_text;
  return "[" + ip() + "%" + (::if_indextoname(scope, name) ? name : std::to_string(scope)) + "]" +
         port_text;
}

bool SocketAddress::is_loopback() const {
  if (family() == AF_INET) {
    return (ntohl(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr.s_addr) >> 24) == 127;
  }
  return family() == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr);
}

bool SocketAddress::is_link_local() const {
  if (family() == AF_INET) {
    return (ntohl(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr.s_addr) >> 16) ==
           0xa9fe;
  }
  return family() == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr);
}

}  // namespace hv
