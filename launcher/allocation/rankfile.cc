// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/rankfile.h"

#include <algorithm>
#include <map>
#include <set>

#include "launcher/allocation/host_words.h"
#include "src/base/core_mask.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr const char* kRankForm = "a line like 'rank 0=node1 slot=0-3'";
constexpr std::size_t kMostNamedCores = 1 << 22;  // in a file
constexpr int kMostSockets = 1024;

// A line understood, its host not yet looked up.
struct RankLine {
  Place place;
  std::size_t rank_at = 0, host_at = 0;   // columns
  HostWord host{};                        // one name
  std::optional<std::size_t> relative{};  // "+n1"
  RankPlace rank{};
};

int core_at(const Place& place, std::size_t begin, std::size_t end) {
  const std::string_view text = place.text.substr(begin, end - begin);
  const auto core = parse_integer(text);
  if (!core || *core < 0 || *core >= static_cast<std::int64_t>(kMostCores))
    mistake(place, begin, "'" + printable(text) + "' is no core",
            "cores as the system numbers them, such as slot=0-3,7, or of a socket: slot=1:0-2");
  return static_cast<int>(*core);
}

// "0-3,7".
std::vector<int> cores_at(const Place& place, std::size_t begin, std::size_t end) {
  std::set<int> cores;
  for_each_piece(place.text, ',', begin, end, [&](std::size_t at, std::size_t to) {
    const std::size_t dash = std::min(place.text.substr(0, to).find('-', at), to);
    const int first = core_at(place, at, dash);
    const int last = dash < to ? core_at(place, dash + 1, to) : first;
    if (last < first) mistake(place, at, "this range ends before it begins", "slot=0-3");
    for (int core = first; core <= last; ++core)
      if (!cores.insert(core).second)
        mistake(place, at, "core " + std::to_string(core) + " is named twice", "each core once");
  });
  return {cores.begin(), cores.end()};
}

int socket_at(const Place& place, std::size_t begin, std::size_t end) {
  const std::string_view text = place.text.substr(begin, end - begin);
  const auto socket = parse_integer(text);
  if (!socket || *socket < 0 || *socket >= kMostSockets)
    mistake(place, begin, "'" + printable(text) + "' is no socket", "slot=1:0-2, or slot=0:*");
  return static_cast<int>(*socket);
}

// "1:0-2", "0:*", "0:0,1;1:0"; a socket's cores end where another socket is named.
std::vector<SocketCores> sockets_at(const Place& place, std::size_t begin, std::size_t end) {
  std::map<int, std::set<int>> cores;  // empty: all
  const std::string_view text = place.text.substr(0, end);
  for (std::size_t at = begin; at < end;) {
    const std::size_t colon = std::min(text.find(':', at), end);
    const int socket = socket_at(place, at, colon);
    const std::size_t semicolon = std::min(text.find(';', colon), end);
    const std::size_t next_colon = std::min(text.find(':', std::min(colon + 1, end)), end);
    std::size_t stop = semicolon;
    if (next_colon < semicolon) stop = std::min(text.rfind(',', next_colon), end);
    if (stop <= colon) mistake(place, colon, "the socket's cores are missing", "slot=1:0-2");
    const auto [found, is_new] = cores.emplace(socket, std::set<int>{});
    if (!is_new)
      mistake(place, at, "socket " + std::to_string(socket) + " is named twice",
              "each socket once");
    if (text.substr(colon + 1, stop - colon - 1) != "*")
      for (const int core : cores_at(place, colon + 1, stop)) found->second.insert(core);
    at = stop + 1;
    if (stop + 1 == end && stop < end)
      mistake(place, stop, "nothing stands behind this", "slot=0:0,1;1:0");
  }
  std::vector<SocketCores> sockets;
  for (const auto& [socket, own] : cores) sockets.push_back({socket, {own.begin(), own.end()}});
  return sockets;
}

void parse_rank_setting(RankLine* line, const WordRange& word) {
  const Place& place = line->place;
  const std::string_view text = place.text.substr(word.begin, word.end - word.begin);
  const auto [name, value] = split_setting(place, word.begin, word.end);
  const bool is_slot = name == "slot" || name == "slots";
  if (!value || (!is_slot && name != "gpus"))
    mistake(place, word.begin, "'" + printable(text) + "' is not understood",
            "slot=CORES, gpus=GPUS, or the end of the line");
  RankPlace& rank = line->rank;
  if (is_slot ? !rank.cores.empty() || !rank.sockets.empty() : !rank.gpus.empty())
    mistake(place, word.begin, name + " is stated twice", kRankForm);
  if (!is_slot)
    rank.gpus = parse_gpus(place, *value, word.end);
  else if (text.find(':') != std::string_view::npos)
    rank.sockets = sockets_at(place, *value, word.end);
  else
    rank.cores = cores_at(place, *value, word.end);
}

