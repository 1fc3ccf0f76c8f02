// SPDX-License-Identifier: Apache-2.0
#include "tests/ranks/engine/player.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "runtime/api/request_reader.h"
#include "tests/ranks/engine/random_program.h"
#include "tests/ranks/engine/requests.h"

namespace hv::runtime {
namespace {

struct Running {
  const Planned* planned;
  int place;
  Bytes input{};
  Bytes output{};
  std::vector<std::int64_t> splits{};
  std::vector<std::int64_t> shape{};
  std::vector<std::int64_t> long_indices{};
  std::vector<std::int32_t> short_indices{};
  std::uint64_t handle = 0;
  std::size_t shift = 0;  // bytes by which the tensors begin behind their buffers
};

enum class Output { kInPlace, kApart, kOfLibrary };

void add_indices(const Planned& planned, Running& running, hvrun_request* request) {
  running.long_indices = indices_of(planned, running.place);
  running.short_indices.assign(running.long_indices.begin(), running.long_indices.end());
  running.shape.push_back(kSparseColumns);
  request->shape = running.shape.data();
  request->ndim = 2;
  request->index_type = planned.has_long_indices ? HVRUN_INT64 : HVRUN_INT32;
  request->indices = running.short_indices.data();
  if (planned.has_long_indices) request->indices = running.long_indices.data();
}

hvrun_request request_of(const Planned& planned, Running& running, Output output) {
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = static_cast<hvrun_operation>(planned.kind);
  request.name = planned.name.c_str();
  request.process_set = planned.members.set;
  if (planned.kind == CollectiveKind::kBarrier) return request;
  request.type = static_cast<hvrun_type>(planned.type);
  request.group = planned.group;
  request.group_size = planned.group_size;
  request.compression = static_cast<hvrun_compression>(planned.compression);
  if (has_reduction(planned.kind))
    request.reduction = static_cast<hvrun_reduction>(planned.reduction);
  request.prescale = planned.prescale;
  request.postscale = planned.postscale;
  request.root = planned.root;
  running.shape = {planned.extents[static_cast<std::size_t>(running.place)]};
  request.ndim = planned.is_scalar ? 0 : 1;
  request.shape = running.shape.data();
  request.input = running.input.data() + running.shift;
  const bool sends = planned.kind == CollectiveKind::kSend && running.place == planned.root;
  if (sends) request.root = planned.receiver;
  if (planned.kind == CollectiveKind::kSend && !sends) request.operation = HVRUN_RECEIVE;
  if (planned.kind == CollectiveKind::kAlltoall) {
    running.splits = splits_of(planned, running.place);
    request.splits = running.splits.data();
    request.split_count = running.splits.size();
  }
  if (planned.is_sparse()) add_indices(planned, running, &request);
  const bool is_of_library = output == Output::kOfLibrary && planned.kind != CollectiveKind::kSend;
  if (planned.kind == CollectiveKind::kAllgather || planned.is_sparse() || is_of_library || sends)
    return request;
  // The result may be larger than the input it lies in.
  Bytes& target = output == Output::kInPlace ? running.input : running.output;
  target.resize(std::max(target.size(), running.shift + result_bytes(planned, running.place)));
  request.input = running.input.data() + running.shift;
  if (request.operation == HVRUN_RECEIVE) request.input = nullptr;
  request.output = target.data() + running.shift;
  return request;
}

std::vector<std::int64_t> indices_in(const Operation& result, const Planned& planned,
                                     std::size_t count) {
  const void* const indices = result.owned_indices.get();
  if (planned.has_long_indices) {
    const auto* const begin = static_cast<const std::int64_t*>(indices);
    return {begin, begin + count};
  }
  const auto* const begin = static_cast<const std::int32_t*>(indices);
  return {begin, begin + count};
}

void check(const Player& player, const Running& running) {
  const Planned& planned = *running.planned;
  if (planned.kind == CollectiveKind::kSend && running.place == planned.root) return;
  const OperationPtr operation = player.context.find(running.handle);
  Bytes actual(operation->result_bytes);
  if (!actual.empty()) std::memcpy(actual.data(), operation->output, actual.size());
  const std::string what = planned.name + " of set " + std::to_string(planned.members.set) + " (" +
                           collective_name(planned.kind) + " of " +
                           element_type_name(planned.type) + "): ";
  const std::string mistake = first_mistake(planned, running.place, actual);
  expect(mistake.empty(), what + mistake);
  if (!planned.is_sparse()) return;
  const std::vector<std::int64_t> expected = expected_indices(planned);
  expect(indices_in(*operation, planned, expected.size()) == expected, what + "other indices");
}

void enqueue(const Player& player, const hvrun_request& request, const Planned& planned,
             std::uint64_t* handle) {
  OperationPtr operation;
  Status status = read_request(&request, player.size, &operation);
  if (status.ok() && player.gpu != nullptr && !planned.stays_on_host)
    player.gpu->take_there(*operation);
  if (status.ok()) status = player.context.enqueue(std::move(operation), handle);
  expect(status.ok(), status.message);
}

// Enqueues a window in this rank's own order, waits in another one, now and then by polling.
void run_window(const Player& player, const std::vector<Planned>& plan, std::mt19937_64& own) {
  std::vector<std::unique_ptr<Running>> all;
  for (const Planned& planned : plan) {
    const int place = planned.members.place_of(player.rank);
    if (!planned.takes_part(place)) continue;
    all.push_back(std::make_unique<Running>(Running{&planned, place}));
    const bool receives = planned.kind == CollectiveKind::kSend && place == planned.receiver;
    Running& next = *all.back();
    next.shift = own() % 4 == 0 ? own() % 8 : 0;
    next.input.resize(next.shift);
    if (receives) continue;
    const Bytes input = input_of(planned, place);
    next.input.insert(next.input.end(), input.begin(), input.end());
  }
  std::shuffle(all.begin(), all.end(), own);
  for (auto& running : all)
    enqueue(player, request_of(*running->planned, *running, static_cast<Output>(own() % 3)),
            *running->planned, &running->handle);
  std::shuffle(all.begin(), all.end(), own);
  for (auto& running : all) {
    player.at("waiting for " + running->planned->name);
    const OperationPtr operation = player.context.find(running->handle);
    while (own() % 3 == 0 && !operation->is_done) std::this_thread::yield();
    const Status status = player.context.wait(*operation, TimePoint::max());
    if (player.gpu != nullptr) player.gpu->bring_back(*operation);
    expect(status.ok(), status.message);
    check(player, *running);
    expect(player.context.release(running->handle), "release");
  }
}

void run(const Player& player, const hvrun_request& request) {
  OperationPtr operation;
  Status status = read_request(&request, player.size, &operation);
  expect(status.ok(), status.message);
  if (player.gpu != nullptr) player.gpu->take_there(*operation);
  status = player.context.run(operation);
  if (player.gpu != nullptr) player.gpu->bring_back(*operation);
  expect(status.ok(), status.message);
}

// The members of a set run out of data one after the other: sums of those that still have some, and
// averages of them or of all.
void run_to_join(const Player& player, const Members& members, std::mt19937_64& shared) {
  std::vector<int> steps;
  for (int member = 0; member < members.size(); ++member)
    steps.push_back(static_cast<int>(shared() % 4));
  const int longest = *std::max_element(steps.begin(), steps.end());
  const auto count = static_cast<std::int64_t>(shared() % 3000);
  const bool averages = shared() % 2 == 0, by_present = shared() % 2 == 0;
  const int place = members.place_of(player.rank);
  if (place < 0) return;
  for (int step = 0; step < steps[static_cast<std::size_t>(place)]; ++step) {
    player.at("step " + std::to_string(step) + " before its join");
    std::vector<std::int32_t> data(static_cast<std::size_t>(count), 1 << place);
    std::int32_t expected = 0, present = 0;
    for (int member = 0; member < members.size(); ++member) {
      if (steps[static_cast<std::size_t>(member)] <= step) continue;
      expected += 1 << member;
      ++present;
    }
    if (averages) expected /= by_present ? present : members.size();
    hvrun_request request =
        allreduce_request("before the join", &count, data.data(), data.data(), HVRUN_INT32);
    if (averages) request.reduction = HVRUN_AVERAGE;
    if (averages && by_present) request.flags = HVRUN_AVERAGE_PRESENT;
    request.process_set = members.set;
    run(player, request);
    expect(data == std::vector<std::int32_t>(data.size(), expected), "a sum before the join");
  }
  player.at("joining");
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = HVRUN_JOIN;
  request.process_set = members.set;
  OperationPtr join;
  expect(read_request(&request, player.size, &join).ok(), "a join");
  const Status status = player.context.run(join);
  expect(status.ok(), status.message);
  const bool is_member = join->last_joined >= 0 && join->last_joined < members.size();
  expect(is_member, "who joined last");
  // Whoever has a step more than all others joins after they have.
  if (std::count(steps.begin(), steps.end(), longest) == 1)
    expect(steps[static_cast<std::size_t>(join->last_joined)] == longest, "who joined last");
}

Members every_rank(int size) {
  Members all;
  for (int rank = 0; rank < size; ++rank) all.ranks.push_back(rank);
  return all;
}

// Adds a set of some ranks, if there is none of just those.
void add_set(const Player& player, std::mt19937_64& shared, std::vector<Members>* sets) {
  Members next;
  for (int other = 0; other < player.size; ++other)
    if (shared() % 2 == 0) next.ranks.push_back(other);
  const bool is_there = std::any_of(
      sets->begin(), sets->end(), [&](const Members& known) { return known.ranks == next.ranks; });
  if (next.ranks.empty() || is_there) return;
  player.at("adding a set");
  const Status status =
      player.context.add_process_set({next.ranks.begin(), next.ranks.end()}, &next.set);
  expect(status.ok(), status.message);
  sets->push_back(std::move(next));
}

void remove_set(const Player& player, std::mt19937_64& shared, std::vector<Members>* sets) {
  if (sets->size() == 1) return;
  const auto victim =
      sets->begin() + 1 + static_cast<std::ptrdiff_t>(shared() % (sets->size() - 1));
  player.at("removing set " + std::to_string(victim->set));
  const Status status = player.context.remove_process_set(victim->set);
  expect(status.ok(), status.message);
  sets->erase(victim);
}

}  // namespace

void play(const Player& player, std::uint64_t seed) {
  std::mt19937_64 shared(seed), own(seed * 1000 + static_cast<std::uint64_t>(player.rank));
  std::vector<Members> sets{every_rank(player.size)};
  for (int window = 0; window < 4; ++window) {
    if (shared() % 3 == 0) remove_set(player, shared, &sets);
    if (shared() % 3 != 0) add_set(player, shared, &sets);
    run_window(player, plan_window(shared, sets, window), own);
    if (shared() % 3 == 0) run_to_join(player, sets[shared() % sets.size()], shared);
  }
}

// A cache of 5 evicts all the time; a threshold of 2 KiB splits what could be fused. Streams go by
// seed / 4: a shape comes with every third or fourth seed.
Environment knobs_of(const JobShape& shape, std::uint64_t seed) {
  Environment knobs;
  if (shape.size() > 1 && seed / 4 % 3 == 0) knobs.set("HVRUN_STREAMS", "3");
  if (seed % 3 == 0) knobs.set("HVRUN_CACHE_CAPACITY", seed % 2 == 0 ? "0" : "5");
  if (seed % 4 == 0) knobs.set("HVRUN_FUSION_THRESHOLD", seed % 8 == 0 ? "0" : "2K");
  if (seed % 5 == 0) knobs.set("HVRUN_DETERMINISTIC", "1");
  return knobs;
}

}  // namespace hv::runtime
