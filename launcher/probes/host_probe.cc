// SPDX-License-Identifier: Apache-2.0
#include "launcher/probes/host_probe.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

#include "launcher/probes/folders.h"
#include "launcher/probes/limits.h"
#include "launcher/probes/load.h"
#include "launcher/probes/memory.h"
#include "launcher/probes/names.h"
#include "launcher/probes/program.h"
#include "launcher/probes/python.h"
#include "src/base/blocking_write.h"
#include "src/base/text.h"
#include "src/wire/codec.h"

namespace hv::launcher {
namespace {

constexpr int kBadQuestion = 2;

bool read_request(wire::CheckRequest* request) {
  struct stat file {};
  if (::fstat(0, &file) != 0 || !S_ISREG(file.st_mode)) return false;
  std::string bytes(static_cast<std::size_t>(file.st_size), '\0');
  std::size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t count =
        ::pread(0, bytes.data() + got, bytes.size() - got, static_cast<off_t>(got));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    got += static_cast<std::size_t>(count);
  }
  return decode(bytes, request);
}

// Two probes report on programs, each a part of ProgramFacts.
void merge_programs(wire::CheckReply&& from, wire::CheckReply* to) {
  from.programs.resize(std::max(from.programs.size(), to->programs.size()));
  for (std::size_t i = 0; i < to->programs.size(); ++i)
    from.programs[i].python = std::move(to->programs[i].python);
  to->programs = std::move(from.programs);
}

void merge_python(wire::CheckReply&& from, wire::CheckReply* to) {
  to->programs.resize(std::max(from.programs.size(), to->programs.size()));
  for (std::size_t i = 0; i < from.programs.size(); ++i)
    to->programs[i].python = std::move(from.programs[i].python);
}

}  // namespace

const std::vector<HostProbe>& host_probes() {
  using Reply = wire::CheckReply;
  static const std::vector<HostProbe> probes{
      {"folders", inspect_folders,
       [](Reply&& from, Reply* to) { to->folders = std::move(from.folders); }},
      {"program", inspect_program, merge_programs},
      {"python", inspect_python, merge_python},
      {"limits", inspect_limits, [](Reply&& from, Reply* to) { to->limits = from.limits; }},
      {"memory", inspect_memory, [](Reply&& from, Reply* to) { to->memory = from.memory; }},
      {"load", inspect_load, [](Reply&& from, Reply* to) { to->load = std::move(from.load); }},
      {"network", inspect_network,
       [](Reply&& from, Reply* to) { to->network = std::move(from.network); }},
      {"names", inspect_names, [](Reply&& from, Reply* to) { to->names = std::move(from.names); }},
      {"ports", inspect_ports, [](Reply&& from, Reply* to) { to->ports = std::move(from.ports); }}};
  return probes;
}

bool is_requested(const HostProbe& probe, const std::vector<std::string>& names) {
  return names.empty() || std::find(names.begin(), names.end(), probe.name) != names.end();
}

namespace {

// Precedes each answer.
struct AnswerHead {
  std::uint64_t probe, bytes;
};

class ProbeThreads {
 public:
  ProbeThreads(const wire::CheckRequest& request, const Environment& environment)
      : request_(request), environment_(environment) {}

  // 0, or the errno of an answer that could not be written.
  int run() {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < host_probes().size(); ++i) {
      if (!is_requested(host_probes()[i], request_.probes)) continue;
      try {
        threads.emplace_back([this, i] { answer(i); });
      } catch (const std::system_error&) {
        answer(i);  // no thread could be started: run the probe here
      }
    }
    for (std::thread& thread : threads) thread.join();
    return error_;
  }

 private:
  void answer(std::size_t probe) {
    wire::CheckReply reply;
    host_probes()[probe].inspect(request_, environment_, &reply);
    const std::string bytes = encode(reply);
    const AnswerHead head{probe, bytes.size()};
    std::string whole(reinterpret_cast<const char*>(&head), sizeof head);
    whole += bytes;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const int error = write_all(1, whole)) error_ = error;
  }

  const wire::CheckRequest& request_;
  const Environment& environment_;
  std::mutex mutex_;  // guards standard output and error_
  int error_ = 0;
};

}  // namespace

int run_host_probes() {
  ::prctl(PR_SET_NAME, kProbeName);
  wire::CheckRequest request;
  if (!read_request(&request)) {
    std::fprintf(stderr, "there is no request for the probes\n");
    return kBadQuestion;
  }
  const Environment environment = Environment::of_process();
  const int error = ProbeThreads(request, environment).run();
  if (error != 0) std::fprintf(stderr, "write an answer: %s\n", errno_text(error).c_str());
  return error == 0 ? 0 : 1;
}

std::vector<std::pair<std::size_t, std::string_view>> parse_probe_answers(std::string_view bytes) {
  std::vector<std::pair<std::size_t, std::string_view>> answers;
  AnswerHead head;
  while (bytes.size() >= sizeof head) {
    std::memcpy(&head, bytes.data(), sizeof head);
    bytes.remove_prefix(sizeof head);
    if (head.probe >= host_probes().size() || head.bytes > bytes.size()) break;
    answers.emplace_back(head.probe, bytes.substr(0, head.bytes));
    bytes.remove_prefix(head.bytes);
  }
  return answers;
}

}  // namespace hv::launcher