// The number of the line's rank.
int parse_rank_line(const std::vector<WordRange>& words, RankLine* line) {
  const Place& place = line->place;
  const auto text = [&](std::size_t i) {
    return place.text.substr(words[i].begin, words[i].end - words[i].begin);
  };
  if (words.size() < 2 || text(0) != "rank")
    mistake(place, words[0].begin, "this line gives no rank a place", kRankForm);
  const std::size_t equals = text(1).find('=');
  const auto rank = parse_integer(text(1).substr(0, equals));
  if (equals == std::string_view::npos || !rank || *rank < 0 || *rank >= kMostRankfileRanks)
    mistake(place, words[1].begin, "'" + printable(text(1)) + "' names no rank and host",
            kRankForm);
  line->rank_at = words[1].begin;
  line->host_at = words[1].begin + equals + 1;
  const std::string_view host = text(1).substr(equals + 1);
  if (host.substr(0, 2) == "+n") {
    const auto number = parse_integer(host.substr(2));
    if (!number || *number < 0)
      mistake(place, line->host_at, "'" + printable(host) + "' is no host's number",
              "+n0 for the first host");
    line->relative = static_cast<std::size_t>(*number);
  } else {
    line->host = parse_host_word(place, line->host_at, words[1].end, 1);
    if (line->host.slots)
      mistake(place, line->host.slots_at, "a rank's host has no number of slots here", kRankForm);
  }
  for (const WordRange& setting : join_settings(place.text, words, 2))
    parse_rank_setting(line, setting);
  return static_cast<int>(*rank);
}

// By rank, each there once.
std::vector<RankLine> parse_lines(std::string_view content, const std::string& source) {
  std::map<int, RankLine> lines;
  std::size_t number = 0, named_cores = 0;
  for (std::size_t begin = 0; begin < content.size();) {
    const std::size_t end = std::min(content.find('\n', begin), content.size());
    RankLine line{{source, ++number, content.substr(begin, end - begin)}};
    begin = end + 1;
    const std::vector<WordRange> words = words_of_line(line.place.text);
    if (words.empty()) continue;
    const int rank = parse_rank_line(words, &line);
    named_cores += line.rank.cores.size();
    for (const SocketCores& socket : line.rank.sockets) named_cores += socket.cores.size();
    if (named_cores > kMostNamedCores)
      mistake(line.place, 0, "the file names too many cores",
              "at most " + std::to_string(kMostNamedCores) + " in all");
    const Place place = line.place;
    const auto [found, is_new] = lines.emplace(rank, std::move(line));
    if (!is_new)
      mistake(place, words[1].begin,
              "rank " + std::to_string(rank) + " has a place in " + found->second.place.origin(),
              "each rank once");
  }
  if (lines.empty())
    mistake({source, 1, content.substr(0, content.find('\n'))}, 0, "no rank is given a place",
            kRankForm);
  std::vector<RankLine> by_rank;
  for (auto& [rank, line] : lines) {
    if (rank != static_cast<int>(by_rank.size()))
      mistake(line.place, line.rank_at,
              "rank " + std::to_string(by_rank.size()) + " has no place, and rank " +
                  std::to_string(rank) + " has one",
              "a line for every rank from 0 on");
    by_rank.push_back(std::move(line));
  }
  return by_rank;
}

// The hosts that the file names, where nobody else does.
HostList hosts_of(const std::vector<RankLine>& lines) {
  HostCollector collector;
  for (const RankLine& line : lines) {
    if (line.relative)
      mistake(line.place, line.host_at, "+n counts hosts that are named elsewhere, and none are",
              "a host's name, or add -H or --hostfile");
    HostEntry entry;
    entry.name = line.host.names.front();
    entry.user = line.host.user;
    entry.slots = 1;
    entry.origin = line.place.origin();
    collector.add(std::move(entry), line.place);
  }
  return collector.take(lines.front().place);
}

std::size_t find_entry(HostIndex& index, const HostList& list, const RankLine& line) {
  if (line.relative) {
    if (*line.relative < list.entries.size()) return *line.relative;
    mistake(line.place, line.host_at, "there are " + std::to_string(list.entries.size()) + " hosts",
            "+n0 to +n" + std::to_string(list.entries.size() - 1));
  }
  const HostEntry* const entry =
      index.find(line.host.user, line.host.names.front(), line.place, line.host_at);
  if (entry != nullptr) return static_cast<std::size_t>(entry - list.entries.data());
  mistake(line.place, line.host_at,
          "'" + printable(line.host.names.front()) + "' is none of the hosts",
          "a host that -H, the hostfile or the scheduler names");
}

}  // namespace

HostList add_rankfile(HostList named, std::string_view content, const std::string& source,
                      const AddressLookup& look_up) {
  if (content.size() > kMostRankfileBytes)
    throw Error(ErrorKind::kUsage,
                source + ": a rankfile of " + format_bytes(content.size()) + " is refused",
                "at most " + format_bytes(kMostRankfileBytes));
  const std::vector<RankLine> lines = parse_lines(content, source);
  HostList list = named.this_machine ? hosts_of(lines) : std::move(named);
  HostIndex index(list, look_up);
  std::vector<RankPlace> places;
  for (const RankLine& line : lines) {
    places.push_back(line.rank);
    RankPlace& place = places.back();
    place.entry = find_entry(index, list, line);
    place.line = line.place.line;
    place.column = line.host_at;
    place.text = line.place.text;
  }
  list.rankfile = source;
  list.rank_places = std::move(places);
  return list;
}

}  // namespace hv::launcher
