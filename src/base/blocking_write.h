// Writes all of something to a descriptor, however long that takes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <string_view>
#include <vector>

namespace hv {

// 0, or the errno that stopped it. A descriptor that somebody else made non-blocking is waited for.
int write_all(int fd, std::string_view bytes);
// The same for many pieces in as few calls as possible; changes pieces.
int write_all(int fd, std::vector<iovec>& pieces);

}  // namespace hv
