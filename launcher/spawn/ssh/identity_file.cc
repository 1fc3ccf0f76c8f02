// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/ssh/identity_file.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// A public key names one that the ssh-agent holds.
bool is_public_key(const std::string& file) {
  ssh_key raw = nullptr;
  if (libssh().ssh_pki_import_pubkey_file(file.c_str(), &raw) != SSH_OK) return false;
  libssh().ssh_key_free(raw);
  return true;
}

void warn_of_no_key(const std::string& file) {
  static std::set<std::string> looked_at;  // the file is the same for every host
  if (!looked_at.insert(file).second) return;
  const LoadedKey loaded = load_private_key(file);
  if (loaded.key || loaded.has_passphrase || is_public_key(file)) return;
  HV_LOG(kWarn, "ssh") << "key file " << file << " " << loaded.trouble
                       << ": only other keys are tried";
}

}  // namespace

LoadedKey load_private_key(const std::string& file) {
  LoadedKey loaded;
  const auto refuse = [](const char*, char*, std::size_t, int, int, void* flag) {
    *static_cast<bool*>(flag) = true;
    return -1;
  };
  ssh_key raw = nullptr;
  if (libssh().ssh_pki_import_privkey_file(file.c_str(), nullptr, refuse, &loaded.has_passphrase,
                                           &raw) == SSH_OK) {
    loaded.key.reset(raw);
  } else if (loaded.has_passphrase) {
    loaded.trouble = "has a passphrase, so it was not tried";
  } else {
    loaded.trouble = ::access(file.c_str(), R_OK) == 0 ? "is no private key that libssh can read"
                                                       : "cannot be read";
  }
  return loaded;
}

std::string from_home(const std::string& file) {
  if (file.compare(0, 2, "~/") != 0) return file;
  const passwd* const entry = ::getpwuid(::getuid());
  return entry == nullptr ? file : entry->pw_dir + file.substr(1);
}

void check_identity_file(const std::string& file) {
  if (file.empty()) return;
  struct stat status {};
  std::string reason;
  if (::access(file.c_str(), R_OK) != 0 || ::stat(file.c_str(), &status) != 0)
    reason = errno_text(errno);
  else if (!S_ISREG(status.st_mode))
    reason = S_ISDIR(status.st_mode) ? errno_text(EISDIR) : "Not a regular file";
  if (reason.empty()) return warn_of_no_key(file);
  // ssh itself would pass over it, and log in by another key than the user meant.
  throw Error(ErrorKind::kStart,
              "log in to hosts: read the key file " + printable(file) + ": " + reason,
              "give the file of a private key with -i, or as identity= in the host file");
}

}  // namespace hv::launcher
