// Key files that the user has named: what is wrong with one is told, never passed over.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <type_traits>

#include "launcher/spawn/ssh/ssh_library.h"

namespace hv::launcher {

struct FreeKey {
  void operator()(ssh_key key) const { libssh().ssh_key_free(key); }
};
using SshKey = std::unique_ptr<std::remove_pointer_t<ssh_key>, FreeKey>;

struct LoadedKey {
  SshKey key;           // none: see trouble
  std::string trouble;  // "cannot be read"
  bool has_passphrase = false;
};
// Nobody is asked for a passphrase.
LoadedKey load_private_key(const std::string& file);

// "~/x" as ssh reads it in a file that no shell has seen: below this user's home.
std::string from_home(const std::string& file);

// Nothing for an empty name. Throws Error(kStart) unless it is a regular file that can be read;
// warns, once in the process, of one that holds no key. One thread at a time.
void check_identity_file(const std::string& file);

}  // namespace hv::launcher
