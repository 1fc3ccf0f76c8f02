// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/ssh_advice.h"

#include <cerrno>

#include "src/base/text.h"

namespace hv::launcher {

std::string unknown_key_advice(const std::string& host) {
  return "connect once by 'ssh " + host + "' and compare the fingerprint, or pass --ssh-accept-new";
}

std::string changed_key_advice(const std::string& host, const std::string& file) {
  return "ask the host's administrator for its fingerprint; only if the change is theirs: "
         "ssh-keygen -R " +
         shell_quote(host) + (file.empty() ? "" : " -f " + shell_quote(file));
}

std::string shortage_advice(int errno_value) {
  switch (errno_value) {
    case EMFILE:
      return "hvrun needs about three open files for each host: raise the hard limit (ulimit -n, "
             "limits.conf), or use fewer hosts";
    case ENFILE:
      return "this machine is out of open files: end other programs, or raise fs.file-max";
    case EAGAIN:
      return "this user may start no more processes here: end some, or raise the limit (ulimit -u)";
    default:
      return "";
  }
}

std::string connect_advice(int errno_value, const std::string& host) {
  switch (errno_value) {
    case ECONNREFUSED:
      return "see that sshd runs on " + host + " and listens on that port (-p)";
    case EHOSTUNREACH:
    case ENETUNREACH:
      return "see that " + host + " is up and that this machine has a route to it";
    case ETIMEDOUT:
      return "see that " + host + " is up and that no firewall drops its ssh port";
    default:
      break;
  }
  const std::string advice = shortage_advice(errno_value);
  return advice.empty() ? "try 'ssh " + host + " true'" : advice;
}

std::string advice_for(const std::string& words, const std::string& host) {
  const std::string text = lower(words);
  const auto says = [&text](const char* part) { return text.find(part) != std::string::npos; };
  if (says("identification has changed")) return changed_key_advice(host, "");
  if (says("host key verification failed")) return unknown_key_advice(host);
  if (says("permission denied"))
    return "see that 'ssh -o BatchMode=yes " + host + " true' works: user (-l), key (-i), ssh-add";
  if (says("could not resolve"))
    return "check the spelling of " + host + ", or name it in /etc/hosts or ~/.ssh/config";
  if (says("connection refused")) return connect_advice(ECONNREFUSED, host);
  if (says("no route to host") || says("network is unreachable"))
    return connect_advice(EHOSTUNREACH, host);
  if (says("timed out")) return connect_advice(ETIMEDOUT, host);
  if (says("too many authentication failures"))
    return "give the right key with -i, or take others out of the agent (ssh-add -d)";
  return "";
}

}  // namespace hv::launcher
