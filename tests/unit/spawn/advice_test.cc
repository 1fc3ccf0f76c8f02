// Tests of what is advised when a host cannot be reached.
// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "launcher/spawn/ssh/ssh_advice.h"
#include "src/base/text.h"
#include "tests/unit/spawn/trial.h"

using namespace hv::launcher;
using namespace hv::launcher::trial;

TEST_CASE("what the system's ssh says is answered with what mends it") {
  const std::pair<const char*, const char*> cases[] = {
      {"ssh: Could not resolve hostname w7: Name or service not known", "check the spelling of w7"},
      {"ssh: Could not resolve hostname gate: Name or service not known\nclosed",
       "check the spelling of gate,"},
      {"ssh: connect to host w7 port 22: Connection refused", "sshd runs on w7"},
      {"ssh: connect to host w7 port 22: No route to host", "has a route to it"},
      {"ssh: connect to host w7 port 22: Network is unreachable", "has a route to it"},
      {"ssh: connect to host w7 port 22: Connection timed out", "firewall"},
      {"ada@w7: Permission denied (publickey,password).", "ssh -o BatchMode=yes w7 true"},
      {"Host key verification failed.", "--ssh-accept-new"},
      {"Received disconnect from w7: 2: Too many authentication failures", "-i"},
  };
  for (const auto& [words, advice] : cases) {
    CAPTURE(words);
    CHECK(contains(advice_for(words, {"w7"}), advice));
  }
}

TEST_CASE("a changed key is never answered with the advice for an unknown one") {
  const std::string words =
      "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.";
  const std::string advice = advice_for(words, {"w7"});
  CHECK_FALSE(contains(advice, "--ssh-accept-new"));
  CHECK(contains(advice, "ssh-keygen -R w7"));
}

TEST_CASE(
    "the advice for a changed key takes the name that ssh says, an alias or one with a port") {
  for (const std::string name : {"[w7]:2222", "the-cluster"}) {
    const std::string words =
        "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\r\nOffending ED25519 key in /k:3\r\n"
        "Host key for " +
        name +
        " has changed and you have requested strict checking.\r\n"
        "Host key verification failed.\r\n";
    const std::string advice = advice_for(words, {"w7", 2222});
    CAPTURE(advice);
    CHECK(contains(advice, "ssh-keygen -R " + hv::shell_quote(name)));
  }
}

TEST_CASE("a port that was given is in the commands that are advised") {
  const std::string unknown = advice_for("Host key verification failed.", {"w7", 2222});
  CHECK(contains(unknown, "'ssh -p 2222 w7'"));
  CHECK(contains(advice_for("Permission denied (publickey).", {"w7", 2222}), "-p 2222 w7 true"));
  CHECK(contains(unknown_key_advice({"w7"}), "'ssh w7'"));
}

TEST_CASE("--ssh-accept-new is not advised where it would be refused") {
  const std::string advice = advice_for("Host key verification failed.", {"w7", 0, false});
  CHECK_FALSE(contains(advice, "--ssh-accept-new"));
  CHECK(contains(advice, "'ssh w7'"));
}

TEST_CASE("what a host that just comes up makes ssh say may pass, and a refusal does not") {
  for (const std::string words : {
           "ssh: Could not resolve hostname w-0.w: Name or service not known",
           "ssh: Could not resolve hostname w-0.w: Temporary failure in name resolution",
           "ssh: connect to host w-0 port 22: Connection refused",
           "ssh: connect to host w-0 port 22: No route to host",
           "ssh: connect to host w-0 port 22: Connection timed out",
           "kex_exchange_identification: Connection closed by remote host",
           "kex_exchange_identification: read: Connection reset by peer",
       })
    CHECK(may_pass_by_itself("ssh ended with exit code 255: " + words));
  for (const std::string words :
       {"", "Host key verification failed.", "ada@w-0: Permission denied (publickey,password)."})
    CHECK_FALSE(may_pass_by_itself(words));
}

