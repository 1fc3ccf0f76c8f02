// hvrun-pmix: a PMIx server for the ranks of one host. hvrun-agent starts it for MPI programs that
// use PMIx. It ends when the agent hangs up.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <mutex>
#include <string>

#include "hvrun_version.h"
#include "launcher/pmix/job_map.h"
#include "launcher/pmix/pmix_server.h"
#include "src/base/blocking_write.h"
#include "src/base/environment.h"
#include "src/base/unique_fd.h"
#include "src/process/birth.h"
#include "src/wire/frame.h"
#include "src/wire/mpi_wiring.h"

namespace hv::launcher {
namespace {

// The connection to the agent that has started this process: frames over a Unix socket.
class AgentLink {
 public:
  explicit AgentLink(UniqueFd socket) : socket_(std::move(socket)) {}

  // Any thread may call it. Blocks while the agent does not read. False: the agent is gone.
  template <class Message>
  bool send(const Message& message) {
    const std::string bytes = encode_frame_of(message);
    const std::lock_guard lock(writing_);
    return write_all(socket_.get(), bytes) == 0;
  }
  // Only one thread may call it. Blocks until a whole frame has come. False: the agent is gone, or
  // has sent bytes that are no frame.
  bool receive(Frame* frame) {
    char bytes[64 << 10];
    while (!parser_.next(frame)) {
      const ssize_t got = ::read(socket_.get(), bytes, sizeof bytes);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0 || !parser_.feed({bytes, static_cast<std::size_t>(got)})) return false;
    }
    return true;
  }

 private:
  UniqueFd socket_;
  std::mutex writing_;
  FrameParser parser_{wire::kMaxAgentPayload};
};

int explain_usage() {
  std::fputs("hvrun-pmix is started by hvrun-agent; of its own it has --version only.\n", stderr);
  return 2;
}

// Moves the agent's socket away from standard input: the library may read standard input and print
// to standard output, which becomes standard error.
UniqueFd take_socket() {
  UniqueFd socket(::fcntl(0, F_DUPFD_CLOEXEC, 3));
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::dup2(null.get(), 0);
  ::dup2(2, 1);
  return socket;
}

template <class Message>
bool decode_as(const Frame& frame, Message* message) {
  return frame.type == static_cast<std::uint8_t>(Message::kType) && decode(frame.payload, message);
}

int serve(AgentLink& link) {
  Frame frame;
  wire::PmixJob job;
  if (!link.receive(&frame) || !decode_as(frame, &job) || !is_well_formed(job)) return 3;
  PmixServer server(
      job, [&link](const wire::PmixFence& fence) { link.send(fence); },
      [&link](const wire::PmixClient& client) { link.send(client); });
  const wire::PmixReady ready = server.start("");
  if (!link.send(ready)) return 3;
  wire::PmixFence fence;
  while (link.receive(&frame) && decode_as(frame, &fence)) server.pass(fence);
  // Skips destructors: the library's threads still run.
  std::fflush(nullptr);
  ::_exit(ready.problem.empty() ? 0 : 3);
}

int run(int argc, char** argv) {
  const std::string word = argc == 2 ? argv[1] : "";
  if (word == "--version") {
    std::puts("hvrun-pmix " HVRUN_VERSION_TEXT " " HVRUN_BUILD_ID);
    return 0;
  }
  struct stat input {};
  if (word != "--serve" || ::fstat(0, &input) != 0 || !S_ISSOCK(input.st_mode))
    return explain_usage();
  // Signals that end the job are meant for the ranks. The agent hangs up once no rank is left.
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
  ::umask(0077);
  // Uncompressed maps: clients of every version can read them.
  set_in_process_if_unset("PMIX_MCA_preg", "^compress");
  // Report a fence of this host's ranks like any other: the first fence shows the agent that all
  // ranks have begun.
  set_in_process_if_unset("PMIX_MCA_pmix_server_fence_localonly_opt", "0");
  AgentLink link(take_socket());
  return serve(link);
}

}  // namespace
}  // namespace hv::launcher

int main(int argc, char** argv) {
  hv::open_missing_streams();
  // The agent may have started this program from memory: then its file has no name.
  ::prctl(PR_SET_NAME, "hvrun-pmix");
  try {
    return hv::launcher::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hvrun-pmix: %s\n", error.what());
    return 3;
  }
}
