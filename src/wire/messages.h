// Messages between hvrun and its agents, one struct each. docs/architecture.md draws their order.
// SPDX-License-Identifier: Apache-2.0
//
// hvrun                          agent
//   <- Hello                       the agent's build and its host's facts
//   -> InventoryRequest            only where the plan needs more facts
//   <- InventoryReply              or: hvrun-inventory is missing; hvrun asks again and sends it
//   -> SetupRequest                the job; the agent opens its rank socket, a probe listener, the
//                                  master port
//   <- SetupReply
//   -> ProbeRequest                several hosts only: the agent tests the others' addresses
//   <- ProbeReply
//   -> WiringRequest, <- WiringReply  only where hvrun wires MPI programs (mpi_wiring.h)
//   -> CheckRequest, <- CheckReply  in a dry run (check.h), which then ends
//   -> GraceAfterSignal            at any time, once it is known
//   -> Launch                      ranks, programs, environment; the agent checks programs and
//                                  directories
//   <- Ready | Problem             no rank has been started yet
//   -> Go
//   <- Started | Problem           all ranks run, or no more are started; Output may come before
//   <- Output, Result, Exited, Signal, FenceIn, RankLost, Note ...
//                              -> Credit, Signal, WindowSize, Pause, Stdin, FenceOut, RankDied ...
//   <- SilenceNoted                -> Silence, before and after a Pause
//   <- StackReply, TensorStalled, CallStalled
//                              -> StackRequest: the ranks' stacks (stacks.h)
//   <- QueryReply                  -> Query, while hvrun searches for the cause of a failure
//   <- StepsReply                  -> StepsRequest, before job.json of a running job is renewed
//   <- Problem                     at any time, instead of any reply: someone on the host ends the
//                                  agent
//   -> End                         end all ranks that still run
//   <- Empty                       no process of the job is left on this host; the agent then exits
// Either side may send Ping at any time; the other answers Pong. A side that receives nothing for
// lost_after counts the other as lost.
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

// Calls in which ranks wait for the others. The last two only where hvrun wires MPI.
enum class Meeting : std::uint8_t {
  kHvrunInit,
  kMpiInit,  // until MPI's first barrier or fence is over
  kMpi,      // any later one
};
constexpr std::size_t kMeetings = 3;

// State of MPI in a rank that has ended.
enum class MpiEnd : std::uint8_t { kInOrder, kNotBegun, kNotFinalized };

constexpr std::uint32_t kAgentProtocol = 4;
// Launch carries argv and environment, which the kernel bounds to a few MiB a process.
constexpr std::size_t kMaxAgentPayload = 64u << 20;

using Pairs = std::vector<std::pair<std::string, std::string>>;

// One process of a host for good: the kernel may give its pid to another later.
struct ProcessId {
  std::uint32_t pid = 0;         // 0: none
  std::uint64_t start_time = 0;  // in ticks since boot, as in /proc/PID/stat
  void fields(auto& a) { a(pid, start_time); }
};

struct Hello {
  static constexpr Type kType = Type::kHello;
  std::uint32_t protocol = kAgentProtocol;
  std::string build;  // build id; hvrun's must be the same
  ProcessId agent{};
  ProcessId guard{};
  std::string cgroup{};  // of both, as /proc/PID/cgroup has it
  std::int64_t wall_clock_ns = 0;
  Facts facts;
  void fields(auto& a) { a(protocol, build, agent, guard, cgroup, wall_clock_ns, facts); }
};

// Asks the driver and hwloc, through hvrun-inventory.
struct InventoryRequest {
  static constexpr Type kType = Type::kInventoryRequest;
  double timeout_s = 20;
  std::string whose_time{};  // origin of the limit, for messages: " (HVRUN_INVENTORY_TIMEOUT)"
  // hvrun-inventory's bytes, run from memory; empty: use the one in the agent's directory.
  std::string program{};
  void fields(auto& a) { a(timeout_s, whose_time, program); }
};
struct InventoryReply {
  static constexpr Type kType = Type::kInventoryReply;
  bool is_missing = false;  // the agent's directory has no hvrun-inventory
  std::string problem{};    // why there is no inventory; empty: there is one
  Inventory inventory{};
  void fields(auto& a) { a(is_missing, problem, inventory); }
};

