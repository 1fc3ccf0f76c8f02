// The user's ssh configuration for one host, from what `ssh -G` prints; and whether libssh can
// honour it. Pure.
// SPDX-License-Identifier: Apache-2.0
//
// libssh ignores in silence what it does not know. So whatever changes trust or route and is beyond
// it is a reason to leave the host to the system's ssh.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hv::launcher {

// Words as `ssh -G` prints them: lower-case key, values in order of appearance.
using SshWords = std::map<std::string, std::vector<std::string>, std::less<>>;

// StrictHostKeyChecking. hvrun takes no changed key with kOff either.
enum class HostKeyPolicy {
  kKnown,      // yes, ask
  kAcceptNew,  // accept-new
  kOff,        // no, off: ssh itself goes on where a key has changed
};

struct SshConfig {
  std::string host_name;  // to connect to, and the name in known_hosts
  std::string user;
  std::uint16_t port = 22;
  int family = 0;                           // AF_UNSPEC, AF_INET or AF_INET6
  std::vector<std::string> identity_files;  // expanded, in order
  bool identities_are_chosen = false;       // by the user, not ssh's own list
  std::string identity_agent;               // socket; "none"; empty: SSH_AUTH_SOCK
  std::vector<std::string> known_hosts;     // files; the first is the user's, where new keys go
  HostKeyPolicy host_keys = HostKeyPolicy::kKnown;
  bool public_keys = true;
  bool gssapi = false;
  int least_rsa_bits = 0;  // 0: not stated
  std::string ciphers, macs, key_exchanges, host_key_types,
      public_key_types;  // comma lists; empty: not stated
};

// What the user and this machine add to the words.
struct SshSurroundings {
  std::string home;  // as ssh sees it: from the password database
  std::string local_user;
  std::string host;  // as given on the command line
  std::function<bool(const std::string& file)> exists;
};

// Throws Error(kStart) when text (output of ssh -G) has no host name in it.
SshWords parse_ssh_words(std::string_view text);
SshConfig interpret_ssh_words(const SshWords& words, const SshSurroundings& surroundings);
// "it is reached through a jump host (ProxyJump)"; empty: libssh can do it.
std::string reason_for_system_ssh(const SshWords& words, const SshSurroundings& surroundings);
// The sshd that the connection meets first, the same text for all hosts behind it: the first jump
// host, a ProxyCommand, or host and port.
std::string login_gate(const SshWords& words);
// Whether HostName, Port, ProxyJump or ProxyCommand lead elsewhere than to port 22 of `requested`.
bool has_own_route(const SshWords& words, const std::string& requested);
// Where there is no ssh to ask: its defaults.
SshConfig default_ssh_config(const SshSurroundings& surroundings);

}  // namespace hv::launcher
