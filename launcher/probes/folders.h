// Inspects the directories that a job uses on this host: working directories and the temporary
// directory. Hangs if one lies on a file system whose server is gone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "src/base/environment.h"
#include "src/wire/check.h"

namespace hv::launcher {

void inspect_folders(const wire::CheckRequest& request, const Environment& environment,
                     wire::CheckReply* reply);

struct Mount {
  std::string device;  // "/dev/sda1", "server:/export", "tmpfs"
  std::string kind;    // "ext4", "nfs4"
};
// The mount that holds an absolute path without links. mounts: the text of /proc/self/mountinfo.
std::optional<Mount> mount_of(const std::string& path, const std::string& mounts);

}  // namespace hv::launcher