// Identifies a lost agent for the agent that ends what it has left.
struct LostAgent {
  ProcessId agent{};
  ProcessId guard{};
  std::string cgroup{};
  bool had_cgroup_of_job = false;  // ends all of the job with certainty
  void fields(auto& a) { a(agent, guard, cgroup, had_cgroup_of_job); }
};

// After how many seconds waits of ranks for others are reported, and end the job. 0: never.
struct StallTimes {
  double warning_s = 60;  // a fence, a call of torch.distributed
  double end_s = 0;       // a fence
  double call_end_s = 0;  // a call of torch.distributed
  void fields(auto& a) { a(warning_s, end_s, call_end_s); }
};

struct SetupRequest {
  static constexpr Type kType = Type::kSetupRequest;
  static constexpr bool kIsSecret = true;
  std::string job_id;
  JobKey key;
  std::uint32_t host_id = 0;
  double lost_after_s = 15;
  double grace_s = 0;
  double grace_after_signal_s = 0;  // where the agent itself gets SIGTERM
  StallTimes stalls{};
  bool hold_port = false;        // reserve a master port (host of rank 0)
  std::int32_t master_port = 0;  // requested; 0: any free port
  bool release_port = false;     // release the port right before the ranks start (--no-hold-port)
  std::string port_range;        // for a free master port and the probe port; "": any
  bool probe = false;            // listen for the other agents' probes
  std::optional<LostAgent> sweep{};  // only kill leftovers of that one, then send Empty
  bool slurm_signals_ranks = false;  // Slurm signals all processes of a step, not only its tasks
  void fields(auto& a) {
    a(job_id, key, host_id, lost_after_s, grace_s, grace_after_signal_s, stalls, hold_port,
      master_port, release_port, port_range, probe, sweep, slurm_signals_ranks);
  }
};

struct SetupReply {
  static constexpr Type kType = Type::kSetupReply;
  std::string agent_socket;
  std::uint32_t master_port = 0;
  std::uint32_t probe_port = 0;
  bool has_cgroup = false;
  bool shares_machine = false;   // another host of the job is the same machine
  std::uint32_t first_here = 0;  // id of that host; no host's id: not known which
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
  std::vector<std::string> reached;  // addresses that proved to be that host, with the job's key
  std::string reason;                // why none was reached
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
  Pairs environment;  // the contract and more; beats Launch's and Program's environment
  StdinMode stdin_mode = StdinMode::kNull;
  std::uint32_t program = 0;           // index into Launch::programs
  std::vector<std::uint32_t> cores{};  // allowed ones; empty: all that the agent may use
  bool has_result_pipe = false;        // it gets HVRUN_RESULT_FD, and its Results are sent
  void fields(auto& a) { a(rank, environment, stdin_mode, program, cores, has_result_pipe); }
};

struct Program {
  std::vector<std::string> argv;
  std::string directory;
  std::vector<std::string> environment;  // NAME=VALUE; beats Launch's environment
  // The directory without symbolic links, where it has any on hvrun's machine; for messages.
  std::string real_directory{};
  void fields(auto& a) { a(argv, directory, environment, real_directory); }
};

// The job as PMI-1 describes it to ranks.
struct PmiWorld {
  std::uint32_t size = 0;
  std::string mapping;  // PMI_process_mapping: which ranks share a host; empty: omitted
  void fields(auto& a) { a(size, mapping); }
};

// Size of every rank's terminal (--pty): in Launch, and sent alone when hvrun's own has changed.
struct WindowSize {
  static constexpr Type kType = Type::kWindowSize;
  std::uint32_t columns = 80;
  std::uint32_t rows = 24;
  void fields(auto& a) { a(columns, rows); }
};

