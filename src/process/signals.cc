// SPDX-License-Identifier: Apache-2.0
#include "src/process/signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "src/base/unique_fd.h"

namespace hv {
namespace {

volatile std::sig_atomic_t has_continued = 0;  // SIGCONT has come

}  // namespace

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

bool stop_as_the_kernel_would(int number) {
  has_continued = 0;
  struct sigaction noting {};
  struct sigaction fresh {};
  struct sigaction before {};
  struct sigaction of_continuing {};
  noting.sa_handler = [](int) { has_continued = 1; };
  fresh.sa_handler = SIG_DFL;
  sigset_t it, blocked;
  sigemptyset(&it);
  sigaddset(&it, number);
  ::sigaction(SIGCONT, &noting, &of_continuing);
  ::sigaction(number, &fresh, &before);
  ::pthread_sigmask(SIG_UNBLOCK, &it, &blocked);
  ::raise(number);
  ::pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
  ::sigaction(number, &before, nullptr);
  ::sigaction(SIGCONT, &of_continuing, nullptr);
  return has_continued != 0;
}

bool stop_for_terminal() {
  const UniqueFd terminal(::open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC));
  if (terminal) return stop_as_the_kernel_would(SIGTSTP);
  return ::kill(::getpid(), SIGSTOP) == 0;
}

std::string signal_text(int number) {
  const char* name = sigabbrev_np(number);
  if (!name) return "signal " + std::to_string(number);
  return std::string("SIG") + name + " (" + sigdescr_np(number) + ")";
}

}  // namespace hv
