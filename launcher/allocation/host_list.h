// Which hosts, with how many slots, and how to reach them: what every source of hosts gives.
// SPDX-License-Identifier: Apache-2.0
//
// HostList is a value; HostCollector makes one, a host that is named twice into one entry.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/allocation/kubectl_command.h"
#include "launcher/allocation/text_place.h"

namespace hv::launcher {

struct HostEntry {
  std::string name;  // without user, port and brackets
  std::string user;
  std::optional<int> slots;      // none: not stated; the host's GPUs decide, else 1
  std::optional<int> max_slots;  // none: no limit to what --oversubscribe may put there
  std::uint16_t port = 0;        // 0: not stated
  std::string identity;          // a private key's file; empty: not stated
  std::string address;           // where to connect to; empty: the name
  std::string interfaces;        // that its ranks are to use, as HVRUN_INTERFACES; empty: any
  std::vector<std::string>
      gpus{};  // that its ranks may use: indices in PCI order, or UUIDs; empty:
               // all but those of without_gpus
  std::vector<int> without_gpus{};  // indices
  bool gpus_are_slots = false;      // --include, --exclude: a host without GPUs has such slots, too
  std::string origin;               // "hosts:3" or "-H", for messages
  std::size_t column = 0;           // of its first mention there

  // What PBS writes for each slot: a name and nothing that says how many ranks it takes.
  bool is_bare() const { return !slots && !max_slots && gpus.empty(); }
};

// Cores of a socket, counted from 0 in it.
struct SocketCores {
  int socket = 0;
  std::vector<int> cores{};  // empty: all of them
};

// Where a rankfile puts a rank.
struct RankPlace {
  std::size_t entry = 0;               // in HostList::entries
  std::vector<int> cores{};            // as its system numbers them; empty: not stated
  std::vector<SocketCores> sockets{};  // instead of cores
  std::vector<std::string> gpus{};     // as HostEntry's; empty: not stated
  std::size_t line = 0;                // of the rankfile; for messages, as the next two
  std::size_t column = 0;              // of its host there
  std::string text{};                  // the line itself
};

// How the hosts are reached, where whoever named them says so.
struct HostReach {
  KubectlCommand kubectl{};    // they are pods, reached by it; no program: by SSH
  bool may_come_late = false;  // they may just be coming up: one that is not there yet is awaited
};

// GPUs that a scheduler has given a job; one of the two is 0, both where it does not say.
struct GpusOfJob {
  std::int64_t in_all = 0;
  std::int64_t of_each_host = 0;
};

struct HostList {
  std::vector<HostEntry> entries{};  // in order of first mention, each host once
  bool this_machine = false;         // nobody named a host
  // The user names this machine alone, without slots: ranks may share its cores.
  bool is_this_machine_by_name = false;
  std::vector<RankPlace> rank_places{};  // by rank; empty: no rankfile
  std::string rankfile{};                // its name, for messages
  HostReach reach{};                     // of all of them
  std::string scheduler{};               // that has named the hosts: "Slurm"; empty: none has
  GpusOfJob scheduler_gpus{};            // of Slurm
};

constexpr int kMostSlotsPerHost = 65536;
constexpr std::size_t kMostHosts = 65536;
constexpr std::size_t kMostMentions = 1 << 21;  // of hosts in one list, each line's slot one

// The addresses of each name, as "10.0.0.1"; none for a name that has none. Addresses are only
// compared with each other. Blocks.
using AddressLookup =
    std::function<std::vector<std::vector<std::string>>(const std::vector<std::string>& names)>;

// Finds the entries of a list, which must outlive it, by name, and by user where one is named.
class HostIndex {
 public:
  // look_up: is called once a name fits no entry otherwise; empty: addresses are not compared.
  explicit HostIndex(const HostList& list, AddressLookup look_up = {});
  // The entry of this name, else the only one with another form of it (host_identity.h), else the
  // only one with one of its addresses; null: there is none. Throws Error(kUsage) for the name in
  // that column if it may mean several.
  const HostEntry* find(const std::string& user, const std::string& name, const Place& place,
                        std::size_t column);
  // These will be asked for: those that fit no entry by name are looked up together.
  void expect(const std::vector<std::string>& names);

 private:
  using Entries = std::multimap<std::string, const HostEntry*>;
  bool has_form(const std::string& name) const;
  const std::vector<std::string>& addresses_of(const std::string& name);

  const HostList& list_;
  AddressLookup look_up_;
  Entries by_name_, by_form_;
  std::optional<Entries> by_address_;                         // once look_up_ was called
  std::vector<std::string> expected_;                         // to look up with the first name
  std::map<std::string, std::vector<std::string>> resolved_;  // addresses by name
};

class HostCollector {
 public:
  // A host named before gets the sum of the slots, where not stated one a mention. What else is
  // stated twice must be the same. Throws Error(kUsage).
  void add(HostEntry entry, const Place& place);
  // Where a bare name was repeated, each bare name has one slot a mention. begin: of the list, for
  // the Error(kUsage) where nobody was named.
  HostList take(const Place& begin);

 private:
  HostList list_;
  std::map<std::pair<std::string, std::string>, std::size_t>
      index_;  // by user and name in lower case
  std::size_t mentions_ = 0;
  bool has_bare_repeat_ = false;
};

}  // namespace hv::launcher
