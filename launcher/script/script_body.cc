// SPDX-License-Identifier: Apache-2.0
//
// The guard in bash. A trap runs only between commands, so hvrun is in the background and waited
// for again whenever a trap has run meanwhile; bash remembers how it ended. SIGTERM is the time
// limit or somebody's scancel, and a job that was cancelled must not come back: Slurm says which it
// is, elsewhere it is not the limit before the time that was announced (`warned`) has passed.
#include "launcher/script/script_body.h"

#include <algorithm>

namespace hv::launcher {
namespace {

std::string replaced(std::string text, const std::string& name, const std::string& value) {
  for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += value.size())
    text.replace(at, name.size(), value);
  return text;
}

constexpr const char* kState = R"(hvrun='' traps=0 warned=''
pass() { traps=$((traps + 1)); [ -z "$hvrun" ] || kill -@PASSED@ "$hvrun" 2>/dev/null || :; }
warn() { warned=${warned:-$(date +%s)}; pass; }
trap warn @SIGNAL@
)";

constexpr const char* kOverByClock =
    R"([ -n "$warned" ] && [ $(($(date +%s) - warned)) -ge @SECONDS@ ])";

constexpr const char* kRequeue = R"(requeued='' cancelled='' restarts=@COUNT@
requeue() {
  if [ "$restarts" -ge @MOST@ ]; then
    echo "job script: not put back into the queue: it has come back $restarts times" >&2
  elif @COMMAND@; then
    requeued=1
    echo "job script: put back into the queue" >&2
  else
    echo "job script: could not be put back into the queue: see the line above" >&2
  fi
}
terminate() {
  traps=$((traps + 1))
  if @OVER@; then [ -n "$cancelled$requeued" ] || requeue; fi
  cancelled=1
}
trap terminate TERM
)";

// In a file in the job's directory where the scheduler does not say. It is written when a run
// begins, so that a run after a host's failure, which the scheduler itself begins, counts, too.
constexpr const char* kCounter = R"(counter=.hvrun-restarts.@JOB@
requeued='' cancelled='' counted=1 restarts=$(cat "$counter" 2>/dev/null || echo 0)
echo $((restarts + 1)) >"$counter" || counted=''
)";

constexpr const char* kWait = R"(@LINE@ &
hvrun=$!
[ -z "$warned" ] || kill -@PASSED@ "$hvrun" 2>/dev/null || :
code=0 seen=-1
while [ "$seen" != "$traps" ]; do
  seen=$traps code=0
  wait "$hvrun" || code=$?
done
)";

// Ends its own sleep, which would keep the job's output open.
constexpr const char* kAlarm = R"((
  sleep @ALARM@ &
  trap 'kill "$!"' TERM
  wait "$!" && kill -@SIGNAL@ $$
) >/dev/null 2>&1 &
clock=$!
)";

constexpr const char* kEndOfCounter = R"([ -n "$requeued" ] || [ -z "$counted" ] || rm -f "$counter"
)";

// The system's reason stands where the run began.
constexpr const char* kUncounted = R"(  elif [ -z "$counted" ]; then
    echo "job script: not put back into the queue: $counter could not be written" >&2
  elif @COMMAND@)";

std::string requeue_text(const Guard& guard) {
  const Requeue& requeue = *guard.requeue;
  std::string text;
  std::string rest = kRequeue;
  if (requeue.count.empty()) {
    text += replaced(kCounter, "@JOB@", requeue.job_id);
    rest.erase(0, rest.find('\n') + 1);
    rest = replaced(rest, "  elif @COMMAND@", kUncounted);
  }
  rest = replaced(rest, "@COUNT@", requeue.count);
  rest = replaced(rest, "@MOST@", std::to_string(requeue.most));
  rest = replaced(rest, "@COMMAND@", requeue.command);
  rest = replaced(rest, "@OVER@", requeue.is_over.empty() ? kOverByClock : requeue.is_over);
  // The scheduler's clock and this node's may be a second apart.
  const auto seconds = std::max<std::chrono::seconds::rep>(1, guard.before.count() - 2);
  return text + replaced(rest, "@SECONDS@", std::to_string(seconds));
}

}  // namespace

std::string script_body(const std::string& line, const std::optional<Guard>& guard) {
  // Slurm sends SIGTERM to the script, of which a shell dies, and kills what the script leaves:
  // hvrun in its place gets the signal and leaves the ranks their time to end.
  if (!guard) return "exec " + line + "\n";
  std::string text = kState;
  if (guard->requeue) text += requeue_text(*guard);
  if (!guard->ignored.empty()) text += "trap 'traps=$((traps + 1))' " + guard->ignored + "\n";
  if (guard->alarm) text += replaced(kAlarm, "@ALARM@", std::to_string(guard->alarm->count()));
  text += kWait;
  if (guard->alarm) text += "kill \"$clock\" 2>/dev/null || :\n";
  if (guard->requeue) {
    text +=
        "if [ -n \"$warned\" ] && [ -z \"$cancelled\" ] && [ \"$code\" != 0 ]; then requeue; fi\n";
    if (guard->requeue->count.empty()) text += kEndOfCounter;
  }
  text += "exit \"$code\"\n";
  text = replaced(text, "@PASSED@", guard->passed);
  text = replaced(text, "@SIGNAL@", guard->signal);
  return replaced(text, "@LINE@", line);
}

}  // namespace hv::launcher
