// A rank joins no agent of another user.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "src/net/socket.h"
#include "src/rendezvous/agent_store.h"
#include "src/wire/authentication.h"

using namespace hv;

TEST_CASE("an agent's socket that belongs to another user is refused before a word is said") {
  if (::geteuid() != 0) {
    MESSAGE("skipped: becoming another user needs root");
    return;
  }
  constexpr uid_t kOther = 65534;
  const std::string name = "@hvrun-owner-" + random_hex(8);
  int said[2];
  REQUIRE(::pipe2(said, O_CLOEXEC) == 0);
  const UniqueFd heard(said[0]);
  UniqueFd saying(said[1]);
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    UniqueFd listener;
    if (::setresuid(kOther, kOther, kOther) == 0 && listen_unix(name, &listener).ok())
      (void)!::write(saying.get(), "L", 1);
    for (;;) ::pause();
  }
  saying.reset();
  char byte = 0;
  CHECK(::read(heard.get(), &byte, 1) == 1);
  std::unique_ptr<AgentStore> store;
  const Status status = AgentStore::join(name, 0, 0, std::chrono::milliseconds(2000), &store);
  ::kill(stranger, SIGKILL);
  ::waitpid(stranger, nullptr, 0);
  CHECK(status.code == StatusCode::kContract);
  CHECK(status.message.find("belongs to user 65534") != std::string::npos);
  CHECK(store == nullptr);
}
