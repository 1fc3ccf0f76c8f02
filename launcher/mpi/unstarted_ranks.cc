// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/unstarted_ranks.h"

#include <algorithm>

#include "launcher/mpi/mpi_advice.h"
#include "launcher/mpirank/not_started.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostReport = 16 << 10;
constexpr std::size_t kMostOfDaemon = 512;
constexpr std::size_t kMostOfDaemons = 16 << 10;

bool may_be_report(const std::string& bytes) {
  return bytes.size() <= kMostReport &&
         kNotStartedMark.starts_with(std::string_view(bytes).substr(0, kNotStartedMark.size()));
}

}  // namespace

std::string UnstartedRanks::pass(int rank, std::string_view bytes) {
  First& first = first_[rank];
  if (first.is_known) {
    first.bytes += bytes.substr(0, kMostOfDaemon - std::min(kMostOfDaemon, first.bytes.size()));
    return std::string(bytes);
  }
  first.bytes += bytes;
  if (const auto told = read_not_started(first.bytes)) {
    told_[{told->problem.what, told->problem.hint}].insert(printable(told->host));
    first = {"", true};
    return "";
  }
  if (may_be_report(first.bytes)) return "";
  std::string shown = first.bytes;
  first = {shown.substr(0, kMostOfDaemon), true};
  return shown;
}

std::map<int, std::string> UnstartedRanks::take_rest() {
  std::map<int, std::string> rest;
  for (auto& [rank, first] : first_) {
    if (first.is_known) continue;
    rest[rank] = std::exchange(first.bytes, "");
    first.is_known = true;
  }
  return rest;
}

std::vector<std::string> UnstartedRanks::texts() const {
  std::vector<std::string> texts;
  for (const auto& [reason, hosts] : told_)
    texts.push_back((hosts.size() == 1 ? "on host " : "on hosts ") +
                    join_some({hosts.begin(), hosts.end()}) + ": " + reason.first +
                    "\n  try: " + reason.second);
  return texts;
}

std::string UnstartedRanks::daemons_words() const {
  std::string words;
  for (const auto& [rank, first] : first_)
    if (is_of_starter(mpirun_, first.bytes) && words.size() < kMostOfDaemons) words += first.bytes;
  return words;
}

}  // namespace hv::launcher
