// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/execution/pair_transfers.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <unordered_map>

#include "runtime/engine/attempt.h"
#include "runtime/engine/execution/result_room.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/wire/codec.h"

namespace hv::runtime {
namespace {

// A rank offers no more than this to one peer before it has answers; so the peer keeps no more.
constexpr std::size_t kMostOffers = 16384;
// So many go out in one message with the header: a copy costs less than a message.
constexpr std::size_t kTogetherBytes = 8 << 10;
constexpr std::size_t kPieceBytes = 64 << 10;
constexpr std::chrono::microseconds kCopyPollPeriod{20};  // of copies from a GPU

enum class PairMessage : std::uint8_t { kOffer = 1, kAnswer = 2 };

struct OfferMessage {
  std::uint32_t set = 0;
  std::uint64_t number = 0;
  std::string name;
  TensorDescription description;
  void fields(auto& a) { a(set, number, name, description); }
};

// code 0: the bytes may come; else they are not wanted, for that reason.
struct AnswerMessage {
  std::uint32_t set = 0;
  std::uint64_t number = 0;
  std::uint32_t code = 0;
  std::string words;
  void fields(auto& a) { a(set, number, code, words); }
};

template <class Message>
std::string encode_pair(PairMessage type, const Message& message) {
  std::string bytes(reinterpret_cast<const char*>(&kPairMessages), sizeof kPairMessages);
  bytes += static_cast<char>(type);
  return bytes + encode(message);
}

Status broken(int from) {
  return {StatusCode::kSystem, "rank " + std::to_string(from) +
                                   " sent a broken message of a send or receive; do all ranks run "
                                   "the same libhvrun?"};
}

std::string describe_tensor(const TensorDescription& description) {
  return std::string(element_type_name(description.type)) + " " + shape_text(description.shape);
}

// "": they fit.
std::string difference(const TensorDescription& sent, const TensorDescription& expected) {
  if (sent.type == expected.type && sent.shape == expected.shape) return {};
  return "the sender has " + describe_tensor(sent) + ", the receiver expects " +
         describe_tensor(expected) + "; both must name the same type and shape";
}

// In pieces: the receiver takes the first while the next is copied.
void write_chunk(Channel& channel, const ChunkHeader& header, const std::byte* bytes) {
  std::byte begin[sizeof header + kTogetherBytes];
  std::size_t done = std::min<std::size_t>(header.bytes, kTogetherBytes);
  std::memcpy(begin, &header, sizeof header);
  std::memcpy(begin + sizeof header, bytes, done);
  channel.write(begin, sizeof header + done);
  while (done < header.bytes) {
    const std::size_t piece = std::min<std::size_t>(header.bytes - done, kPieceBytes);
    channel.write(bytes + done, piece);
    done += piece;
  }
}

// Not anew with each job: what one has left behind in its carrier, MPI, may still be there in the
// next of these processes.
std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

Status with_name(const Operation& operation, const Status& status) {
  return {status.code, tensor_words(operation.name) + ": " + status.message};
}

// Of so many bytes, those that are there; nobody wants them.
std::size_t pass_over(Channel& channel, std::size_t bytes) {
  const std::size_t part = std::min(bytes, channel.readable().size());
  channel.consume(part);
  return part;
}

}  // namespace

void PairTransfers::submit(const OperationPtr& operation, int peer, TimePoint time) {
  if (operation->description.kind == CollectiveKind::kSend) {
    Sending sending{operation, peer, time};
    const Status status = PairMemory::of_input(*operation, &sending.memory);
    if (!status.ok() && failure_.ok()) failure_ = with_name(*operation, status);
    if (status.ok() && operation->device == kHostDevice) return offer(std::move(sending));
    copying_.push_back(std::move(sending));
    return;
  }
  const Key key{operation->set, peer, operation->tag};
  posted_[key] = {operation, time};
  match(key);
}

// Whichever are there: a tensor that its caller's stream is still busy with holds up no other.
bool PairTransfers::offer_copied() {
  bool any = false;
  for (auto one = copying_.begin(); one != copying_.end() && failure_.ok();) {
    const Status copied = one->memory.bring(*one->operation);
    if (copied.code == StatusCode::kInProgress) {
      ++one;
    } else if (!copied.ok()) {
      failure_ = with_name(*one->operation, copied);
    } else {
      offer(std::move(*one));
      one = copying_.erase(one);
      any = true;
    }
  }
  return any;
}

void PairTransfers::offer(Sending sending) {
  const int peer = sending.peer;
  if (unanswered_[peer] >= kMostOffers) {
    waiting_[peer].push_back(std::move(sending));
    return;
  }
  ++unanswered_[peer];
  sending.number = next_number();
  const Operation& operation = *sending.operation;
  messages_.emplace_back(
      peer, encode_pair(PairMessage::kOffer, OfferMessage{operation.set, sending.number,
                                                          operation.tag, operation.description}));
  offered_.emplace(sending.number, std::move(sending));
}

void PairTransfers::offer_waiting(int peer) {
  std::deque<Sending>& waiting = waiting_[peer];
  while (!waiting.empty() && unanswered_[peer] < kMostOffers) {
    Sending next = std::move(waiting.front());
    waiting.pop_front();
    offer(std::move(next));
  }
}

bool PairTransfers::read_set(std::string_view message, std::uint32_t* set) {
  if (message.size() < 1 + sizeof *set) return false;
  std::memcpy(set, message.data() + 1, sizeof *set);  // both messages begin with it
  return true;
}

Status PairTransfers::receive(int from, std::string_view message) {
  if (message.empty()) return broken(from);
  const auto type = static_cast<PairMessage>(message.front());
  message.remove_prefix(1);
  if (type == PairMessage::kOffer) return take_offer(from, message);
  if (type == PairMessage::kAnswer) return take_answer(from, message);
  return broken(from);
}

Status PairTransfers::take_offer(int from, std::string_view bytes) {
  OfferMessage offer;
  if (!decode(bytes, &offer) || !offer.description.is_valid() ||
      offer.description.kind != CollectiveKind::kSend)
    return broken(from);
  // Numbers ascend; one that is under way would be taken for it.
  if (offer.number <= std::exchange(last_offers_[from], offer.number)) return broken(from);
  // Twice: those of a set that only the sender has closed yet are counted here alone.
  if (++known_offers_[from] > 2 * kMostOffers) return broken(from);
  const Key key{offer.set, from, offer.name};
  // The name is in flight there until this one is answered.
  if (!offers_.emplace(key, Offer{offer.number, std::move(offer.description)}).second)
    return broken(from);
  match(key);
  return Status::success();
}

void PairTransfers::match(const Key& key) {
  const auto offer = offers_.find(key);
  const auto posted = posted_.find(key);
  if (offer == offers_.end() || posted == posted_.end()) return;
  const int peer = std::get<1>(key);
  const OperationPtr operation = posted->second.operation;
  const std::uint64_t number = offer->second.number;
  const std::string words = difference(offer->second.description, operation->description);
  offers_.erase(offer);
  posted_.erase(posted);
  --known_offers_[peer];
  Status status{words.empty() ? StatusCode::kOk : StatusCode::kMismatch, words};
  if (status.ok()) status = expect(operation, peer, number);
  answer(key, number, status);
  if (!status.ok() || operation->result_bytes == 0) end(operation, status);
}

// The bytes of an offer that fits.
Status PairTransfers::expect(const OperationPtr& operation, int peer, std::uint64_t number) {
  Receiving receiving{operation, {}};
  Status status = size_result(*operation, {}, {});
  if (status.ok()) status = make_room(*operation);
  if (status.ok()) status = PairMemory::of_result(*operation, &receiving.memory);
  if (!status.ok() || operation->result_bytes == 0) return status;
  if (carrier_ != nullptr) {
    carry(operation, peer, number, std::move(receiving.memory));
    return status;
  }
  Inlet& inlet = inlets_[peer];
  inlet.channel = &plane_->channel(peer, kPairLane);
  inlet.transfers.emplace(number, std::move(receiving));
  return status;
}

void PairTransfers::answer(const Key& key, std::uint64_t number, const Status& status) {
  const AnswerMessage message{std::get<0>(key), number, static_cast<std::uint32_t>(status.code),
                              status.message};
  messages_.emplace_back(std::get<1>(key), encode_pair(PairMessage::kAnswer, message));
}

Status PairTransfers::take_answer(int from, std::string_view bytes) {
  AnswerMessage answer;
  if (!decode(bytes, &answer)) return broken(from);
  const auto found = offered_.find(answer.number);
  if (found == offered_.end()) return Status::success();  // its set has closed here
  if (found->second.peer != from) return broken(from);
  Sending sending = std::move(found->second);
  offered_.erase(found);
  --unanswered_[from];
  offer_waiting(from);
  if (answer.code != 0) {
    const bool disagrees = answer.code == static_cast<std::uint32_t>(StatusCode::kMismatch);
    end(sending.operation, {disagrees ? StatusCode::kMismatch : StatusCode::kSystem,
                            "the receiver refused it: " + printable(answer.words, 1000)});
  } else if (sending.operation->description.bytes() == 0) {
    end(sending.operation, Status::success());
  } else if (carrier_ != nullptr) {
    carry(sending.operation, from, sending.number, std::move(sending.memory));
  } else {
    accepted_[from].push_back(std::move(sending));
  }
  return Status::success();
}

Status PairTransfers::advance(TimePoint time, int* culprit, bool* has_moved) {
  last_look_ = time;
  *has_moved |= offer_copied();
  *has_moved |= advance_carried();
  *has_moved |= finish_landed();
  *culprit = -1;
  if (!failure_.ok()) return failure_;
  for (auto& [peer, queue] : accepted_) *has_moved |= send_some(peer, &queue);
  Status trouble;
  for (auto& [peer, inlet] : inlets_) {
    if (inlet.transfers.empty() && inlet.chunk.bytes == 0 && inlet.header.empty()) continue;
    *has_moved |= receive_some(peer, &inlet, &trouble);
    if (trouble.ok()) continue;
    *culprit = peer;
    return trouble;
  }
  return Status::success();
}

void PairTransfers::carry(const OperationPtr& operation, int peer, std::uint64_t number,
                          PairMemory memory) {
  PairRequest request;
  request.sends = operation->description.kind == CollectiveKind::kSend;
  request.peer = peer;
  request.number = number;
  request.bytes.input = memory.input();
  request.bytes.output = memory.output();
  request.bytes.count = operation->description.bytes();
  for (const MemoryPtr& own : {operation->owned, memory.pinned()})
    if (own != nullptr) request.keeps.push_back(own);
  HV_LOG(kTrace, "engine") << tensor_words(operation->name) << ": " << request.bytes.count
                           << " bytes by the carrier of pairs";
  carried_.push_back({operation, std::move(memory), carrier_->carry(std::move(request))});
}

bool PairTransfers::advance_carried() {
  bool moved = false;
  for (auto one = carried_.begin(); one != carried_.end() && failure_.ok();) {
    const Progress progress = one->transfer->advance();
    moved |= has_advanced(progress);
    if (progress == Progress::kFailed) {
      failure_ = with_name(*one->operation, one->transfer->status());
    } else if (progress == Progress::kDone) {
      Receiving ended{one->operation, std::move(one->memory)};
      const bool sends = ended.operation->description.kind == CollectiveKind::kSend;
      one = carried_.erase(one);
      if (sends)
        end(ended.operation, Status::success());
      else if (!finish(ended))
        landed_.push_back(std::move(ended));
      moved = true;
      continue;
    }
    ++one;
  }
  return moved;
}

// A chunk is written whole or not at all.
bool PairTransfers::send_some(int peer, std::deque<Sending>* queue) {
  bool moved = false;
  while (!queue->empty()) {
    Channel& channel = plane_->channel(peer, kPairLane);
    Sending& sending = queue->front();
    const auto total = static_cast<std::size_t>(sending.operation->description.bytes());
    const std::size_t room = channel.writable();
    if (room <= sizeof(ChunkHeader)) return moved;
    const std::size_t bytes = std::min(total - sending.sent, room - sizeof(ChunkHeader));
    const ChunkHeader header{sending.number, bytes};
    write_chunk(channel, header, sending.memory.input() + sending.sent);
    sending.sent += bytes;
    moved = true;
    if (sending.sent < total) continue;
    end(sending.operation, Status::success());
    queue->pop_front();
  }
  return moved;
}

bool PairTransfers::read_header(Channel& channel, Inlet* inlet) {
  while (inlet->header.size() < sizeof(ChunkHeader)) {
    const auto arrived = channel.readable();
    if (arrived.empty()) return false;
    const std::size_t part = std::min(sizeof(ChunkHeader) - inlet->header.size(), arrived.size());
    inlet->header.append(reinterpret_cast<const char*>(arrived.data()), part);
    channel.consume(part);
  }
  std::memcpy(&inlet->chunk, inlet->header.data(), sizeof inlet->chunk);
  inlet->header.clear();
  return true;
}

bool PairTransfers::receive_some(int peer, Inlet* inlet, Status* trouble) {
  Channel& channel = *inlet->channel;
  bool moved = false;
  for (;;) {
    if (inlet->chunk.bytes == 0) {
      if (inlet->transfers.empty() && inlet->header.empty()) return moved;
      if (!read_header(channel, inlet)) return moved;
      moved = true;
    }
    const auto found = inlet->transfers.find(inlet->chunk.number);
    const bool is_wanted = found != inlet->transfers.end();  // else given up meanwhile
    if (is_wanted &&
        inlet->chunk.bytes > found->second.operation->result_bytes - found->second.received) {
      *trouble = broken(peer);
      return moved;
    }
    const std::size_t part =
        is_wanted ? channel.receive(found->second.memory.output() + found->second.received,
                                    inlet->chunk.bytes)
                  : pass_over(channel, inlet->chunk.bytes);
    if (part == 0 && inlet->chunk.bytes > 0) return moved;
    inlet->chunk.bytes -= part;
    moved = true;
    if (!is_wanted) continue;
    found->second.received += part;
    if (found->second.received < found->second.operation->result_bytes) continue;
    if (!finish(found->second)) landed_.push_back(std::move(found->second));
    inlet->transfers.erase(found);
  }
}

// Whichever can: as offer_copied().
bool PairTransfers::finish_landed() {
  return std::erase_if(landed_, [this](const Receiving& one) { return finish(one); }) > 0;
}

bool PairTransfers::finish(const Receiving& receiving) {
  MomentPtr ended;
  const Status status = receiving.memory.hand_over(*receiving.operation, &ended);
  if (status.code == StatusCode::kInProgress) return false;
  end(receiving.operation, status, std::move(ended));
  return true;
}

void PairTransfers::end(const OperationPtr& operation, const Status& outcome, MomentPtr ended) {
  const Status own = outcome.ok() ? hand_over(*operation, std::move(ended)) : outcome;
  ended_.emplace_back(operation, own.ok() ? own : with_name(*operation, own));
}

void PairTransfers::drop(std::uint32_t set) {
  const auto is_of_set = [set](const Operation& operation) { return operation.set == set; };
  std::erase_if(offers_, [&](const auto& entry) {
    if (std::get<0>(entry.first) != set) return false;
    --known_offers_[std::get<1>(entry.first)];
    return true;
  });
  std::erase_if(posted_, [&](const auto& entry) { return std::get<0>(entry.first) == set; });
  std::erase_if(copying_, [&](Sending& one) {
    if (!is_of_set(*one.operation)) return false;
    one.memory.give_up();
    return true;
  });
  std::erase_if(carried_, [&](const Carried& one) {
    if (!is_of_set(*one.operation)) return false;
    if (one.transfer->has_sent_all()) end(one.operation, Status::success());
    return true;
  });
  std::erase_if(landed_, [&](const Receiving& one) { return is_of_set(*one.operation); });
  std::erase_if(offered_, [&](const auto& entry) {
    if (!is_of_set(*entry.second.operation)) return false;
    --unanswered_[entry.second.peer];
    return true;
  });
  for (auto* queues : {&waiting_, &accepted_})
    for (auto& [peer, queue] : *queues)
      std::erase_if(queue, [&](const Sending& one) { return is_of_set(*one.operation); });
  for (auto& [peer, inlet] : inlets_) {
    const auto is_given_up = [&](const auto& one) { return is_of_set(*one.second.operation); };
    // Before that memory goes; what is still to come of its chunk is passed over.
    if (std::any_of(inlet.transfers.begin(), inlet.transfers.end(), is_given_up))
      inlet.channel->withdraw();
    std::erase_if(inlet.transfers, is_given_up);
  }
  for (auto& [peer, queue] : waiting_) offer_waiting(peer);
}

void PairTransfers::abandon() noexcept {
  for (auto& [peer, inlet] : inlets_) inlet.channel->withdraw();
  for (Sending& one : copying_) one.memory.give_up();
}

TimePoint PairTransfers::next_look() const {
  if (!copying_.empty() || !landed_.empty() || !carried_.empty())
    return last_look_ + kCopyPollPeriod;
  return posted_.empty() && offered_.empty() ? TimePoint::max() : stalls_.next_look();
}

// Those that must wait until they may be offered are younger than one that is offered to that peer.
std::vector<PairStall> PairTransfers::unanswered() const {
  std::vector<PairStall> all;
  const auto add = [&all](const Operation& operation, int peer, TimePoint since) {
    const bool sends = operation.description.kind == CollectiveKind::kSend;
    all.push_back({operation.tag, operation.set, peer, sends, false, since});
  };
  for (const Sending& one : copying_) {
    add(*one.operation, one.peer, one.since);
    all.back().is_on_gpu = true;
  }
  for (const auto& [key, posted] : posted_) add(*posted.operation, std::get<1>(key), posted.since);
  for (const auto& [number, sending] : offered_)
    add(*sending.operation, sending.peer, sending.since);
  return all;
}

std::vector<PairWarning> PairTransfers::take_stalls(TimePoint time) {
  if (!stalls_.is_due(time)) return {};
  const std::vector<PairStall> all = unanswered();
  look_for_end(all, time);
  std::vector<Waiting> waiting;
  std::unordered_map<std::string, const PairStall*> by_name;
  for (const PairStall& one : all) {
    const std::string name = std::to_string(one.set) + (one.sends ? " to " : " from ") +
                             std::to_string(one.peer) + " " + one.name;
    waiting.push_back({name, one.since, {}, {}});
    by_name[name] = &one;
  }
  std::vector<PairWarning> warnings;
  for (const Waiting& due : stalls_.news(stalls_.inspect(waiting, time))) {
    const PairStall& stall = *by_name.at(due.name);
    warnings.push_back({stall, stall_words(stall, time)});
  }
  if (!warnings.empty()) warnings[0].words += what_ends_it(stall_end_after_);
  return warnings;
}

void PairTransfers::look_for_end(const std::vector<PairStall>& waiting, TimePoint time) {
  if (stall_end_after_ == Duration::zero() || has_ended_) return;
  for (const PairStall& one : waiting) {
    if (time - one.since < stall_end_after_) continue;
    has_ended_ = true;
    stall_end_ = ending_words(stall_words(one, time), stall_end_after_);
    return;
  }
}

Status PairMemory::of_input(const Operation& operation, PairMemory* made) {
  const auto bytes = static_cast<std::size_t>(operation.description.bytes());
  made->input_ = operation.input;
  if (operation.device == kHostDevice || bytes == 0) return Status::success();
  made->accelerator_ = operation.accelerator;
  const Status status = operation.accelerator->allocate(
      operation.device, Accelerator::Room::kPinned, bytes, &made->pinned_);
  made->input_ = made->pinned_.get();
  return status;
}

Status PairMemory::of_result(const Operation& operation, PairMemory* made) {
  made->output_ = operation.output;
  if (operation.device == kHostDevice || operation.result_bytes == 0) return Status::success();
  made->accelerator_ = operation.accelerator;
  const Status status = operation.accelerator->allocate(
      operation.device, Accelerator::Room::kPinned, operation.result_bytes, &made->pinned_);
  made->output_ = made->pinned_.get();
  return status;
}

Status PairMemory::bring(const Operation& operation) {
  if (pinned_ == nullptr) return Status::success();
  if (copied_ != nullptr) return accelerator_->poll(*copied_);
  Status status = accelerator_->poll(*operation.ready);
  if (status.ok())
    status = accelerator_->copy(operation.device, Accelerator::Way::kToHost, pinned_.get(),
                                operation.input,
                                static_cast<std::size_t>(operation.description.bytes()));
  if (status.ok()) status = accelerator_->mark_work(operation.device, &copied_);
  return status.ok() ? Status{StatusCode::kInProgress, {}} : status;
}

Status PairMemory::hand_over(const Operation& operation, MomentPtr* ended) const {
  if (pinned_ == nullptr) return Status::success();
  Status status = accelerator_->poll(*operation.ready);
  if (status.ok())
    status = accelerator_->copy(operation.device, Accelerator::Way::kToDevice, operation.output,
                                pinned_.get(), operation.result_bytes);
  if (status.ok()) status = accelerator_->mark_work(operation.device, ended);
  if (status.ok()) accelerator_->keep_until(*ended, pinned_);
  return status;
}

void PairMemory::give_up() noexcept {
  if (copied_ != nullptr) attempt([&] { accelerator_->keep_until(copied_, pinned_); });
}

}  // namespace hv::runtime
