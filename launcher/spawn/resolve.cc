// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/resolve.h"

#include <netdb.h>

#include <boost/asio/this_coro.hpp>
#include <cerrno>
#include <memory>

#include "launcher/spawn/blocking_call.h"
#include "launcher/spawn/late_hosts.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

std::string doing(const ResolveQuery& query) {
  return "find the address of host " + query.host +
         (query.name == query.host ? "" : " (" + query.name + ")");
}

}  // namespace

Resolution resolve_by_system(const std::string& name, std::uint16_t port, int family) {
  addrinfo wanted{};
  wanted.ai_family = family;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int code = ::getaddrinfo(name.c_str(), std::to_string(port).c_str(), &wanted, &list);
  if (code == EAI_SYSTEM) return {{}, errno_text(errno)};
  if (code != 0) return {{}, ::gai_strerror(code)};
  Resolution result;
  for (const addrinfo* entry = list; entry; entry = entry->ai_next) {
    result.addresses.push_back(SocketAddress::from_raw(entry->ai_addr, entry->ai_addrlen));
  }
  ::freeaddrinfo(list);
  return result;
}

asio::awaitable<std::vector<SocketAddress>> resolve(ResolveQuery query, StartDeadline& deadline,
                                                    ResolveFunction function) {
  if (const auto numeric = SocketAddress::parse(query.name, query.port))
    co_return std::vector<SocketAddress>{*numeric};
  const std::string advice =
      "check the spelling of " + query.host + ", or name it in /etc/hosts or ~/.ssh/config";
  const auto found = std::make_shared<Resolution>();
  const auto executor = co_await asio::this_coro::executor;
  BlockingCall call(executor, doing(query), [found, query, function = std::move(function)] {
    *found = function(query.name, query.port, query.family);
  });
  const auto phase = deadline.enter(doing(query), advice + "; a name server may be out of reach",
                                    [&call] { call.abandon(); });
  (void)co_await call.done();
  deadline.throw_if_passed();
  if (found->addresses.empty()) {
    const std::string reason = found->reason.empty() ? "it has none" : found->reason;
    throw NotThereYet(Error(ErrorKind::kStart, doing(query) + ": " + reason, advice));
  }
  co_return found->addresses;
}

}  // namespace hv::launcher
