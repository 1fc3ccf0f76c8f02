// Reading what `ssh -G` prints, and what of it is beyond libssh.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/ssh/ssh_config.h"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <climits>

#include "src/base/error.h"

using namespace hv::launcher;

namespace {

// What ssh -G prints on a machine where nobody has configured anything, shortened.
const std::string kPlain =
    "host b\nuser me\nhostname B.Example\nport 22\naddressfamily any\ncanonicalizehostname "
    "false\ncheckhostip no\n"
    "gssapiauthentication yes\nhostbasedauthentication no\nidentitiesonly no\npubkeyauthentication "
    "true\n"
    "stricthostkeychecking ask\ntunnel false\nverifyhostkeydns false\nsecuritykeyprovider "
    "internal\nrequiredrsasize 1024\n"
    "ciphers chacha20-poly1305@openssh.com,aes128-gcm@openssh.com\nhostkeyalgorithms "
    "ssh-ed25519-cert-v01@openssh.com,ssh-ed25519\n"
    "identityfile ~/.ssh/id_rsa\nidentityfile ~/.ssh/id_ecdsa\nidentityfile "
    "~/.ssh/id_ecdsa_sk\nidentityfile ~/.ssh/id_ed25519\n"
    "identityfile ~/.ssh/id_ed25519_sk\nidentityfile ~/.ssh/id_xmss\nidentityfile ~/.ssh/id_dsa\n"
    "globalknownhostsfile /etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2\n"
    "userknownhostsfile /home/me/.ssh/known_hosts /home/me/.ssh/known_hosts2\n";

SshSurroundings surroundings(const std::string& existing = "") {
  return {"/home/me", "me", "b",
          [existing](const std::string& file) { return !existing.empty() && file == existing; }};
}

std::string reason(const std::string& more, const std::string& existing = "") {
  return reason_for_system_ssh(parse_ssh_words(kPlain + more), surroundings(existing));
}

SshConfig config(const std::string& before) {
  return interpret_ssh_words(parse_ssh_words(before + kPlain), surroundings());
}

}  // namespace

TEST_CASE("a plain configuration is read, and libssh suffices") {
  const SshConfig plain = config("");
  CHECK(plain.host_name == "b.example");
  CHECK(plain.user == "me");
  CHECK(plain.port == 22);
  CHECK(plain.family == AF_UNSPEC);
  CHECK(plain.identity_files.size() == 7);
  CHECK(plain.identity_files[0] == "/home/me/.ssh/id_rsa");
  CHECK_FALSE(plain.identities_are_chosen);
  CHECK(plain.identity_agent == "");
  CHECK(plain.known_hosts.size() == 4);
  CHECK(plain.known_hosts[0] == "/home/me/.ssh/known_hosts");
  CHECK(plain.host_keys == HostKeyPolicy::kKnown);
  CHECK(plain.public_keys);
  CHECK(plain.gssapi);
  CHECK(plain.least_rsa_bits == 1024);
  CHECK(plain.host_key_types == "ssh-ed25519");
  CHECK(reason("") == "");
}

TEST_CASE("what the user states is taken over") {
  CHECK(config("port 2222\n").port == 2222);
  CHECK(config("addressfamily inet6\n").family == AF_INET6);
  CHECK(config("addressfamily inet\n").family == AF_INET);
  CHECK(config("identityagent none\n").identity_agent == "none");
  CHECK(config("identityagent ~/a.sock\n").identity_agent == "/home/me/a.sock");
  CHECK(config("identityagent SSH_AUTH_SOCK\n").identity_agent == "");
  CHECK(config("stricthostkeychecking accept-new\n").host_keys == HostKeyPolicy::kAcceptNew);
  for (const char* word : {"no", "off", "false"})
    CHECK(config("stricthostkeychecking " + std::string(word) + "\n").host_keys ==
          HostKeyPolicy::kOff);
  CHECK(config("stricthostkeychecking true\n").host_keys == HostKeyPolicy::kKnown);
  CHECK_FALSE(config("pubkeyauthentication no\n").public_keys);
  const SshConfig keys = config("identityfile ~/.ssh/%h_%r_%n_%p_%%\n");
  CHECK(keys.identities_are_chosen);
  CHECK(keys.identity_files[0] == "/home/me/.ssh/B.Example_me_b_22_%");
}

TEST_CASE("what changes trust or route and is beyond libssh is a reason for the system's ssh") {
  for (const std::string line : {"proxyjump gateway",
                                 "proxycommand nc %h %p",
                                 "hostkeyalias x",
                                 "identitiesonly yes",
                                 "certificatefile ~/x-cert.pub",
                                 "hostbasedauthentication yes",
                                 "revokedhostkeys /etc/ssh/revoked",
                                 "knownhostscommand /bin/x",
                                 "verifyhostkeydns true",
                                 "verifyhostkeydns ask",
                                 "checkhostip yes",
                                 "canonicalizehostname always",
                                 "pkcs11provider /lib/x.so",
                                 "bindaddress 10.0.0.1",
                                 "bindinterface eth1",
                                 "controlpath ~/.ssh/%C",
                                 "tunnel point-to-point",
                                 "identityfile ~/.ssh/%C",
                                 "identityfile ~other/key",
                                 "identityfile ${HOME}/key",
                                 "identityagent $SOCKET",
                                 "securitykeyprovider /lib/x.so"}) {
    const std::string words =
        reason_for_system_ssh(parse_ssh_words(line + "\n" + kPlain), surroundings());
    INFO(line);
    CHECK_FALSE(words.empty());
  }
  CHECK_FALSE(reason("", "/home/me/.ssh/id_ed25519-cert.pub").empty());
  for (const std::string line :
       {"proxyjump none", "proxycommand none", "controlpath none", "revokedhostkeys none"})
    CHECK(reason(line + "\n") == "");
}

TEST_CASE("a demand for more RSA bits than an int holds is not taken for none") {
  CHECK(config("requiredrsasize 4294967296\n").least_rsa_bits == INT_MAX);
  CHECK(config("requiredrsasize -1\n").least_rsa_bits == 0);
}

TEST_CASE("the gate is what a connection meets first, alike for all hosts behind it") {
  const auto gate = [](const std::string& more) {
    return login_gate(parse_ssh_words(more + "hostname B.Example\nport 2222\n"));
  };
  CHECK(gate("") == "b.example:2222");
  CHECK(gate("proxyjump none\nproxycommand none\n") == "b.example:2222");
  CHECK(gate("proxyjump gate\n") == "gate");
  CHECK(gate("proxyjump ada@gate:23,inner\n") == "gate:23");
  CHECK(gate("proxycommand ssh -W %h:%p gate\n") == "ssh -W %h:%p gate");
}

TEST_CASE("output that names no host is an error") {
  CHECK_THROWS_AS(parse_ssh_words(""), hv::Error);
  CHECK_THROWS_AS(parse_ssh_words("nonsense\n\n \n"), hv::Error);
}

TEST_CASE("without ssh its defaults hold") {
  const SshConfig defaults = default_ssh_config(surroundings());
  CHECK(defaults.host_name == "b");
  CHECK(defaults.user == "me");
  CHECK(defaults.port == 22);
  CHECK(defaults.known_hosts[0] == "/home/me/.ssh/known_hosts");
  CHECK(defaults.host_keys == HostKeyPolicy::kKnown);
}
