// Fences of the job: collects what every host's ranks put, and says when all have come. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "launcher/supervise/hosts/host_link.h"
#include "src/wire/messages.h"

namespace hv::launcher {

class FenceTable {
 public:
  explicit FenceTable(std::size_t hosts) : hosts_(hosts) {}

  // All ranks of a host have come to a fence. Returns the message for every host, once the last
  // host has come.
  std::optional<wire::FenceOut> arrive(HostId host, wire::FenceIn in) {
    const auto key = std::pair(in.epoch, in.number);
    Entry& entry = open_[key];
    if (!entry.hosts.insert(host).second) return std::nullopt;
    entry.puts.insert(entry.puts.end(), std::make_move_iterator(in.puts.begin()),
                      std::make_move_iterator(in.puts.end()));
    if (entry.hosts.size() < hosts_) return std::nullopt;
    wire::FenceOut out{key.first, key.second, std::move(entry.puts)};
    open_.erase(key);
    ++passed_;
    return out;
  }

  // Fences that the ranks of all hosts have come to.
  std::size_t passed() const { return passed_; }
  // Ranks of some hosts wait for ranks of others.
  bool is_any_open() const { return !open_.empty(); }
  bool is_open(std::uint32_t epoch) const {
    const auto first = open_.lower_bound({epoch, 0});
    return first != open_.end() && first->first.first == epoch;
  }

 private:
  struct Entry {
    std::set<HostId> hosts;
    std::vector<wire::FencePut> puts;
  };
  std::size_t hosts_;
  std::size_t passed_ = 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Entry> open_;
};

}  // namespace hv::launcher
