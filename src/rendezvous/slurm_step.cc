// SPDX-License-Identifier: Apache-2.0
#include "src/rendezvous/slurm_step.h"

#include <netdb.h>
#include <unistd.h>

#include <algorithm>

#include "src/base/text.h"
#include "src/net/address.h"
#include "src/net/socket.h"
#include "src/rendezvous/munge.h"
#include "src/rendezvous/star_exchange.h"
#include "src/rendezvous/step_key_file.h"
#include "src/wire/agent_greeting.h"
#include "src/wire/wipe.h"

namespace hv {
namespace {

constexpr std::size_t kMostPorts = 16;
constexpr std::uint16_t kFirstPort = 20000, kPorts = 12000;  // below those that kernels give out
constexpr std::uint32_t kMostCredential = 64 << 10;

std::uint32_t hash_of(const std::string& text) {
  std::uint32_t hash = 2166136261u;  // FNV-1a: alike in every process
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

std::vector<std::string> addresses_of(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  std::vector<std::string> addresses;
  if (::getaddrinfo(host.c_str(), nullptr, &wanted, &list) != 0) return addresses;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next)
    addresses.push_back(SocketAddress::from_raw(one->ai_addr, one->ai_addrlen).ip());
  ::freeaddrinfo(list);
  return addresses;
}

Status say(int socket, const std::string& text, TimePoint deadline) {
  if (text.size() > kMostCredential)
    return {StatusCode::kContract, "munge's credential is too long"};
  const auto size = static_cast<std::uint32_t>(text.size());
  Status status = send_all(socket, &size, sizeof size, time_until(deadline));
  return status.ok() ? send_all(socket, text.data(), text.size(), time_until(deadline)) : status;
}

Status hear(int socket, TimePoint deadline, std::string* text) {
  std::uint32_t size = 0;
  if (Status status = read_exactly(socket, &size, sizeof size, time_until(deadline)); !status.ok())
    return status;
  if (size > kMostCredential) return {StatusCode::kContract, "what came is no credential"};
  text->resize(size);
  return read_exactly(socket, text->data(), size, time_until(deadline));
}

// A credential of each: the rank's says who asks, rank 0's answers with the key and what the rank
// had said.
StarKey key_by_munge(const Munge& munge, const std::string& step, const JobKey& own) {
  StarKey key;
  key.of_first = [&munge, &own, step](int socket, TimePoint deadline, JobKey* result) {
    std::string credential, words;
    Status status = hear(socket, deadline, &credential);
    if (status.ok()) status = munge.unseal(credential, &words);
    if (!status.ok()) return status;
    if (words.compare(0, step.size() + 1, step + " ") != 0)
      return Status{StatusCode::kContract, "the credential is another step's"};
    std::string answer = encode_key_answer(own, words);
    status = munge.seal(answer, &credential);
    wipe(&answer);
    *result = own;
    return status.ok() ? say(socket, credential, deadline) : status;
  };
  key.of_other = [&munge, step](int socket, TimePoint deadline, JobKey* result) {
    const std::string words = step + " " + random_hex(16);
    std::string credential, answer;
    Status status = munge.seal(words, &credential);
    if (status.ok()) status = say(socket, credential, deadline);
    if (status.ok()) status = hear(socket, deadline, &credential);
    if (status.ok()) status = munge.unseal(credential, &answer);
    if (!status.ok()) return status;
    const bool is_answer = decode_key_answer(answer, words, result);
    wipe(&answer);
    return is_answer ? Status::success()
                     : Status{StatusCode::kContract, "the credential is no answer"};
  };
  return key;
}

// ---- the file

// Read anew at each try: a file of a step of that name which was broken off may lie there until
// rank 0 has replaced it.
StarKey key_by_file(const std::string& path, const JobKey& own) {
  StarKey key;
  key.of_first = [&own](int, TimePoint, JobKey* result) {
    *result = own;
    return Status::success();
  };
  key.of_other = [path](int, TimePoint, JobKey* result) { return read_step_key(path, result); };
  return key;
}

Status open_by_file(const StarTerms& terms, const std::string& path, const WaitLimits& limits,
                    std::unique_ptr<Exchange>* exchange) {
  const JobKey own = random_key();
  Status status = terms.rank == 0 ? write_step_key(path, own) : Status::success();
  if (status.ok()) status = open_star(terms, key_by_file(path, own), limits, exchange);
  if (terms.rank == 0) ::unlink(path.c_str());
  return status;
}

}  // namespace

std::string encode_key_answer(const JobKey& key, std::string_view words) {
  std::string answer = key_as_text(key);
  append_secret(&answer, " ");
  append_secret(&answer, words);
  return answer;
}

bool decode_key_answer(std::string_view answer, std::string_view words, JobKey* key) {
  constexpr std::size_t kDigits = 2 * JobKey::kBytes;
  return answer.size() == kDigits + 1 + words.size() && answer.substr(kDigits + 1) == words &&
         parse_key(answer.substr(0, kDigits), key);
}

std::optional<SlurmStep> slurm_step(const Environment& environment) {
  const auto number = [&](const char* name) {
    return parse_integer(environment.get_or(name, "")).value_or(-1);
  };
  const std::int64_t size = number("SLURM_STEP_NUM_TASKS"), rank = number("SLURM_PROCID");
  const std::string job(environment.get_or("SLURM_JOB_ID", "")),
      step(environment.get_or("SLURM_STEP_ID", "")),
      nodes(environment.get_or("SLURM_STEP_NODELIST", ""));
  const bool are_numbers = parse_integer(job).has_value() && parse_integer(step).has_value();
  if (size < 2 || size > 1 << 24 || rank < 0 || rank >= size || !are_numbers || nodes.empty())
    return std::nullopt;
  // A job that is requeued keeps its number.
  const std::string restart(environment.get_or("SLURM_RESTART_COUNT", "0"));
  const std::string name =
      job + "." + step + (restart == "0" || !parse_integer(restart) ? "" : "." + restart);
  return SlurmStep{static_cast<int>(rank), static_cast<int>(size), name, first_node(nodes)};
}

std::string first_node(const std::string& expression) {
  std::string name;
  for (std::size_t i = 0; i < expression.size() && expression[i] != ','; ++i) {
    if (expression[i] != '[') {
      name += expression[i];
      continue;
    }
    const std::size_t close = std::min(expression.find(']', i), expression.size());
    const std::size_t end = std::min(expression.find_first_of("-,", i), close);
    name += expression.substr(i + 1, end - i - 1);
    i = close;
  }
  return name;
}

std::vector<std::uint16_t> ports_of_step(const std::string& name, const PortRange& range) {
  const PortRange all = range.is_any() ? PortRange{kFirstPort, kFirstPort + kPorts - 1} : range;
  const auto count = static_cast<std::uint32_t>(all.count());
  const std::uint32_t start = hash_of(name) % count;
  std::vector<std::uint16_t> ports;
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(count, kMostPorts); ++i)
    ports.push_back(static_cast<std::uint16_t>(all.first + (start + i) % count));
  return ports;
}