struct Launch {
  static constexpr Type kType = Type::kLaunch;
  std::vector<Program> programs;
  std::vector<std::string> environment;  // NAME=VALUE for every rank, in order
  // Names (or PREFIX_*) of variables whose value is the agent's own, unless `environment` has them
  // (-x).
  std::vector<std::string> host_variables;
  std::vector<LaunchRank> ranks;
  bool pty = false;
  WindowSize window{};                   // with pty
  std::uint32_t credit_bytes = 1 << 20;  // output of each rank before its first Credit
  std::optional<PmiWorld> pmi{};         // the agent serves PMI-1 to the ranks
  std::uint32_t umask = 022;             // of every rank: hvrun's
  void fields(auto& a) {
    a(programs, environment, host_variables, ranks, pty, window, credit_bytes, pmi, umask);
  }
};

struct Ready {
  static constexpr Type kType = Type::kReady;
  void fields(auto&) {}
};
// The agent could not fulfil a request; no process of the job runs on this host afterwards.
struct Problem {
  static constexpr Type kType = Type::kProblem;
  std::string what;
  std::string hint;
  bool leaves_grace = false;  // its agent got SIGTERM: the ranks have all of --grace to end
  void fields(auto& a) { a(what, hint, leaves_grace); }
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
  bool end = false;         // the stream has ended
  std::int64_t wall_clock_ns = 0;
  std::string bytes;
  void fields(auto& a) { a(rank, stream, end, wall_clock_ns, bytes); }
};
// What rank 0 wrote into its result pipe (HVRUN_RESULT_FD), for the descriptor of --result-fd.
struct Result {
  static constexpr Type kType = Type::kResult;
  static constexpr std::size_t kMostBytes = 64 << 10;
  static constexpr std::uint32_t kFirstCredit = 1 << 20;  // bytes before its first Credit
  bool end = false;                                       // every process has closed the pipe
  std::string bytes;
  void fields(auto& a) { a(end, bytes); }
};
// hvrun -> agent: the rank may send this many more bytes of output, or of Results, which have
// credit of their own. agent -> hvrun: this many bytes of Stdin have reached the rank; hvrun keeps
// at most kStdinWindow bytes in flight.
constexpr std::uint32_t kStdinWindow = 256 << 10;
struct Credit {
  static constexpr Type kType = Type::kCredit;
  std::uint32_t rank = 0;
  std::uint32_t bytes = 0;
  bool is_for_results = false;
  void fields(auto& a) { a(rank, bytes, is_for_results); }
};

// Texts for an end that other ranks see as a loss. Its agent uses them for ranks of its host, hvrun
// for all ranks.
inline constexpr char kHadNotJoined[] = " and had not joined the job (hvrun_init)";

inline constexpr char kNotShutDown[] = " without hvrun_shutdown";

// Did the kernel kill a process because memory ran out?
enum class OutOfMemory : std::uint8_t {
  kNotAsked,
  kUnknown,  // neither the kernel's log nor the cgroup's counter can be read
  kNo,
  kThisRank,
  kBesideIt,  // a process in the same cgroup, perhaps a child of the rank
};

// Findings of the agent about a failed rank, as bounded texts for people.
struct PostMortem {
  static constexpr std::size_t kMostWords = 1000;
  std::string core{};  // path of its core file, or why there is none; empty: no core expected
  OutOfMemory out_of_memory = OutOfMemory::kNotAsked;
  std::string memory{};  // evidence for out_of_memory
  void fields(auto& a) { a(core, out_of_memory, memory); }
};

// What a rank did with the SIGTERM that ends it.
enum class SigtermUse : std::uint8_t {
  kDefault,
  kHandled,  // by its own process
  kIgnored,
  kHandledByDescendant  // its own process has not got it: it does not catch it
};

