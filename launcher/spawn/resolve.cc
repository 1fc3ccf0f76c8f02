// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/resolve.h"

#include <netdb.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <cerrno>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "launcher/allocation/host_identity.h"
#include "launcher/spawn/blocking_call.h"
#include "launcher/spawn/late_hosts.h"
#include "launcher/spawn/ssh/ssh_advice.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "src/net/interfaces.h"
#include "src/process/signals.h"

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kMostThreads = 32;

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

namespace {

// Shared by the threads of resolve_all and its caller, who may have gone on without them.
class Lookups {
 public:
  Lookups(std::vector<std::string> names, ResolveFunction look_up)
      : names_(std::move(names)), look_up_(std::move(look_up)), addresses_(names_.size()) {}

  // Resolves names until each has been taken by some thread.
  void work() {
    std::unique_lock lock(mutex_);
    while (next_ < names_.size()) {
      const std::size_t taken = next_++;
      lock.unlock();
      std::vector<std::string> ips;
      for (const SocketAddress& address : look_up_(names_[taken], 0, AF_UNSPEC).addresses)
        ips.push_back(address.ip());
      lock.lock();
      addresses_[taken] = std::move(ips);
      if (++done_ == names_.size()) all_done_.notify_one();
    }
  }

  std::vector<std::vector<std::string>> wait(Duration limit) {
    std::unique_lock lock(mutex_);
    all_done_.wait_for(lock, limit, [this] { return done_ == names_.size(); });
    next_ = names_.size();
    return addresses_;
  }

 private:
  const std::vector<std::string> names_;
  const ResolveFunction look_up_;
  std::mutex mutex_;  // guards the rest
  std::condition_variable all_done_;
  std::size_t next_ = 0, done_ = 0;
  std::vector<std::vector<std::string>> addresses_;
};

}  // namespace

std::vector<std::vector<std::string>> resolve_all(const std::vector<std::string>& names,
                                                  Duration limit, ResolveFunction look_up) {
  const auto lookups = std::make_shared<Lookups>(names, std::move(look_up));
  const SignalBlock block;  // signals are for the main thread
  try {
    for (std::size_t i = 0; i < std::min(names.size(), kMostThreads); ++i)
      std::thread([lookups] { lookups->work(); }).detach();
  } catch (const std::system_error& error) {
    throw Error(ErrorKind::kStart,
                std::string("find the addresses of hosts: start a thread: ") + error.what(),
                shortage_advice(EAGAIN));
  }
  return lookups->wait(limit);
}

std::vector<std::vector<std::string>> resolve_or_own(const std::vector<std::string>& names,
                                                     Duration limit,
                                                     const std::string& own_hostname,
                                                     ResolveFunction look_up) {
  std::vector<std::vector<std::string>> found = resolve_all(names, limit, std::move(look_up));
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::vector<std::string>& addresses = found[i];
    // A form of the hostname that the name service does not know means this machine.
    const bool is_own_form = addresses.empty() && is_same_host(names[i], own_hostname);
    if (is_own_form || is_own_name(names[i]) ||
        std::any_of(addresses.begin(), addresses.end(), is_own_address))
      addresses.emplace_back(kThisMachine);
  }
  return found;
}

}  // namespace hv::launcher