TEST_CASE("a login that sshd refuses before it asks who comes is advised on by its limits") {
  for (const std::string words : {
           "kex_exchange_identification: Connection closed by remote host",
           "kex_exchange_identification: read: Connection reset by peer",
           "ssh_exchange_identification: Connection closed by remote host",
           "Connection reset by 10.0.0.1 port 22",
           "banner exchange: Connection to 10.0.0.1 port 22: Broken pipe",
           "Socket error: disconnected",
           "Socket error: Connection reset by peer",
           "Protocol mismatch: Exceeded MaxStartups",
       }) {
    CAPTURE(words);
    CHECK(is_refused_login(words));
    CHECK(contains(advice_for(words, {"w7"}), "MaxStartups"));
  }
  for (const std::string words : {
           "", "ada@w7: Permission denied (publickey).", "Host key verification failed.",
           "ssh: connect to host w7 port 22: Connection refused",
           "kex error : no match for method encryption client->server",
           "Connection closed by 10.0.0.1 port 22",  // the login may have been judged
       }) {
    CAPTURE(words);
    CHECK_FALSE(is_refused_login(words));
  }
}

TEST_CASE("a proxy that fails is no busy sshd, and the advice is for its own reason") {
  const std::string end = "\nkex_exchange_identification: Connection closed by remote host\n";
  const auto advice = [&end](const std::string& words) {
    CHECK_FALSE(is_refused_login(words + end));
    return advice_for(words + end, {"w7"});
  };
  CHECK(contains(advice("ssh: connect to host gate port 2222: Connection refused"),
                 "see that sshd runs on gate"));
  CHECK(contains(advice("channel 0: open failed: connect failed: Connection refused\n"
                        "stdio forwarding failed"),
                 "see that sshd runs on w7"));
  CHECK(contains(advice("channel 0: open failed: connect failed: No route to host"), "route"));
  CHECK(contains(advice("No ED25519 host key is known for gate and you have requested strict "
                        "checking.\nHost key verification failed."),
                 "that of gate: if that is a jump host, write 'StrictHostKeyChecking accept-new'"));
  CHECK(contains(advice("ssh: Could not resolve hostname nogate: Name or service not known"),
                 "check the spelling of nogate"));
  for (const char* words : {"sh: 1: exec: nc: not found", "jumphost loop via node1"})
    CHECK_FALSE(contains(advice(words), "MaxStartups"));
}

TEST_CASE(
    "a changed key that ssh would take is refused with the reason, and with what to configure") {
  const std::string words =
      "@@@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @@@\nHost key for w7 has changed and "
      "you "
      "have requested strict checking.";
  const std::string off = advice_for(words, {"w7", 0, true, true});
  for (const char* part : {"ssh would go on (StrictHostKeyChecking no)", "hvrun does not: ",
                           "'UserKnownHostsFile /dev/null'", "ssh-keygen -R w7"})
    CHECK(contains(off, part));
  CHECK_FALSE(contains(advice_for(words, {"w7"}), "/dev/null"));
}

TEST_CASE("words that are not known get no advice") {
  CHECK(advice_for("", {"w7"}) == "");
  CHECK(advice_for("segmentation fault in the moon phase", {"w7"}) == "");
}

TEST_CASE("a command that is advised survives a shell, whatever the host or file is called") {
  const std::string advice = changed_key_advice("w7; rm -rf /", "/home/a b/known_hosts", false);
  CHECK(contains(advice, "-R 'w7; rm -rf /'"));
  CHECK(contains(advice, "-f '/home/a b/known_hosts'"));
}

TEST_CASE("a failed connect is advised on by its reason, any other by a trial") {
  CHECK(contains(connect_advice(ECONNREFUSED, "w7"), "(-p)"));
  CHECK(contains(connect_advice(EHOSTUNREACH, "w7"), "route"));
  CHECK(contains(connect_advice(ENETUNREACH, "w7"), "route"));
  CHECK(contains(connect_advice(ETIMEDOUT, "w7"), "firewall"));
  CHECK(connect_advice(EIO, "w7") == "try 'ssh w7 true'");
}
