// Messages between hvrun and its agents, one struct each. docs/architecture.md draws their order.
// SPDX-License-Identifier: Apache-2.0
//
// hvrun                          agent
//   <- Hello                       after its start; says what it is and what its host has
//   -> InventoryRequest            only where those facts do not suffice for the plan
//   <- InventoryReply              or that the program for it is not there: once more, with it
//   -> SetupRequest                the job; the agent opens its rank socket, a probe listener, the
//                                  master port
//   <- SetupReply
//   -> ProbeRequest                several hosts only: which addresses of the others can you reach?
//   <- ProbeReply
//   -> WiringRequest, <- WiringReply  where MPI programs are to find each other (mpi_wiring.h)
//   -> CheckRequest, <- CheckReply  of a dry run (check.h), which ends then
//   -> Launch                      ranks, program, environment; the agent checks program and folder
//   <- Ready | Problem             nothing has been started yet
//   -> Go
//   <- Started | Problem           all run, or no more are started; first words may come before
//   <- Output, Exited, FenceIn, RankLost, Note ...       -> Credit, Signal, Pause, StdinBytes,
//                                                        FenceOut, RankDied ...
//   <- SilenceNoted                -> Silence, before and after a Pause
//   <- StackReply, TensorStalled   -> StackRequest: where do your ranks stand? (stacks.h)
//   <- Problem                     at any time, instead of any answer: the agent is being ended on
//                                  its host
//   -> End                         end what still runs; -> Query while the cause of a failure is
//                                  looked for
//   <- Empty                       nothing of the job is left on this host; then the agent leaves
// Either side may send Ping at any time; the other answers Pong. Silence beyond lost_after means
// lost.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/wire/authentication.h"
#include "src/wire/codec.h"
#include "src/wire/inventory.h"
#include "src/wire/message_type.h"
#include "src/wire/step_times.h"

