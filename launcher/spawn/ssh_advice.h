// What to try, by what ssh or the system says. One place, so that libssh's way and the system's ssh
// advise alike.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace hv::launcher {

// words: the stderr of an ssh-like command, or a system's reason. Empty when nothing in them is
// known.
std::string advice_for(const std::string& words, const std::string& host);
// For a failed connect(2).
std::string connect_advice(int errno_value, const std::string& host);
// When this machine lacks something; empty for another reason.
std::string shortage_advice(int errno_value);
std::string unknown_key_advice(const std::string& host);
std::string changed_key_advice(const std::string& host, const std::string& file);

}  // namespace hv::launcher
