// Fences of the job: collects what every host's ranks put, and says when all have come. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "launcher/supervise/hosts/host_link.h"
#include "src/wire/messages.h"

namespace hv::launcher {

class FenceTable {
 public:
  explicit FenceTable(std::size_t hosts) : hosts_(hosts) {}

  // False: no agent that keeps to the protocol sends this: its ranks have come to this fence
  // already, or wait at too many, with too many bytes.
  bool may_arrive(HostId host, const wire::FenceIn& in) const {
    std::size_t fences = 1, bytes = bytes_of(in.puts);
    for (const auto& [key, entry] : open_) {
      const auto its = entry.bytes_of_hosts.find(host);
      if (its == entry.bytes_of_hosts.end()) continue;
      if (key == std::pair(in.epoch, in.number)) return false;
      ++fences;
      bytes += its->second;
    }
    return fences <= kMostOfHost && bytes <= 2 * wire::kMaxAgentPayload;
  }
  // All ranks of a host have come to a fence. Returns the message for every host, once the last
  // host has come, unless it is too large.
  std::optional<wire::FenceOut> arrive(HostId host, wire::FenceIn in) {
    const auto key = std::pair(in.epoch, in.number);
    Entry& entry = open_[key];
    const std::size_t bytes = bytes_of(in.puts);
    if (!entry.bytes_of_hosts.emplace(host, bytes).second) return std::nullopt;
    entry.bytes += bytes;
    if (entry.bytes > wire::kMaxAgentPayload) {
      if (excess_ == 0) excess_ = entry.bytes;
      entry.puts.clear();
      return std::nullopt;
    }
    entry.puts.insert(entry.puts.end(), std::make_move_iterator(in.puts.begin()),
                      std::make_move_iterator(in.puts.end()));
    if (entry.bytes_of_hosts.size() < hosts_) return std::nullopt;
    wire::FenceOut out{key.first, key.second, std::move(entry.puts)};
    open_.erase(key);
    ++passed_;
    return out;
  }
  // Bytes that the first fence had which no agent could take; 0: there was none.
  std::size_t excess_bytes() const { return excess_; }

  // Fences that the ranks of all hosts have come to.
  std::size_t passed() const { return passed_; }
  // Ranks of some hosts wait for ranks of others.
  bool is_any_open() const { return !open_.empty(); }
  bool is_open(std::uint32_t epoch) const {
    const auto first = open_.lower_bound({epoch, 0});
    return first != open_.end() && first->first.first == epoch;
  }

 private:
  static constexpr std::size_t kMostOfHost = 64;

  struct Entry {
    std::map<HostId, std::size_t> bytes_of_hosts;
    std::size_t bytes = wire::FenceOut{}.payload_bytes();
    std::vector<wire::FencePut> puts;
  };
  static std::size_t bytes_of(const std::vector<wire::FencePut>& puts) {
    std::size_t bytes = 0;
    for (const wire::FencePut& put : puts) bytes += put.payload_bytes();
    return bytes;
  }

  std::size_t hosts_;
  std::size_t passed_ = 0;
  std::size_t excess_ = 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Entry> open_;
};

}  // namespace hv::launcher
