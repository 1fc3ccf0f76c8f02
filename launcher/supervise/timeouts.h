// The supervisor's time limits, apart from those that options set (launcher/plan/job_spec.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "src/base/clock.h"

namespace hv::launcher {

// Start. An agent's own error at --start-timeout names the cause, so hvrun waits a little longer.
constexpr Duration kAnswerMargin = std::chrono::seconds(1);
// After the first failed host: the others may still report their failures for the same error.
constexpr Duration kOtherFailures = std::chrono::milliseconds(1500);
// What a launch asks the scheduler: it may delay it by so much.
constexpr Duration kSchedulerQueryTimeout = std::chrono::seconds(1);
// For the pods' termination period. Nothing waits for it; a first kubectl may take seconds, because
// it asks its API server for all kinds of objects.
constexpr Duration kPodQueryTimeout = std::chrono::seconds(30);
// Reachability of other hosts. A check waits for first packets that are lost and sent again, too.
constexpr Duration kReachTimeout = std::chrono::seconds(2);
constexpr Duration kReachTimeoutOfCheck = std::chrono::milliseconds(4500);

// While ranks run.
constexpr Duration kProgressInterval = std::chrono::seconds(1);
// For agents to answer how many steps their ranks have taken, before job.json is renewed.
constexpr Duration kStepsAnswerTime = std::chrono::seconds(1);
constexpr Duration kAbsenceTimeout = std::chrono::seconds(5);  // which ranks have not joined
// An agent reads stacks within the first; hvrun waits for its answer a little longer.
constexpr Duration kStackTimeout = std::chrono::seconds(5);
constexpr Duration kStackAnswerTimeout = std::chrono::seconds(7);
// Before Ctrl-Z stops hvrun: over a slow link agents notice a missing heartbeat much later.
constexpr Duration kStopNoticeTimeout = std::chrono::milliseconds(300);

// Failure. Reports are collected before a cause is named: the first one often names a victim.
constexpr Duration kLeastCollection = std::chrono::milliseconds(250);
constexpr Duration kMostCollection = std::chrono::seconds(5);
constexpr Duration kQueryInterval = std::chrono::milliseconds(50);
constexpr Duration kFirstSecondsOfRanks = std::chrono::seconds(10);  // later no probe explains it
// All probes together. A rank's death ends a job on all hosts within 5 s, --grace included.
constexpr Duration kProbesAfterLaunch = std::chrono::milliseconds(4000);
constexpr Duration kProbesAfterRank = std::chrono::milliseconds(1500);
constexpr Duration kProbesAfterHostLoss = std::chrono::seconds(2);
constexpr Duration kProbeAnswerTime = std::chrono::milliseconds(400);  // for answers to arrive

// Between two attempts of --restarts; HVRUN_RESTART_DELAY is the first delay.
constexpr Duration kMostRestartDelay = std::chrono::seconds(30);

// End.
constexpr Duration kSigtermRepeatTime = std::chrono::seconds(1);  // of two that count as one
constexpr Duration kSweepTimeout = std::chrono::seconds(3);       // a second agent on a lost host
// Beyond the grace: agents search 2 s for processes that survive SIGKILL, then name them.
constexpr Duration kEndMargin = std::chrono::seconds(3);
// From the first Ctrl-C, for a slow reader: one that comes within 3 s gets all output.
constexpr Duration kReaderTimeout = std::chrono::milliseconds(3500);
// The same from the end of the ranks, which --grace may delay.
constexpr Duration kLeastReaderTimeout = std::chrono::milliseconds(500);
constexpr Duration kDiscardTimeout = std::chrono::milliseconds(500);  // output without a reader
constexpr std::chrono::milliseconds kLastMessageTimeout(500);         // hvrun's own, and records
// For job.json and --summary to be written, where the file system may hang.
constexpr Duration kRecordTimeout = std::chrono::seconds(30);

}  // namespace hv::launcher
