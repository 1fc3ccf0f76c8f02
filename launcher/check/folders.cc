// Are the folders that ranks use there, with room in them?
// SPDX-License-Identifier: Apache-2.0
#include "launcher/check/probe_list.h"
#include "launcher/check/told.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::uint64_t kLeastBytes = 100 << 20;
constexpr std::uint64_t kLeastFiles = 1000;

bool has_room(const wire::FolderFacts& folder) {
  return folder.free_bytes >= kLeastBytes && folder.free_files >= kLeastFiles;
}

std::string room_in_words(const wire::FolderFacts& folder) {
  const std::string room = folder.free_bytes < kLeastBytes
                               ? format_bytes(folder.free_bytes)
                               : std::to_string(folder.free_files) + " inodes";
  return room + " free in the " + folder.role + " " + folder.path;
}

// Of one program on all hosts, or of the temporary directory.
using FolderOfHost = std::pair<const CheckedHost*, const wire::FolderFacts*>;

void judge_room(const std::vector<FolderOfHost>& folders, const char* verdict,
                Judgement* judgement) {
  std::vector<HostFact> full;
  std::string path;
  for (const auto& [host, folder] : folders) {
    if (!folder->problem.empty() || has_room(*folder)) continue;
    if (full.empty()) path = folder->path;
    full.emplace_back(host->name, room_in_words(*folder));
  }
  add_grouped(verdict, full, judgement, {{"FOLDER", shell_quote(path)}});
}

void judge_working_directory(const std::vector<FolderOfHost>& folders, Judgement* judgement) {
  std::vector<HostFact> missing, forbidden;
  for (const auto& [host, folder] : folders) {
    if (folder->problem.empty()) continue;
    const bool is_there = folder->problem.find("Permission denied") != std::string::npos;
    (is_there ? forbidden : missing).emplace_back(host->name, folder->problem);
  }
  if (folders.empty()) return;
  const Fill values{{"FOLDER", shell_quote(folders[0].second->path)}};
  add_grouped("folder-missing", missing, judgement, values);
  add_grouped("folder-forbidden", forbidden, judgement, values);
  judge_room(folders, "folder-full", judgement);
}

void judge_temporary_directory(const std::vector<FolderOfHost>& folders, Judgement* judgement) {
  std::vector<HostFact> unusable;
  for (const auto& [host, folder] : folders)
    if (!folder->problem.empty()) unusable.emplace_back(host->name, folder->problem);
  add_grouped("temporary-unusable", unusable, judgement);
  judge_room(folders, "temporary-full", judgement);
}

// Told of are first the programs' working directories, in their order, then the temporary one.
// Programs in one directory have one finding.
void judge_folders(const CheckInput& input, Judgement* judgement) {
  const std::vector<ToldHost> hosts = told_by(input, "folders", judgement);
  std::vector<std::string> judged;
  const bool has_directory = input.has_program || input.spec.names_working_directory;
  for (std::size_t i = 0; has_directory && i < input.spec.programs.size(); ++i) {
    std::vector<FolderOfHost> folders;
    for (const ToldHost& host : hosts) {
      bool is_used = i < host.told->folders.size();
      if (is_used)
        for (const std::string& path : judged)
          is_used = is_used && path != host.told->folders[i].path;
      if (is_used) folders.emplace_back(host.host, &host.told->folders[i]);
    }
    judge_working_directory(folders, judgement);
    judged.push_back(input.spec.programs[i].working_directory);
  }
  std::vector<FolderOfHost> temporary;
  for (const ToldHost& host : hosts)
    if (!host.told->folders.empty()) temporary.emplace_back(host.host, &host.told->folders.back());
  judge_temporary_directory(temporary, judgement);
}

}  // namespace

const Probe kFolderProbe{
    "folders",
    "the working directory of each program and the temporary directory: whether they can be used, "
    "and the room in them",
    {{"folder-missing", Severity::kCannotStart, "a host does not have the working directory",
      "ranks start in it", "ssh $HOST mkdir -p $FOLDER; or name another one with --wdir"},
     {"folder-forbidden", Severity::kCannotStart,
      "this user may not enter the working directory of a host", "ranks start in it",
      "ssh $HOST sudo chmod a+rx $FOLDER; or name another one with --wdir"},
     {"folder-full", Severity::kHarms,
      "less than 100 MiB or 1000 inodes are free in the working directory",
      "checkpoints and whatever else ranks write there would fail",
      "see 'ssh $HOST df -h $FOLDER' and 'ssh $HOST df -i $FOLDER' and remove what is not needed, "
      "or name another one with --wdir"},
     {"temporary-unusable", Severity::kHarms,
      "the temporary directory (TMPDIR, else /tmp) is missing or cannot be written",
      "PyTorch's workers, compilers and MPI make files there",
      "name one that can be written: -x TMPDIR=/var/tmp"},
     {"temporary-full", Severity::kHarms,
      "less than 100 MiB or 1000 inodes are free in the temporary directory",
      "PyTorch's workers, compilers and MPI make files there",
      "see 'ssh $HOST df -h $FOLDER' and 'ssh $HOST df -i $FOLDER' and remove what is not needed, "
      "or name another one: -x TMPDIR=/var/tmp"}},
    judge_folders};

}  // namespace hv::launcher
