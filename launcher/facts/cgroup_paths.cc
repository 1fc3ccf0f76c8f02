// SPDX-License-Identifier: Apache-2.0
#include "launcher/facts/cgroup_paths.h"

#include <unistd.h>

#include <algorithm>

#include "launcher/facts/read_file.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// The path in the hierarchy line whose list of controllers is wanted; "" for none.
template <class Wanted>
std::string path_where(const std::string& own_cgroups, const Wanted& wanted) {
  for (const std::string& line : split(own_cgroups, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    if (wanted(line.substr(0, first), line.substr(first + 1, second - first - 1)))
      return line.substr(second + 1);
  }
  return {};
}

bool has_word(const std::string& list, const std::string& word) {
  const std::vector<std::string> words = split(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

// In a container the path may be that of the host, of which only the end is mounted: then the top
// is all there is.
std::string folder_of(const std::string& mount, const std::string& path) {
  const std::string folder = path == "/" || path.empty() ? mount : mount + path;
  return ::access(folder.c_str(), F_OK) == 0 ? folder : mount;
}

}  // namespace

std::string unescaped_mount(const std::string& text) {
  const auto octal = [](char digit) { return digit >= '0' && digit <= '7'; };
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && octal(text[i + 1]) && octal(text[i + 2]) &&
        octal(text[i + 3])) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                 (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::vector<CgroupMount> parse_cgroup_mounts(const std::string& mounts) {
  std::vector<CgroupMount> found;
  for (const std::string& line : split(mounts, '\n')) {
    const std::vector<std::string> words = split(line, ' ');
    if (words.size() < 4 || (words[2] != "cgroup" && words[2] != "cgroup2")) continue;
    if (words[1].substr(0, 1) != "/") continue;  // own_cgroup_folders() climbs from slash to slash
    found.push_back({unescaped_mount(words[1]), words[2] == "cgroup2", words[3]});
  }
  return found;
}

std::string v2_path(const std::string& own_cgroups) {
  return path_where(own_cgroups, [](const std::string& number, const std::string& list) {
    return number == "0" && list.empty();
  });
}

std::string v1_path(const std::string& own_cgroups, const std::string& controller) {
  return path_where(own_cgroups, [&](const std::string&, const std::string& list) {
    return has_word(list, controller);
  });
}

std::string own_v2_folder(const std::string& root) {
  const std::string path = v2_path(read_file(root + "/proc/self/cgroup").value_or(""));
  if (path.empty()) return {};
  for (const CgroupMount& mount :
       parse_cgroup_mounts(read_file(root + "/proc/self/mounts").value_or(""))) {
    if (mount.is_v2) return folder_of(root + mount.point, path);
  }
  return {};
}

std::vector<std::string> own_cgroup_folders(const std::string& root,
                                            const std::string& controller) {
  const std::string own = read_file(root + "/proc/self/cgroup").value_or("");
  std::vector<std::string> folders;
  for (const CgroupMount& mount :
       parse_cgroup_mounts(read_file(root + "/proc/self/mounts").value_or(""))) {
    if (!mount.is_v2 && !has_word(mount.controllers, controller)) continue;
    const std::string top = root + mount.point;
    const std::string path = mount.is_v2 ? v2_path(own) : v1_path(own, controller);
    if (path.empty()) continue;
    for (std::string folder = folder_of(top, path); folder.size() >= top.size();
         folder.resize(folder.rfind('/'))) {
      folders.push_back(folder);
    }
  }
  return folders;
}

}  // namespace hv::launcher
