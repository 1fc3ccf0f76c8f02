// SPDX-License-Identifier: Apache-2.0
#include "src/process/signals.h"

#include <pthread.h>

#include <cstring>

namespace hv {

SignalBlock::SignalBlock() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}

SignalBlock::~SignalBlock() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

void reset_signals_for_exec() {
  struct sigaction fresh {};
  fresh.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &fresh, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool is_ignored(int number) {
  struct sigaction current {};
  ::sigaction(number, nullptr, &current);
  return current.sa_handler == SIG_IGN;
}

std::string signal_text(int number) {
  const char* name = sigabbrev_np(number);
  if (!name) return "signal " + std::to_string(number);
  return std::string("SIG") + name + " (" + sigdescr_np(number) + ")";
}

}  // namespace hv
