// SPDX-License-Identifier: Apache-2.0
#include "src/process/signals.h"

#include <cstring>

namespace hv {

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
