// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/ssh/ssh_config.h"

#include <sys/socket.h>

#include <algorithm>
#include <climits>

#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// Options that libssh lacks: any other value than these means the system's ssh.
struct Beyond {
  const char* key;
  std::vector<std::string_view> harmless;
  const char* why;
};

const std::vector<Beyond>& beyond_libssh() {
  static const std::vector<Beyond> table{
      {"proxyjump", {"none"}, "it is reached through a jump host (ProxyJump)"},
      {"proxycommand", {"none"}, "it is reached through a command (ProxyCommand)"},
      {"hostkeyalias", {}, "its key has another name (HostKeyAlias)"},
      {"identitiesonly", {"no"}, "only certain keys may be tried (IdentitiesOnly)"},
      {"certificatefile", {"none"}, "a certificate is presented (CertificateFile)"},
      {"hostbasedauthentication",
       {"no"},
       "the login is vouched for by this host (HostbasedAuthentication)"},
      {"revokedhostkeys", {"none"}, "some host keys are revoked (RevokedHostKeys)"},
      {"knownhostscommand", {"none"}, "host keys come from a command (KnownHostsCommand)"},
      {"verifyhostkeydns", {"no", "false"}, "host keys are looked up in DNS (VerifyHostKeyDNS)"},
      {"checkhostip", {"no"}, "its address is checked too (CheckHostIP)"},
      {"canonicalizehostname",
       {"no", "false"},
       "its name is made canonical (CanonicalizeHostname)"},
      {"pkcs11provider", {"none"}, "keys come from a token (PKCS11Provider)"},
      {"securitykeyprovider", {"internal", "none"}, "keys come from a token (SecurityKeyProvider)"},
      {"bindaddress", {}, "the connection starts from a certain address (BindAddress)"},
      {"bindinterface", {"none"}, "the connection starts from a certain interface (BindInterface)"},
      {"controlpath", {"none"}, "connections to it are shared (ControlPath)"},
      {"tunnel", {"no", "false"}, "a tunnel is asked for (Tunnel)"},
  };
  return table;
}

// ssh's own list, which it prints when the user has none.
const std::vector<std::string>& default_identities() {
  static const std::vector<std::string> list{
      "~/.ssh/id_rsa",        "~/.ssh/id_ecdsa", "~/.ssh/id_ecdsa_sk", "~/.ssh/id_ed25519",
      "~/.ssh/id_ed25519_sk", "~/.ssh/id_xmss",  "~/.ssh/id_dsa"};
  return list;
}

const std::vector<std::string>& values_of(const SshWords& words, std::string_view key) {
  static const std::vector<std::string> none;
  const auto found = words.find(key);
  return found == words.end() ? none : found->second;
}

std::string value_of(const SshWords& words, std::string_view key, std::string_view otherwise = "") {
  const auto& values = values_of(words, key);
  return values.empty() ? std::string(otherwise) : values.front();
}

bool is_on(const std::string& value) { return value == "yes" || value == "true"; }

// Tilde and percent tokens of a file name (ssh_config(5), TOKENS). False: it holds one that is not
// known here.
bool expand(const SshWords& words, const SshSurroundings& surroundings, std::string* name) {
  const std::map<char, std::string> tokens{{'%', "%"},
                                           {'d', surroundings.home},
                                           {'h', value_of(words, "hostname")},
                                           {'n', surroundings.host},
                                           {'p', value_of(words, "port", "22")},
                                           {'r', value_of(words, "user")},
                                           {'u', surroundings.local_user}};
  if (name->find("${") != std::string::npos) return false;
  std::string result;
  for (std::size_t i = 0; i < name->size(); ++i) {
    const char c = (*name)[i];
    if (i == 0 && c == '~') {
      if (name->size() > 1 && (*name)[1] != '/') return false;  // ~user
      result += surroundings.home;
    } else if (c == '%') {
      const auto token = i + 1 < name->size() ? tokens.find((*name)[++i]) : tokens.end();
      if (token == tokens.end()) return false;
      result += token->second;
    } else {
      result += c;
    }
  }
  *name = result;
  return true;
}

std::vector<std::string> files_in(const SshWords& words, std::string_view key,
                                  const SshSurroundings& surroundings) {
  std::vector<std::string> files;
  for (std::string file : split(value_of(words, key), ' ')) {
    if (!file.empty() && file != "none" && expand(words, surroundings, &file))
      files.push_back(file);
  }
  return files;
}

bool is_certificate_type(std::string_view type) {
  return type.find("-cert-v01@") != std::string_view::npos;
}

// libssh has no certificates: what is left of a list without them.
std::string without_certificates(const std::string& list) {
  std::vector<std::string> kept;
  for (const std::string& type : split(list, ',')) {
    if (!is_certificate_type(type)) kept.push_back(type);
  }
  return join(kept, ",");
}

