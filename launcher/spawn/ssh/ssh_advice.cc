// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/ssh/ssh_advice.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string_view>

#include "src/base/text.h"

namespace hv::launcher {

namespace {

// What stands behind 'ssh' on a command line: "b", "-p 2222 b".
std::string ssh_words(const ReachedHost& host) {
  return (host.port == 0 ? "" : "-p " + std::to_string(host.port) + " ") + host.name;
}

// ssh itself says by which name a host stands in known_hosts: an alias, or "[b]:2222". text: ssh's
// words.
std::string known_name_in(const std::string& text, const std::string& otherwise) {
  constexpr std::string_view kBefore = "Host key for ", kBehind = " has changed and you have";
  const std::size_t behind = text.find(kBehind);
  const std::size_t before = behind == std::string::npos ? behind : text.rfind(kBefore, behind);
  if (before == std::string::npos) return otherwise;
  const std::size_t name = before + kBefore.size();
  return text.substr(name, behind - name);
}

// The text between both in ssh's words: a host's name, which may be a jump host's.
std::string name_in(const std::string& words, std::string_view before, std::string_view behind,
                    const std::string& otherwise) {
  const std::size_t found = words.find(before);
  if (found == std::string::npos) return otherwise;
  const std::size_t name = found + before.size();
  const std::size_t end = words.find(behind, name);
  return end == std::string::npos ? otherwise : printable(words.substr(name, end - name));
}

// For a key that ssh does not know, which may be a jump host's: --ssh-accept-new is not for that.
std::string unknown_key_advice_in(const std::string& words, const ReachedHost& host) {
  const std::string name = name_in(words, "host key is known for ", " and you have", host.name);
  std::string advice = unknown_key_advice(host);
  if (name != host.name)
    advice += "; the unknown key is that of " + name +
              ": if that is a jump host, write 'StrictHostKeyChecking accept-new' for it into "
              "~/.ssh/config";
  return advice;
}

}  // namespace

std::string unknown_key_advice(const ReachedHost& host) {
  return "connect once by 'ssh " + ssh_words(host) + "' and compare the fingerprint" +
         (host.can_accept_new ? ", or pass --ssh-accept-new" : "");
}

std::string changed_key_advice(const std::string& name, const std::string& file,
                               bool is_checking_off) {
  const std::string advice =
      "ask the host's administrator for its fingerprint; only if the change is theirs: "
      "ssh-keygen -R " +
      shell_quote(name) + (file.empty() ? "" : " -f " + shell_quote(file));
  if (!is_checking_off) return advice;
  return advice +
         ". ssh would go on (StrictHostKeyChecking no), and hvrun does not: the machine that "
         "answers "
         "would get this job's environment and run it. For hosts that get new keys each time write "
         "'UserKnownHostsFile /dev/null' and 'GlobalKnownHostsFile /dev/null' for them into "
         "~/.ssh/config";
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

HostAdvice ssh_host_advice(const ReachedHost& host) {
  return {host.name, "log in there by ssh and see what the login shell and its start-up files do",
          "log in there by ssh and see whether start-up files wait for something, or read standard "
          "input (cat, read)",
          [host](const std::string& words) {
            return JudgedWords{words, advice_for(words, host)};
          }};
}

bool is_refused_login(const std::string& words) {
  // ssh reports a closed connection also when its proxy has ended, and why that was stands before.
  static constexpr const char* kOtherReasons[] = {"permission denied",
                                                  "host key verification failed",
                                                  "identification has changed",
                                                  "could not resolve",
                                                  "connection refused",
                                                  "no route to host",
                                                  "network is unreachable",
                                                  "open failed",
                                                  "not found",
                                                  "no such file",
                                                  "jumphost loop"};
  static constexpr const char* kRefusals[] = {"exceeded maxstartups",
                                              "not allowed at this time",
                                              "kex_exchange_identification: read",
                                              "connection reset by",
                                              "socket error: disconnected",
                                              "exchange_identification: connection closed",
                                              "remote host closed",
                                              "connection closed by remote",
                                              "banner exchange: connection"};
  const std::string text = lower(words);
  const auto is_in_text = [&text](const char* part) {
    return text.find(part) != std::string::npos;
  };
  return std::none_of(std::begin(kOtherReasons), std::end(kOtherReasons), is_in_text) &&
         std::any_of(std::begin(kRefusals), std::end(kRefusals), is_in_text);
}

std::string refused_login_advice() {
  return "raise MaxStartups (and PerSourceMaxStartups) in the sshd_config of that host, or of its "
         "jump host: sshd may take too few logins at once; or raise --start-timeout; or see "
         "whether "
         "a firewall or hosts.deny there turns this machine away";
}

bool may_pass_by_itself(const std::string& words) {
  static constexpr const char* kPassing[] = {"could not resolve",   "connection refused",
                                             "no route to host",    "network is unreachable",
                                             "timed out",           "kex_exchange_identification",
                                             "connection reset by", "connection closed by"};
  const std::string text = lower(words);
  return std::any_of(std::begin(kPassing), std::end(kPassing),
                     [&text](const char* part) { return text.find(part) != std::string::npos; });
}

std::string advice_for(const std::string& words, const ReachedHost& reached) {
  const std::string& host = reached.name;
  const std::string text = lower(words);
  const auto says = [&text](const char* part) { return text.find(part) != std::string::npos; };
  if (says("identification has changed"))
    return changed_key_advice(known_name_in(words, host), "", reached.is_checking_off);
  if (says("host key verification failed")) return unknown_key_advice_in(words, reached);
  if (says("permission denied"))
    return "see that 'ssh -o BatchMode=yes " + ssh_words(reached) +
           " true' works: user (-l), key (-i), ssh-add";
  if (says("could not resolve"))
    return "check the spelling of " + name_in(words, "Could not resolve hostname ", ":", host) +
           ", or name it in /etc/hosts or ~/.ssh/config";
  if (is_refused_login(words)) return refused_login_advice();
  if (says("connection refused"))
    return connect_advice(ECONNREFUSED, name_in(words, "connect to host ", " port", host));
  if (says("no route to host") || says("network is unreachable"))
    return connect_advice(EHOSTUNREACH, host);
  if (says("timed out")) return connect_advice(ETIMEDOUT, host);
  if (says("too many authentication failures"))
    return "give the right key with -i, or take others out of the agent (ssh-add -d)";
  return "";
}

}  // namespace hv::launcher
