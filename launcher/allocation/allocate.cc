// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/allocate.h"

#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "launcher/allocation/host_choice.h"
#include "launcher/allocation/host_expression.h"
#include "launcher/allocation/hostfile.h"
#include "launcher/allocation/rankfile.h"
#include "launcher/allocation/scheduler.h"
#include "src/base/bounded_file.h"
#include "src/base/error.h"
#include "src/net/interfaces.h"

namespace hv::launcher {
namespace {

// Without the mark that editors of Windows put in front of UTF-8.
std::string read_hostfile(const std::string& path) {
  std::string content =
      read_bounded_file(path, kMostHostfileBytes, "hostfile",
                        "name a file with a line per host, such as 'node1 slots=4'");
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (content.compare(0, kMark.size(), kMark) == 0) content.erase(0, kMark.size());
  return content;
}

std::string read_rankfile(const std::string& path) {
  return read_bounded_file(path, kMostRankfileBytes, "rankfile",
                           "name a file with a line per rank, such as 'rank 0=node1 slot=0-3'");
}

std::string read_of_scheduler(const std::string& path, const std::string& what) {
  return read_bounded_file(path, kMostHostfileBytes, what,
                           "name the hosts with -H or --hostfile, or unset the variable");
}

// One that may not be read is meant all the same; a folder may have the name of a host.
bool is_file(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode);
}

bool is_program(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

// No host is named so: whoever writes it means a file, whether or not it is there.
bool is_named_like_file(const std::string& word) {
  if (word.find('/') != std::string::npos) return true;
  for (const std::string_view end : {".txt", ".hosts", ".hostfile", ".list", ".lst", ".conf"})
    if (word.size() > end.size() && word.compare(word.size() - end.size(), end.size(), end) == 0)
      return true;
  return false;
}

// A file that a scheduler has written is in its form, by whichever way it is named.
HostfileForm form_for(const HostWishes& wishes, const std::string& path,
                      const Environment& environment) {
  if (!wishes.hostfile_format.empty()) return hostfile_form(wishes.hostfile_format);
  if (is_same_file(environment.get_or("PBS_NODEFILE", ""), path)) return HostfileForm::kNames;
  if (is_same_file(environment.get_or("LSB_DJOB_HOSTFILE", ""), path)) return HostfileForm::kPairs;
  return HostfileForm::kAny;
}

FoundHosts hosts_of_file(const HostWishes& wishes, const std::string& path,
                         const Environment& environment) {
  return {parse_hostfile(read_hostfile(path), path, form_for(wishes, path, environment)), path};
}

// -H may be a word that means a file, too.
std::string hostfile_of(const HostWishes& wishes) {
  if (!wishes.hostfile.empty() || wishes.hosts.empty()) return wishes.hostfile;
  const bool may_be_file = wishes.hosts.find_first_of(",:[]") == std::string::npos;
  return may_be_file && (is_file(wishes.hosts) || is_named_like_file(wishes.hosts)) ? wishes.hosts
                                                                                    : "";
}

void check_format(const std::string& format, bool is_file_read) {
  if (format.empty()) return;
  (void)hostfile_form(format);
  if (is_file_read) return;
  throw Error(ErrorKind::kUsage,
              "--hostfile-format " + format + " is the form of a hostfile, and none is read",
              "add --hostfile FILE, or leave out --hostfile-format");
}

FoundHosts hosts_as_named(const HostWishes& wishes, const Environment& environment,
                          const AddressLookup& look_up) {
  const std::string file = hostfile_of(wishes);
  check_format(wishes.hostfile_format, !file.empty());
  if (!file.empty()) {
    FoundHosts found = hosts_of_file(wishes, file, environment);
    if (!wishes.hostfile.empty() && !wishes.hosts.empty())
      found.list = choose_hosts(found.list, found.source, wishes.hosts, look_up);
    return found;
  }
  if (!wishes.hosts.empty()) return {parse_host_expression(wishes.hosts), ""};
  if (auto found = hosts_of_scheduler(environment, read_of_scheduler))
    return {std::move(found->hosts), std::move(found->scheduler)};
  return {{{}, true}, ""};
}

HostReach reach_of(const HostList& list, bool way_is_stated, const Environment& environment) {
  if (list.this_machine) return {};
  if (!way_is_stated)
    return reach_by_mpi_operator(list, environment, read_of_scheduler, is_program);
  HostReach reach;
  reach.may_come_late = are_hosts_of_mpi_operator(list, environment, read_of_scheduler);
  return reach;
}

using Choose = HostList(const HostList&, std::string_view, const AddressLookup&);

// --include and --exclude of this machine, which nobody has named. A choice without slots changes
// nothing.
HostList among_own_slots(HostList this_machine, const std::string& option, const std::string& words,
                         Choose* choose, const AddressLookup& look_up) {
  HostEntry own;
  own.name = "localhost";
  own.origin = option;
  HostList chosen = choose({{own}}, words, look_up);
  const HostEntry& left = chosen.entries.front();
  return left.gpus.empty() && left.without_gpus.empty() ? std::move(this_machine)
                                                        : std::move(chosen);
}

HostList choose_among(HostList list, const std::string& option, const std::string& words,
                      Choose* choose, const AddressLookup& look_up) {
  if (words.empty()) return list;
  if (list.this_machine) return among_own_slots(std::move(list), option, words, choose, look_up);
  return choose(list, words, look_up);
}

// A host with slots=0 takes no part.
void drop_hosts_without_slots(HostList* list) {
  if (list->entries.empty()) return;
  const HostEntry first = list->entries.front();
  const std::size_t count = list->entries.size();
  std::erase_if(list->entries, [](const HostEntry& entry) { return entry.slots == 0; });
  if (list->entries.empty())
    throw Error(
        ErrorKind::kUsage,
        "no host has a slot: host " + first.name + " has slots=0 in " + first.origin +
            (count > 1 ? ", and so has every other" : ""),
        "state how many ranks fit on one of them, as in slots=4 or -H " + first.name + ":4");
}

}  // namespace

FoundHosts find_hosts(const HostWishes& wishes, const Environment& environment,
                      const AddressLookup& look_up) {
  if (!wishes.include.empty() && !wishes.exclude.empty())
    throw Error(ErrorKind::kUsage, "both --include and --exclude choose hosts", "give one of them");
  FoundHosts found = hosts_as_named(wishes, environment, look_up);
  const std::string scheduler = found.list.scheduler;
  found.list.reach = reach_of(found.list, wishes.way_is_stated, environment);
  found.list =
      choose_among(std::move(found.list), "--include", wishes.include, include_hosts, look_up);
  found.list =
      choose_among(std::move(found.list), "--exclude", wishes.exclude, exclude_hosts, look_up);
  found.list.scheduler = scheduler;
  if (scheduler == "Slurm") found.list.scheduler_gpus = gpus_of_slurm_job(environment);
  const bool is_part = !wishes.include.empty() || !wishes.exclude.empty();
  if (is_part) found.list.scheduler_gpus.in_all = 0;  // on which hosts they are is not known
  drop_hosts_without_slots(&found.list);
  if (!wishes.rankfile.empty())
    found.list = add_rankfile(std::move(found.list), read_rankfile(wishes.rankfile),
                              wishes.rankfile, look_up);
  return found;
}

}  // namespace hv::launcher
