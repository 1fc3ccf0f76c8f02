// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/resolve.h"

#include <fcntl.h>
#include <netdb.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"
#include "src/process/signals.h"

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

// Owned by the asker and the thread. The thread tells by closing its end of a pipe that it is through.
struct LookUp {
  std::mutex mutex;  // guards result and is_through
  Resolution result;
  bool is_through = false;
  UniqueFd thread_end;
};

// Throws std::system_error when there is no thread to be had.
void look_up_in_thread(std::shared_ptr<LookUp> look_up, ResolveQuery query,
                       ResolveFunction function) {
  const SignalBlock block;  // signals are for the main thread
  std::thread([look_up, query, function] {
    Resolution result = function(query.name, query.port, query.family);
    const std::lock_guard lock(look_up->mutex);
    look_up->result = std::move(result);
    look_up->is_through = true;
    look_up->thread_end.reset();
  }).detach();
}

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
  asio::posix::stream_descriptor answered(co_await asio::this_coro::executor);
  const auto phase =
      deadline.enter(doing(query), advice + "; a name server may be out of reach", [&answered] {
        boost::system::error_code ignored;
        answered.cancel(ignored);
      });

  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw Error(ErrorKind::kStart, doing(query) + ": make a pipe: " + errno_text(errno));
  answered.assign(ends[0]);
  const auto look_up = std::make_shared<LookUp>();
  look_up->thread_end.reset(ends[1]);
  try {
    look_up_in_thread(look_up, query, std::move(function));
  } catch (const std::system_error& error) {
    throw Error(ErrorKind::kStart, doing(query) + ": start a thread: " + error.what());
  }
  const auto is_through = [&look_up] {
    const std::lock_guard lock(look_up->mutex);
    return look_up->is_through;
  };
  while (!is_through()) {
    // May end early: with an event that was meant for the descriptor that had this number before.
    boost::system::error_code ignored;
    co_await answered.async_wait(asio::posix::descriptor_base::wait_read,
                                 asio::redirect_error(asio::use_awaitable, ignored));
    deadline.throw_if_passed();
  }
  if (look_up->result.addresses.empty()) {
    const std::string reason =
        look_up->result.reason.empty() ? "it has none" : look_up->result.reason;
    throw Error(ErrorKind::kStart, doing(query) + ": " + reason, advice);
  }
  co_return look_up->result.addresses;
}

}  // namespace hv::launcher
