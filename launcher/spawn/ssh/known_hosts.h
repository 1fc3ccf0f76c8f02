// What the known_hosts files say of a host, and the judgement of the key that it presents (sshd(8),
// known_hosts).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hv::launcher {

struct KnownKey {
  enum class Marker { kNone, kAuthority, kRevoked };
  Marker marker = Marker::kNone;
  std::string type;    // "ssh-ed25519"
  std::string base64;  // the public key
  std::string file;
  int line = 0;
};

// "b" for port 22, else "[b]:2222".
std::string known_hosts_name(const std::string& host, std::uint16_t port);

// The lines of text that are about name: patterns with '*', '?' and '!', hashed names. Lines that
// make no sense are passed over, as ssh does. file: for KnownKey::file.
std::vector<KnownKey> keys_in(std::string_view text, const std::string& name,
                              const std::string& file);

// Those of all files; files that are not there hold nothing. A host at another port that no line
// names is also looked for without its port: such lines confirm a key, and never contradict one.
struct KnownKeys {
  std::vector<KnownKey> keys;
  std::vector<KnownKey> without_port;
  bool has_authority() const;
  // Key types in order of appearance, for the key exchange: a host with two keys must show the
  // known one.
  std::vector<std::string> types() const;
};
KnownKeys find_known_keys(const std::vector<std::string>& files, const std::string& host,
                          std::uint16_t port);

struct HostKeyVerdict {
  enum class Kind { kKnown, kUnknown, kChanged, kRevoked };
  Kind kind = Kind::kUnknown;
  std::string file;  // where the line is that decided
  int line = 0;
};
// A host that is known by other keys only, of whatever type, has changed: hvrun asked for the known
// types first.
HostKeyVerdict judge_host_key(const KnownKeys& known, const std::string& base64);

// Adds a line to a known_hosts file, whole or not at all, among any number of writers. Makes the
// file and its folder (0700) where they are missing. Throws Error(kStart).
void append_known_host(const std::string& file, const std::string& name, const std::string& type,
                       const std::string& base64);

}  // namespace hv::launcher
