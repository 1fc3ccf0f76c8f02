// What another launcher says: a PMI server's answers ('P'), the variables of a Slurm step ('S').
// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>

#include "src/base/text.h"
#include "src/base/unique_fd.h"
#include "src/rendezvous/pmi_exchange.h"
#include "src/rendezvous/slurm_step.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;

namespace {

constexpr int kRanks = 3;
constexpr std::size_t kMostAnswers = 64 << 10;  // what a socket holds unread

// All answers lie ready, then the launcher hangs up.
void be_rank(std::string_view answers) {
  int ends[2];
  HV_CHECK(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "a pair of sockets");
  UniqueFd ours(ends[0]), launchers(ends[1]);
  if (::send(launchers.get(), answers.data(), answers.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
    return;
  ::shutdown(launchers.get(), SHUT_WR);
  std::unique_ptr<Exchange> exchange;
  if (!PmiExchange::open(std::move(ours), 1, kRanks, &exchange).ok()) return;
  std::vector<std::string> all;
  const Status status = exchange->gather("mine", {std::chrono::milliseconds(100)}, &all);
  HV_CHECK(!status.ok() || all.size() == kRanks, "an answer of every rank");
}

void be_task(std::string_view text) {
  std::vector<std::string> entries;
  for (const std::string& line : split(text, '\n'))
    if (line.find('=') != std::string::npos && line.find('\0') == std::string::npos)
      entries.push_back(line);
  const auto environment = Environment::from_entries(entries);
  (void)hidden_gpus(environment);
  const auto step = slurm_step(environment);
  if (!step) return;
  HV_CHECK(step->size > 1 && step->rank >= 0 && step->rank < step->size, "a task of several");
  HV_CHECK(step->name.find('/') == std::string::npos, "a name that is safe in a path");
  HV_CHECK(step->name.size() <= 200, "a name of bounded length");
  HV_CHECK(!ports_of_step(step->name, {}).empty(), "ports");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > kMostAnswers) return 0;
  const std::string_view text = fuzz::view(data, size).substr(1);
  if (data[0] == 'P')
    be_rank(text);
  else
    be_task(text);
  return 0;
}
