// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/socket_cores.h"

#include <algorithm>
#include <map>

#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

[[noreturn]] void refuse(int rank, const std::string& host, const std::string& what,
                         const std::string& there_are) {
  throw Error(ErrorKind::kUsage,
              "the rankfile gives rank " + std::to_string(rank) + " " + what + " of host " + host +
                  ", where ranks may use " + there_are,
              "sockets, and cores in each of them, are counted from 0");
}

}  // namespace

std::vector<int> threads_of_sockets(const std::vector<SocketCores>& wanted,
                                    const std::vector<CoreFacts>& cores, int rank,
                                    const std::string& host) {
  std::map<int, std::vector<const CoreFacts*>> by_package;
  for (const CoreFacts& core : cores) by_package[core.package].push_back(&core);
  std::vector<std::vector<const CoreFacts*>> sockets;
  for (auto& [package, own] : by_package) {
    std::sort(own.begin(), own.end(),
              [](const CoreFacts* a, const CoreFacts* b) { return a->threads < b->threads; });
    sockets.push_back(std::move(own));
  }
  std::vector<int> threads;
  for (const SocketCores& one : wanted) {
    const std::string name = "socket " + std::to_string(one.socket);
    if (static_cast<std::size_t>(one.socket) >= sockets.size())
      refuse(rank, host, name, count_of(sockets.size(), "socket"));
    const auto& own = sockets[static_cast<std::size_t>(one.socket)];
    const auto add = [&threads](const CoreFacts* core) {
      threads.insert(threads.end(), core->threads.begin(), core->threads.end());
    };
    if (one.cores.empty()) std::for_each(own.begin(), own.end(), add);
    for (const int core : one.cores) {
      if (static_cast<std::size_t>(core) >= own.size())
        refuse(rank, host, "core " + std::to_string(core) + " of " + name,
               count_of(own.size(), "core") + " of that socket");
      add(own[static_cast<std::size_t>(core)]);
    }
  }
  std::sort(threads.begin(), threads.end());
  return threads;
}

}  // namespace hv::launcher