// What ended a rank at the end of its job.
struct RankTermination {
  SigtermUse use = SigtermUse::kDefault;  // where its end has begun
  double grace_s = 0;  // between SIGTERM and this agent's SIGKILL; 0: none was sent after a grace
  void fields(auto& a) { a(use, grace_s); }
};

struct Exited {
  static constexpr Type kType = Type::kExited;
  std::uint32_t rank = 0;
  bool by_signal = false;
  std::uint32_t code = 0;        // exit code or signal number
  bool signal_was_ours = false;  // this agent sent that signal
  bool core_dumped = false;
  std::int64_t wall_clock_ns = 0;
  bool left_unannounced = false;       // it had joined, and ended without a leave notice
  bool never_joined = false;           // it ended without hvrun_init
  StepTimes step_times{};              // of its longest report
  std::int64_t left_ns = 0;            // wall clock at its leave notice (hvrun_shutdown); 0: none
  MpiEnd pmi_end = MpiEnd::kInOrder;   // where hvrun wires MPI by PMI-1
  MpiEnd pmix_end = MpiEnd::kInOrder;  // where hvrun wires MPI by PMIx
  PostMortem found{};
  RankTermination termination{};
  bool may_hold_text = false;  // its program may have had text in a buffer, as C's printf has
  void fields(auto& a) {
    a(rank, by_signal, code, signal_was_ours, core_dumped, wall_clock_ns, left_unannounced,
      never_joined, step_times, left_ns, pmi_end, pmix_end, found, termination, may_hold_text);
  }
  bool clean() const { return !by_signal && code == 0; }
  // Why other ranks see the end as a loss, apart from its status.
  const char* standing_words() const {
    if (never_joined) return kHadNotJoined;
    return left_unannounced && clean() ? kNotShutDown : "";
  }
};

// hvrun -> agent: for every rank. agent -> hvrun: a signal for the ranks that the agent has got
// itself.
struct Signal {
  static constexpr Type kType = Type::kSignal;
  std::int32_t number = 0;
  void fields(auto& a) { a(number); }
};
// hvrun is about to stop (Ctrl-Z), or has continued: the agent stops or continues its ranks, and
// does not expect heartbeats meanwhile.
struct Pause {
  static constexpr Type kType = Type::kPause;
  bool stopped = false;
  void fields(auto& a) { a(stopped); }
};
// To every host, before and after a Pause: ranks may miss heartbeats from now on (allowed), or must
// send them again. Otherwise a rank that stops later, or continues earlier, than one on another
// host would count that rank as lost.
struct Silence {
  static constexpr Type kType = Type::kSilence;
  std::uint32_t number = 0;
  bool allowed = false;
  void fields(auto& a) { a(number, allowed); }
};
// The agent has notified its ranks, and has done all that hvrun requested before.
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
  double grace_s = 0;         // between SIGTERM and SIGKILL; 0: SIGKILL at once
  bool by_scheduler = false;  // the scheduler sends SIGTERM to this host, too, or has sent it
  void fields(auto& a) { a(grace_s, by_scheduler); }
};
// What SetupRequest says of it, as the scheduler's answer makes it.
struct GraceAfterSignal {
  static constexpr Type kType = Type::kGraceAfterSignal;
  double grace_s = 0;
  void fields(auto& a) { a(grace_s); }
};
struct Empty {
  static constexpr Type kType = Type::kEmpty;
  std::vector<std::string> stuck;  // "pid 12 (name)": left behind in state D
  // After a sweep, of the same form: perhaps the job's, which nothing proves.
  std::vector<std::string> may_remain{};
  void fields(auto& a) { a(stuck, may_remain); }
};
// Requests the state of the agent's ranks.
struct Query {
  static constexpr Type kType = Type::kQuery;
  std::uint32_t number = 0;
  void fields(auto& a) { a(number); }
};
struct QueryReply {
  static constexpr Type kType = Type::kQueryReply;
  std::uint32_t number = 0;
  std::vector<std::uint32_t> exiting;  // PF_EXITING, or their leave notice has just come
  std::vector<std::uint32_t> absent;   // running, and waiting at no fence
  std::vector<std::uint32_t> stopped;  // state T: by SIGSTOP or a debugger
  // By Meeting: the longest wait of a rank; 0: no rank waits.
  std::array<double, kMeetings> waited_s{};
  // Ranks that have begun MPI by PMI-1 or PMIx, as long as not all have.
  std::vector<std::uint32_t> in_pmi{}, in_pmix{};
  void fields(auto& a) { a(number, exiting, absent, stopped, waited_s, in_pmi, in_pmix); }
};

