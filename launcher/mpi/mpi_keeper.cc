// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/mpi_keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "launcher/agent/descendant_hunt.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// hvrun is gone: nothing of the job runs after 5 s, whatever --grace says.
constexpr auto kGraceOfOrphans = std::chrono::seconds(3);
// mpirun itself gives ranks their grace, Open MPI's before SIGTERM once more, and needs a moment.
constexpr auto kTimeForMpirun = std::chrono::seconds(2);
// For what its ranks had in /dev/shm and /tmp, once they are killed: some 10 ms.
constexpr auto kTimeToTidy = std::chrono::seconds(1);
constexpr int kPassMilliseconds = 5;

// Beyond the signals' numbers.
enum Word : unsigned char { kKill = 200, kPause, kGoOn, kEndIsNear };

struct Answer {
  int error = 0;   // it could not be started
  int status = 0;  // of waitpid, at the end
  char doing[200] = "";
};

void send_answer(int socket, const Answer& answer) {
  (void)!::send(socket, &answer, sizeof answer, MSG_NOSIGNAL);
}

bool read_answer(int socket, Answer* answer) {
  ssize_t got = 0;
  do {
    got = ::recv(socket, answer, sizeof *answer, 0);
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof *answer);
}

// In the keeper's process.
class Keeping {
 public:
  Keeping(UniqueFd socket, Duration grace) : socket_(std::move(socket)), grace_(grace) {}

  [[noreturn]] void run(const Command& command, const ChildOptions& streams) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    ::prctl(PR_SET_NAME, "hvrun-keeper");
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, nullptr);
    children_.reset(::signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK));
    const SpawnResult child = spawn_child(command, streams);
    Answer answer;
    answer.error = child.pid < 0 ? std::max(1, child.error) : 0;
    std::strncpy(answer.doing, child.doing.c_str(), sizeof answer.doing - 1);
    send_answer(socket_.get(), answer);
    if (child.pid < 0) ::_exit(1);
    mpirun_ = child.pid;
    ::setsid();  // what ends hvrun's process group spares the keeper
    keep_only(socket_.get(), children_.get());
    while (!is_over_) step();
    end_everything();
    answer = {};
    answer.status = status_;
    send_answer(socket_.get(), answer);
    ::_exit(0);
  }

 private:
  // Nobody waits for the end of a stream because of this process.
  static void keep_only(int socket, int children) {
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd <= 2 && null >= 0; ++fd) ::dup2(null, fd);
    const int most = static_cast<int>(::sysconf(_SC_OPEN_MAX));
    for (int fd = 3; fd < std::min(most, 65536); ++fd)
      if (fd != socket && fd != children) ::close(fd);
  }

  void step() {
    pollfd ready[2] = {{is_alone_ ? -1 : socket_.get(), POLLIN, 0}, {children_.get(), POLLIN, 0}};
    const timespec left = time_left(kill_at_.value_or(TimePoint::max()));
    ::ppoll(ready, 2, &left, nullptr);
    if (ready[0].revents) hear();
    signalfd_siginfo ignored;
    while (::read(children_.get(), &ignored, sizeof ignored) > 0) continue;
    reap();
    if (kill_at_ && now() >= *kill_at_) is_over_ = true;
  }

  void hear() {
    unsigned char word = 0;
    const ssize_t got = ::recv(socket_.get(), &word, 1, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      is_alone_ = true;
      pause_.go_on();
      ::kill(mpirun_, SIGTERM);
      kill_at_ = std::min(kill_at_.value_or(TimePoint::max()), now() + kGraceOfOrphans);
    } else if (word == kKill) {
      end_all_but_mpirun();
    } else if (word == kPause) {
      pause_.stop();
    } else if (word == kGoOn) {
      pause_.go_on();
    } else {
      if (word != kEndIsNear) ::kill(mpirun_, word);
      const bool ends = word == SIGTERM || word == SIGINT || word == SIGHUP || word == kEndIsNear;
      if (ends && !kill_at_) kill_at_ = now() + 2 * grace_ + kTimeForMpirun;
    }
  }

  // Open MPI's removes what its ranks have left behind, if it outlives them.
  void end_all_but_mpirun() {
    for (const ProcessEntry& process : own_descendants())
      if (process.pid != mpirun_ && !process.is_zombie()) ::kill(process.pid, SIGKILL);
    kill_at_ = std::min(kill_at_.value_or(TimePoint::max()), now() + kTimeToTidy);
  }

  // True while there are children.
  bool reap() {
    return reap_children([this](pid_t pid, int status) {
      if (pid != mpirun_) return;
      status_ = status;
      is_over_ = true;
    });
  }

  void end_everything() {
    DescendantHunt hunt;
    while (reap() && !hunt.step()) ::poll(nullptr, 0, kPassMilliseconds);
  }

  UniqueFd socket_, children_;
  const Duration grace_;
  pid_t mpirun_ = -1;
  int status_ = SIGKILL;  // as of waitpid
  bool is_over_ = false, is_alone_ = false;
  std::optional<TimePoint> kill_at_;
  DescendantPause pause_;
};

}  // namespace

MpiKeeper::MpiKeeper(const Command& mpirun, const ChildOptions& streams, Duration grace) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error(ErrorKind::kStart, "make a pair of sockets: " + errno_text(errno));
  socket_.reset(ends[0]);
  UniqueFd other(ends[1]);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  pid_ = ::fork();
  if (pid_ < 0) throw Error(ErrorKind::kStart, "fork: " + errno_text(errno));
  if (pid_ == 0) {
    socket_.reset();
    Keeping(std::move(other), grace).run(mpirun, streams);
  }
  other.reset();
  Answer answer;
  if (!read_answer(socket_.get(), &answer))
    throw Error(ErrorKind::kStart, "start mpirun: the process that starts it was killed");
  if (answer.error != 0)
    throw Error(ErrorKind::kStart,
                std::string("start mpirun: ") + answer.doing + ": " + errno_text(answer.error));
}

MpiKeeper::~MpiKeeper() = default;

void MpiKeeper::tell(unsigned char word) { (void)!::send(socket_.get(), &word, 1, MSG_NOSIGNAL); }
void MpiKeeper::pass_on(int signal) { tell(static_cast<unsigned char>(signal)); }
void MpiKeeper::expect_end() { tell(kEndIsNear); }
void MpiKeeper::pause() { tell(kPause); }
void MpiKeeper::go_on() { tell(kGoOn); }
void MpiKeeper::kill() { tell(kKill); }

std::optional<ExitStatus> MpiKeeper::take_end() {
  Answer answer;
  const bool is_told = read_answer(socket_.get(), &answer);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
  if (is_told) return ExitStatus::from_wait(answer.status);
  DescendantHunt hunt;
  while (reap_children([](pid_t, int) {}) && !hunt.step()) ::poll(nullptr, 0, kPassMilliseconds);
  return ExitStatus{true, SIGKILL, false};
}

}  // namespace hv::launcher
