// Where this process's cgroups lie in the file system: v2, v1, and both side by side.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace hv::launcher {

// /proc/self/mounts and mountinfo write space, tab, newline and backslash as \ and three octal
// digits.
std::string unescaped_mount(const std::string& text);

struct CgroupMount {
  std::string point;  // "/sys/fs/cgroup/unified"
  bool is_v2 = false;
  std::string controllers;  // v1: mount options, "rw,relatime,cpu,cpuacct"
};

// From the text of /proc/self/mounts, with its escapes (\040 for a space) undone.
std::vector<CgroupMount> parse_cgroup_mounts(const std::string& mounts);

// This process's path in the v2 hierarchy ("/user.slice/..."), from the text of /proc/self/cgroup;
// "" without one.
std::string v2_path(const std::string& own_cgroups);
// The same in the v1 hierarchy of a controller.
std::string v1_path(const std::string& own_cgroups, const std::string& controller);

// The folder of this process's v2 group, empty when there is none; root is put before every path.
std::string own_v2_folder(const std::string& root);

// Folders of this process's groups in which that controller's files may be, from its own group up
// to the top.
std::vector<std::string> own_cgroup_folders(const std::string& root, const std::string& controller);

}  // namespace hv::launcher