// Requests the step times of the agent's ranks, for the record of a running job.
struct StepsRequest {
  static constexpr Type kType = Type::kStepsRequest;
  void fields(auto&) {}
};
struct RankSteps {
  std::uint32_t rank = 0;
  StepTimes times{};  // of its longest report, as in Exited
  void fields(auto& a) { a(rank, times); }
};
struct StepsReply {
  static constexpr Type kType = Type::kStepsReply;
  std::vector<RankSteps> ranks;  // those that have reported steps
  void fields(auto& a) { a(ranks); }
};

struct FencePut {
  std::uint32_t rank = 0;
  std::string key;
  std::string value;
  void fields(auto& a) { a(rank, key, value); }
  std::size_t payload_bytes() const {
    return 3 * sizeof(std::uint32_t) + key.size() + value.size();
  }
};
// All joined ranks of this host have come to the fence. puts: since their last fence.
struct FenceIn {
  static constexpr Type kType = Type::kFenceIn;
  std::uint32_t epoch = 0;
  std::uint32_t number = 0;
  std::vector<FencePut> puts;
  void fields(auto& a) { a(epoch, number, puts); }
};
// The fence is over. puts: of all ranks.
struct FenceOut {
  static constexpr Type kType = Type::kFenceOut;
  std::uint32_t epoch = 0;
  std::uint32_t number = 0;
  std::vector<FencePut> puts;
  void fields(auto& a) { a(epoch, number, puts); }
  // Of the encoded message: its limit is kMaxAgentPayload.
  std::size_t payload_bytes() const {
    std::size_t bytes = 3 * sizeof(std::uint32_t);
    for (const FencePut& put : puts) bytes += put.payload_bytes();
    return bytes;
  }
};
// Ranks of this host have waited in a Meeting for StallTimes's warning_s, twice as long and so on;
// or for its end_s, sent once. Time in which ranks may miss heartbeats (Silence) does not
// count; waits before it do.
struct FenceStalled {
  static constexpr Type kType = Type::kFenceStalled;
  double waited_s = 0;
  bool is_too_long = false;  // StallTimes's end_s has passed
  Meeting meeting = Meeting::kHvrunInit;
  void fields(auto& a) { a(waited_s, is_too_long, meeting); }
};
// A rank reports that it lost another one.
struct RankLost {
  static constexpr Type kType = Type::kRankLost;
  std::uint32_t by = 0;
  std::uint32_t rank = 0;
  std::string reason;
  void fields(auto& a) { a(by, rank, reason); }
};
// To all other agents, for their ranks: this rank ended without a leave notice.
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
  std::int64_t wall_clock_ns = 0;       // of the side that answers
  void fields(auto& a) { a(sent_wall_clock_ns, wall_clock_ns); }
};
// Interval between the Pings of either side, well below lost_after.
inline Duration ping_interval(Duration lost_after) {
  return std::min<Duration>(lost_after / 5, std::chrono::seconds(3));
}
// A message of the agent for the operator.
struct Note {
  static constexpr Type kType = Type::kNote;
  std::string text;
  bool is_detail = false;  // for --verbose only
  bool is_warning = false;
  void fields(auto& a) { a(text, is_detail, is_warning); }
};

}  // namespace hv::wire