std::string hidden_gpus(const Environment& environment) {
  const std::string visible(environment.get_or("CUDA_VISIBLE_DEVICES", ""));
  const auto of_host = parse_integer(environment.get_or("SLURM_GPUS_ON_NODE", ""));
  const auto own = visible.empty() ? 0 : std::count(visible.begin(), visible.end(), ',') + 1;
  if (own == 0 || !of_host || *of_host <= own) return {};
  return "srun shows each rank " + std::to_string(own) + " of the " + std::to_string(*of_host) +
         " GPUs that the job has on this host and hides the others' (--gpus-per-task), so that "
         "ranks cannot copy from GPU to GPU (NVLink, PCIe), and LOCAL_RANK names none of them; ask "
         "for --gpus-per-node=N instead, or start the program with hvrun";
}

Status open_slurm_step(const SlurmStep& step, const Environment& environment,
                       const MeetingTerms& meeting, std::unique_ptr<Exchange>* exchange) {
  StarTerms terms{step.rank, step.size, step.name, {}, {}};
  const WaitLimits& limits = meeting.limits;
  terms.ports = ports_of_step(step.name, meeting.ports);
  terms.first_host = [node = step.first_node] { return addresses_of(node); };
  std::unique_ptr<Munge> munge;
  const Status munged = Munge::open(&munge);
  if (munged.ok()) {
    const JobKey own = random_key();
    Status status = open_star(terms, key_by_munge(*munge, step.name, own), limits, exchange);
    if (!status.ok())
      status.message += " (by munge); start the step with 'srun --mpi=pmix ...', or with hvrun";
    return status;
  }
  const std::string path = step_key_file(environment, step.name);
  if (!path.empty()) {
    Status status = open_by_file(terms, path, limits, exchange);
    if (!status.ok())
      status.message += " (by a file, since " + munged.message +
                        "); start the step with 'srun --mpi=pmix ...', or with hvrun";
    return status;
  }
  return {StatusCode::kContract,
          "join the job: Slurm's srun has started " + std::to_string(step.size) +
              " tasks that have no way to meet: " + munged.message +
              ", and HOME is not set; start them with 'srun --mpi=pmix ...', or with hvrun"};
}

}  // namespace hv