namespace hv::wire {

// What ranks wait in for others, and how one that has ended stands in its MPI.
// hvrun_init; and MPI, where hvrun has wired it: before its first barrier or fence is over, or
// later.
enum class Meeting : std::uint8_t { kHvrunInit, kMpiInit, kMpi };
constexpr std::size_t kMeetings = 3;

enum class MpiEnd : std::uint8_t { kInOrder, kNotBegun, kNotFinalized };

constexpr std::uint32_t kAgentProtocol = 4;
// Launch carries argv and environment, which the kernel bounds to a few MiB a process.
constexpr std::size_t kMaxAgentPayload = 64u << 20;

using Pairs = std::vector<std::pair<std::string, std::string>>;

struct Hello {
  static constexpr Type kType = Type::kHello;
  std::uint32_t protocol = kAgentProtocol;
  std::string build;  // hvrun's build id; both must be of one build
  std::uint32_t pid = 0;
  std::int64_t wall_clock_ns = 0;
  Facts facts;
  void fields(auto& a) { a(protocol, build, pid, wall_clock_ns, facts); }
};

// Ask the driver and hwloc: by the hvrun-inventory beside the agent, or by these bytes of one.
struct InventoryRequest {
  static constexpr Type kType = Type::kInventoryRequest;
  double timeout_s = 20;
  std::string whose_time{};  // behind it in words: " (HVRUN_INVENTORY_TIMEOUT)"
  std::string program{};     // run without leaving a file; empty: the one that is there
  void fields(auto& a) { a(timeout_s, whose_time, program); }
};
struct InventoryReply {
  static constexpr Type kType = Type::kInventoryReply;
  bool is_missing = false;  // there is no such program beside the agent
  std::string problem{};    // why nothing was learnt; empty: something was
  Inventory inventory{};
  void fields(auto& a) { a(is_missing, problem, inventory); }
};

struct SetupRequest {
  static constexpr Type kType = Type::kSetupRequest;
  static constexpr bool kIsSecret = true;
  std::string job_id;
  JobKey key;
  std::uint32_t host_id = 0;
  double lost_after_s = 15;
  double grace_s = 3;
  double stall_s = 60;           // a fence that waits so long is told; 0: never
  double stall_end_s = 0;        // one that waits so long ends the job; 0: never
  bool hold_port = false;        // reserve a master port (host of rank 0)
  std::int32_t master_port = 0;  // wanted; 0: any free one
  bool release_port = false;     // give it up again right before the ranks start (--no-hold-port)
  std::string port_range;        // that any free one, and the probes' port, is taken of; "": any
  bool probe = false;            // listen for the other agents' probes
  bool sweep = false;            // only end what an earlier agent of this job left, then say Empty
  bool slurm_signals_ranks = false;  // Slurm signals every process of a step, not its tasks alone
  void fields(auto& a) {
    a(job_id, key, host_id, lost_after_s, grace_s, stall_s, stall_end_s, hold_port, master_port,
      release_port, port_range, probe, sweep, slurm_signals_ranks);
  }
};

struct SetupReply {
  static constexpr Type kType = Type::kSetupReply;
  std::string agent_socket;
  std::uint32_t master_port = 0;
  std::uint32_t probe_port = 0;
  bool has_cgroup = false;
  bool shares_machine = false;   // another host of the job is this machine, too
  std::uint32_t first_here = 0;  // its id; no host's id: not known which
  void fields(auto& a) {
    a(agent_socket, master_port, probe_port, has_cgroup, shares_machine, first_here);
  }
};

struct ProbeTarget {
  std::uint32_t host_id = 0;
  std::uint32_t port = 0;
  std::vector<std::string> addresses;
  void fields(auto& a) { a(host_id, port, addresses); }
};
struct ProbeRequest {
  static constexpr Type kType = Type::kProbeRequest;
  std::vector<ProbeTarget> targets;
  double timeout_s = 2;
  void fields(auto& a) { a(targets, timeout_s); }
};
struct ProbeResult {
  std::uint32_t host_id = 0;
  std::vector<std::string> reached;  // addresses whose answer proved that host and the job's key
  std::string reason;                // when none was: why
  void fields(auto& a) { a(host_id, reached, reason); }
};
struct ProbeReply {
  static constexpr Type kType = Type::kProbeReply;
  std::vector<ProbeResult> results;
  void fields(auto& a) { a(results); }
};

enum class StdinMode : std::uint8_t { kNull = 0, kForwarded = 1 };

struct LaunchRank {
  std::uint32_t rank = 0;
  Pairs environment;  // the contract; over the common environment
  StdinMode stdin_mode = StdinMode::kNull;
  std::uint32_t program = 0;           // in Launch::programs
  std::vector<std::uint32_t> cores{};  // that it may run on; empty: those that the agent may
  void fields(auto& a) { a(rank, environment, stdin_mode, program, cores); }
};

struct Program {
  std::vector<std::string> argv;
  std::string directory;
  std::vector<std::string> environment;  // NAME=VALUE, over the common environment
  void fields(auto& a) { a(argv, directory, environment); }
};

// What PMI tells ranks of their job.
struct PmiWorld {
  std::uint32_t size = 0;
  std::string mapping;  // which ranks share a host, in PMI's words; empty: not told
  void fields(auto& a) { a(size, mapping); }
};

struct Launch {
  static constexpr Type kType = Type::kLaunch;
  std::vector<Program> programs;
  std::vector<std::string> environment;  // NAME=VALUE for every rank, in order
  // Names (or PREFIX_*) whose value is that of the agent's own login, unless environment names them
  // too (-x).
  std::vector<std::string> host_variables;
  std::vector<LaunchRank> ranks;
  bool pty = false;
  std::uint32_t pty_columns = 80;
  std::uint32_t pty_rows = 24;
  std::uint32_t credit_bytes = 1 << 20;  // what each rank may send before the first Credit
  std::optional<PmiWorld> pmi{};         // ranks get a PMI-1 server, which the agent is
  void fields(auto& a) {
    a(programs, environment, host_variables, ranks, pty, pty_columns, pty_rows, credit_bytes, pmi);
  }
};

struct Ready {
  static constexpr Type kType = Type::kReady;
  void fields(auto&) {}
};
// The agent could not do what it was asked; nothing of the job runs on this host afterwards.
struct Problem {
  static constexpr Type kType = Type::kProblem;
  std::string what;
  std::string hint;
  void fields(auto& a) { a(what, hint); }
};
struct Go {
  static constexpr Type kType = Type::kGo;
  void fields(auto&) {}
};
struct Started {
  static constexpr Type kType = Type::kStarted;
  std::vector<std::uint32_t> pids;  // in the order of Launch::ranks
  void fields(auto& a) { a(pids); }
};

struct Output {
  static constexpr Type kType = Type::kOutput;
  std::uint32_t rank = 0;
  std::uint8_t stream = 1;  // 1 stdout, 2 stderr
  bool end = false;         // the stream has ended; no more comes
  std::int64_t wall_clock_ns = 0;
  std::string bytes;
  void fields(auto& a) { a(rank, stream, end, wall_clock_ns, bytes); }
};
// hvrun -> agent: the rank may send so many more bytes of output. agent -> hvrun: so many bytes of
// Stdin have reached the rank; hvrun keeps at most kStdinWindow bytes on the way.
constexpr std::uint32_t kStdinWindow = 256 << 10;
struct Credit {
  static constexpr Type kType = Type::kCredit;
  std::uint32_t rank = 0;
  std::uint32_t bytes = 0;
  void fields(auto& a) { a(rank, bytes); }
};

// How an end that others take for a loss is told: by its agent to that host's ranks, by hvrun to
// all.
inline constexpr char kHadNotJoined[] = " and had not joined the job (hvrun_init)";

inline constexpr char kNotShutDown[] = " without hvrun_shutdown";

// Whether the kernel ended a process for want of memory.
enum class OutOfMemory : std::uint8_t {
  kNotAsked,
  kUnknown,  // neither the kernel's log nor the cgroup's count can be read
  kNo,
  kThisRank,
  kBesideIt,  // a process in the same cgroup, which may be one of the rank's own
};

// What the agent has found out about a rank that failed; the words are for people, and bounded.
struct PostMortem {
  static constexpr std::size_t kMostWords = 1000;
  std::string core{};  // where its core is, or why there is none; empty: nothing to say
  OutOfMemory out_of_memory = OutOfMemory::kNotAsked;
  std::string memory{};  // what that rests on
  void fields(auto& a) { a(core, out_of_memory, memory); }
};

struct Exited {
  static constexpr Type kType = Type::kExited;
  std::uint32_t rank = 0;
  bool by_signal = false;
  std::uint32_t code = 0;        // exit code or signal number
  bool signal_was_ours = false;  // this agent had sent that signal itself
  bool core_dumped = false;
  std::int64_t wall_clock_ns = 0;
  bool left_unannounced = false;       // it had joined the others and ended without goodbye
  bool never_joined = false;           // it ended without having joined the others at all
  StepTimes step_times{};              // the longest that it had told
  std::int64_t left_ns = 0;            // wall clock when it said goodbye; 0: it has not
  MpiEnd pmi_end = MpiEnd::kInOrder;   // where MPI is wired by PMI-1,
  MpiEnd pmix_end = MpiEnd::kInOrder;  // by PMIx
  PostMortem found{};
  void fields(auto& a) {
    a(rank, by_signal, code, signal_was_ours, core_dumped, wall_clock_ns, left_unannounced,
      never_joined, step_times, left_ns, pmi_end, pmix_end, found);
  }
  bool clean() const { return !by_signal && code == 0; }
  // What, beside its status, makes it a loss for others.
  const char* standing_words() const {
    if (never_joined) return kHadNotJoined;
    return left_unannounced && clean() ? kNotShutDown : "";
  }
};

struct Signal {
  static constexpr Type kType = Type::kSignal;
  std::int32_t number = 0;  // to every rank
  void fields(auto& a) { a(number); }
};
// hvrun itself is about to stop (Ctrl-Z) or goes on: ranks are stopped or continued, silence is
// allowed meanwhile.
struct Pause {
  static constexpr Type kType = Type::kPause;
  bool stopped = false;
  void fields(auto& a) { a(stopped); }
};
// To every host, around a Pause: its ranks may be silent from now on (allowed), or no more. So a
// rank that is stopped later, or goes on earlier, than one on another host does not take that for
// lost.
struct Silence {
  static constexpr Type kType = Type::kSilence;
  std::uint32_t number = 0;
  bool allowed = false;
  void fields(auto& a) { a(number, allowed); }
};
// The ranks have been told, and what came before it is done.
struct SilenceNoted {
  static constexpr Type kType = Type::kSilenceNoted;
  std::uint32_t number = 0;
  void fields(auto& a) { a(number); }
};
struct Stdin {
  static constexpr Type kType = Type::kStdin;
  std::uint32_t rank = 0;
  bool end = false;
  std::string bytes;
  void fields(auto& a) { a(rank, end, bytes); }
};
struct End {
  static constexpr Type kType = Type::kEnd;
  double grace_s = 3;  // SIGTERM, and after this SIGKILL; 0: SIGKILL at once
  void fields(auto& a) { a(grace_s); }
};
struct Empty {
  static constexpr Type kType = Type::kEmpty;
  std::vector<std::string> stuck;  // processes in state D that were not waited for: "pid 12 (name)"
  void fields(auto& a) { a(stuck); }
};
// Which of your ranks are on their way out but not reaped (PF_EXITING, or after their goodbye), and
// which stand still?
struct Query {
  static constexpr Type kType = Type::kQuery;
  std::uint32_t number = 0;
  void fields(auto& a) { a(number); }
};
struct QueryReply {
  static constexpr Type kType = Type::kQueryReply;
  std::uint32_t number = 0;
  std::vector<std::uint32_t> exiting;  // on their way out, or have left the job just now
  std::vector<std::uint32_t> absent;   // running, and waiting at no fence
  std::vector<std::uint32_t> stopped;  // state T: by SIGSTOP or a debugger
  // By Meeting: how long ranks have waited there; 0: none does.
  std::array<double, kMeetings> waited_s{};
  std::vector<std::uint32_t> in_pmi{}, in_pmix{};  // have begun MPI so, while not all have
  void fields(auto& a) { a(number, exiting, absent, stopped, waited_s, in_pmi, in_pmix); }
};

// All joined ranks of this host have come to the fence; what they put since the last one.
struct FencePut {
  std::uint32_t rank = 0;
  std::string key;
  std::string value;
  void fields(auto& a) { a(rank, key, value); }
};
struct FenceIn {
  static constexpr Type kType = Type::kFenceIn;
  std::uint32_t epoch = 0;
  std::uint32_t number = 0;
  std::vector<FencePut> puts;
  void fields(auto& a) { a(epoch, number, puts); }
};
struct FenceOut {
  static constexpr Type kType = Type::kFenceOut;
  std::uint32_t epoch = 0;
  std::uint32_t number = 0;
  std::vector<FencePut> puts;
  void fields(auto& a) { a(epoch, number, puts); }
};
// agent -> hvrun: ranks of this host have waited in a meeting for SetupRequest's stall_s, twice as
// long and so on; and once for its stall_end_s. Time in which they may be silent does not count;
// what they had waited before does.
struct FenceStalled {
  static constexpr Type kType = Type::kFenceStalled;
  double waited_s = 0;
  bool is_too_long = false;  // stall_end_s has passed
  Meeting meeting = Meeting::kHvrunInit;
  void fields(auto& a) { a(waited_s, is_too_long, meeting); }
};
// A rank says that it lost another one.
struct RankLost {
  static constexpr Type kType = Type::kRankLost;
  std::uint32_t by = 0;
  std::uint32_t rank = 0;
  std::string reason;
  void fields(auto& a) { a(by, rank, reason); }
};
// To every other agent, for its ranks: this rank has ended without goodbye.
struct RankDied {
  static constexpr Type kType = Type::kRankDied;
  std::uint32_t rank = 0;
  std::string reason;
  void fields(auto& a) { a(rank, reason); }
};

struct Ping {
  static constexpr Type kType = Type::kPing;
  std::int64_t wall_clock_ns = 0;
  void fields(auto& a) { a(wall_clock_ns); }
};
struct Pong {
  static constexpr Type kType = Type::kPong;
  std::int64_t sent_wall_clock_ns = 0;  // as in the Ping
  std::int64_t wall_clock_ns = 0;       // the answerer's
  void fields(auto& a) { a(sent_wall_clock_ns, wall_clock_ns); }
};
// Both sides send a Ping that often, so that the other hears of them well before lost_after.
inline Duration ping_interval(Duration lost_after) {
  return std::min<Duration>(lost_after / 5, std::chrono::seconds(3));
}
// Words of the agent for the operator.
struct Note {
  static constexpr Type kType = Type::kNote;
  std::string text;
  void fields(auto& a) { a(text); }
};

}  // namespace hv::wire
