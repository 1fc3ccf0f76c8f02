// What to try, by what ssh or the system says. One place, so that libssh's way and the system's ssh
// advise alike.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "launcher/spawn/host_advice.h"

namespace hv::launcher {

// How the user reaches a host, for the commands that are advised.
struct ReachedHost {
  std::string name;
  std::uint16_t port = 0;        // as given by -p; 0: what ssh takes by itself
  bool can_accept_new = true;    // --ssh-accept-new means something on this way
  bool is_checking_off = false;  // StrictHostKeyChecking no
};

// What is told where its agent does not start.
HostAdvice ssh_host_advice(const ReachedHost& host);
// Whether what the system's ssh said may be otherwise in a moment, where the host just comes up.
bool may_pass_by_itself(const std::string& words);
// Whether sshd, or one on the way, closed the connection before the login. words: of the
// system's ssh, or libssh's error in the key exchange.
bool is_refused_login(const std::string& words);
std::string refused_login_advice();
// words: the stderr of an ssh-like command, or a system's reason. Empty when nothing in them is
// known.
std::string advice_for(const std::string& words, const ReachedHost& host);
// For a failed connect(2).
std::string connect_advice(int errno_value, const std::string& host);
// When this machine lacks something; empty for another reason.
std::string shortage_advice(int errno_value);
std::string unknown_key_advice(const ReachedHost& host);
// name: in known_hosts, such as "b", "[b]:2222" or an alias. file: empty for ssh's own.
// is_checking_off: StrictHostKeyChecking no, with which ssh would go on.
std::string changed_key_advice(const std::string& name, const std::string& file,
                               bool is_checking_off);

}  // namespace hv::launcher