std::string reason_in_files(const SshWords& words, const SshSurroundings& surroundings) {
  for (std::string file : values_of(words, "identityfile")) {
    if (file == "none") continue;
    if (!expand(words, surroundings, &file))
      return "a key file's name holds what only ssh expands (" + file + ")";
    if (surroundings.exists(file + "-cert.pub"))
      return "there is a certificate for a key (" + file + "-cert.pub)";
  }
  for (const char* key : {"userknownhostsfile", "globalknownhostsfile"}) {
    for (std::string file : split(value_of(words, key), ' ')) {
      if (!expand(words, surroundings, &file))
        return "a known_hosts file's name holds what only ssh expands (" + file + ")";
    }
  }
  std::string agent = value_of(words, "identityagent", "SSH_AUTH_SOCK");
  if (agent.find('$') != std::string::npos || !expand(words, surroundings, &agent)) {
    return "the agent's name holds what only ssh expands (IdentityAgent)";
  }
  return "";
}

}  // namespace

SshWords parse_ssh_words(std::string_view text) {
  SshWords words;
  for (const std::string& line : split(text, '\n')) {
    const std::string_view rest = trim(line);
    const std::size_t space = rest.find(' ');
    if (space == std::string_view::npos) continue;
    words[lower(rest.substr(0, space))].emplace_back(trim(rest.substr(space)));
  }
  if (value_of(words, "hostname").empty()) {
    throw Error(ErrorKind::kStart, "read what 'ssh -G' prints: it names no host",
                "look what 'ssh -G HOST' says");
  }
  return words;
}

SshConfig interpret_ssh_words(const SshWords& words, const SshSurroundings& surroundings) {
  SshConfig config;
  config.host_name = lower(value_of(words, "hostname"));
  config.user = value_of(words, "user", surroundings.local_user);
  const auto port = parse_integer(value_of(words, "port", "22"));
  config.port = port && *port > 0 && *port < 65536 ? static_cast<std::uint16_t>(*port) : 22;
  const std::string family = value_of(words, "addressfamily", "any");
  config.family = family == "inet" ? AF_INET : family == "inet6" ? AF_INET6 : AF_UNSPEC;
  config.identities_are_chosen = values_of(words, "identityfile") != default_identities();
  for (std::string file : values_of(words, "identityfile")) {
    if (file != "none" && expand(words, surroundings, &file)) config.identity_files.push_back(file);
  }
  config.identity_agent = value_of(words, "identityagent");
  if (config.identity_agent == "SSH_AUTH_SOCK") config.identity_agent.clear();
  (void)expand(words, surroundings, &config.identity_agent);
  config.known_hosts = files_in(words, "userknownhostsfile", surroundings);
  if (config.known_hosts.empty()) config.known_hosts.emplace_back("/dev/null");
  for (const std::string& file : files_in(words, "globalknownhostsfile", surroundings))
    config.known_hosts.push_back(file);
  const std::string strict = value_of(words, "stricthostkeychecking", "ask");
  if (strict == "accept-new") config.host_keys = HostKeyPolicy::kAcceptNew;
  if (strict == "no" || strict == "false" || strict == "off")
    config.host_keys = HostKeyPolicy::kOff;
  const std::string keys = value_of(words, "pubkeyauthentication", "yes");
  config.public_keys = keys != "no" && keys != "false";
  config.gssapi = is_on(value_of(words, "gssapiauthentication"));
  // A demand that no int holds must not turn into none.
  config.least_rsa_bits = static_cast<int>(std::clamp<std::int64_t>(
      parse_integer(value_of(words, "requiredrsasize", "0")).value_or(0), 0, INT_MAX));
  config.ciphers = value_of(words, "ciphers");
  config.macs = value_of(words, "macs");
  config.key_exchanges = value_of(words, "kexalgorithms");
  config.host_key_types = without_certificates(value_of(words, "hostkeyalgorithms"));
  config.public_key_types = without_certificates(value_of(words, "pubkeyacceptedalgorithms"));
  return config;
}

std::string reason_for_system_ssh(const SshWords& words, const SshSurroundings& surroundings) {
  for (const Beyond& option : beyond_libssh()) {
    for (const std::string& value : values_of(words, option.key)) {
      if (std::find(option.harmless.begin(), option.harmless.end(), value) == option.harmless.end())
        return option.why;
    }
  }
  return reason_in_files(words, surroundings);
}

std::string login_gate(const SshWords& words) {
  const std::string jump = value_of(words, "proxyjump", "none");
  if (jump != "none") {
    const std::string first = jump.substr(0, jump.find(','));
    return first.substr(first.rfind('@') + 1);
  }
  const std::string command = value_of(words, "proxycommand", "none");
  if (command != "none") return command;
  return lower(value_of(words, "hostname")) + ":" + value_of(words, "port", "22");
}

bool has_own_route(const SshWords& words, const std::string& requested) {
  return value_of(words, "proxyjump", "none") != "none" ||
         value_of(words, "proxycommand", "none") != "none" ||
         value_of(words, "port", "22") != "22" ||
         lower(value_of(words, "hostname")) != lower(requested);
}

SshConfig default_ssh_config(const SshSurroundings& surroundings) {
  const std::string folder = surroundings.home + "/.ssh/";
  SshConfig config;
  config.host_name = lower(surroundings.host);
  config.user = surroundings.local_user;
  for (const char* name : {"id_rsa", "id_ecdsa", "id_ed25519"})
    config.identity_files.push_back(folder + name);
  config.known_hosts = {folder + "known_hosts", folder + "known_hosts2", "/etc/ssh/ssh_known_hosts",
                        "/etc/ssh/ssh_known_hosts2"};
  return config;
}

}  // namespace hv::launcher
