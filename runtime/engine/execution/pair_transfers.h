// Sends and receives between two ranks: who offers what to whom, and the bytes that then move.
// SPDX-License-Identifier: Apache-2.0
//
// Not negotiated: a sender offers its tensor to the receiver, who answers when its own request is
// there and fits. Then the bytes go through the pair's lane in chunks, each with the number of its
// transfer in front, so that one that is given up in the middle harms no other; or both ends give
// theirs to a carrier. All ranks here are the job's, for all process sets. One thread at a time
// (whoever holds the engine's progress). Nothing blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/backend/backend.h"
#include "runtime/engine/negotiation/stall_inspector.h"
#include "runtime/engine/operation.h"
#include "runtime/transport/transport.h"
#include "src/base/status.h"

namespace hv::runtime {

// What the bytes of a send or receive are read from and written to on the host: the tensor's own
// memory, or pinned memory that stands in for a GPU's.
// Bytes between two ranks go through the host whatever memory the tensors are of, so that the two
// need not be of the same. Nothing blocks, and nothing is given to a device's work stream that
// would wait there for a caller's and hold up what stands behind it.
class PairMemory {
 public:
  // A sender's, once it has been brought to the host.
  static Status of_input(const Operation& operation, PairMemory* made);
  // A receiver's; the result is to have its room.
  static Status of_result(const Operation& operation, PairMemory* made);

  // kInProgress: the tensor is not on the host yet; it is copied when the caller's stream is
  // through with it.
  Status bring(const Operation& operation);
  const std::byte* input() const { return input_; }
  std::byte* output() const { return output_; }
  const MemoryPtr& pinned() const { return pinned_; }
  // All has been written to output(). ended: when the operation's own memory has it; nullptr: now.
  // kInProgress: not yet, for the caller's stream may still write there.
  Status hand_over(const Operation& operation, MomentPtr* ended) const;
  // The operation is given up: what a device still writes goes back when that is done.
  void give_up() noexcept;

 private:
  const std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
  MemoryPtr pinned_;  // nullptr: the tensor's own memory serves
  MomentPtr copied_;  // of a sender's
  std::shared_ptr<Accelerator> accelerator_;
};

// The number in front of these messages, where others have their process set's.
constexpr std::uint32_t kPairMessages = UINT32_MAX;

// In front of the bytes of a chunk: which transfer they are of.
struct ChunkHeader {
  std::uint64_t number;
  std::uint64_t bytes;
};

class PairTransfers {
 public:
  // plane: that of all ranks; it outlives this. nullptr where nothing is ever sent.
  // stall_limit, stall_end: as NegotiationConfig's. carrier: of the bytes, on all ranks or on none;
  // it outlives this.
  PairTransfers(DataPlane* plane, Duration stall_limit, Duration stall_end = {},
                PairCarrier* carrier = nullptr)
      : plane_(plane),
        carrier_(carrier),
        stalls_(stall_limit, stall_end),
        stall_end_after_(stall_end) {}

  // A kSend to or kReceive from peer.
  void submit(const OperationPtr& operation, int peer, TimePoint time);
  // Without the number in front. set: what the message is about, for the caller's own check before
  // receive(). False: no message of this kind.
  static bool read_set(std::string_view message, std::uint32_t* set);
  // Not kOk: none that a rank of this build sends.
  Status receive(int from, std::string_view message);
  // (rank, bytes), kPairMessages in front.
  std::vector<std::pair<int, std::string>> take_messages() { return std::exchange(messages_, {}); }
  // Moves what can be moved. Not kOk: that rank sends what cannot be, or, culprit -1, this one can
  // no longer send what others may wait for.
  Status advance(TimePoint time, int* culprit, bool* has_moved);
  // Operations that have ended since the last call.
  std::vector<std::pair<OperationPtr, Status>> take_ended() { return std::exchange(ended_, {}); }
  // The set closes: of its operations only those that have ended are told yet. A send whose bytes
  // are all on their way has, too: its receiver may have left because it has them.
  void drop(std::uint32_t set);
  // Nothing goes on: no operation's memory is touched any more.
  void abandon() noexcept;
  // What to warn of now. Call once in a while, when next_look() says.
  std::vector<PairWarning> take_stalls(TimePoint time);
  // Once: a stall has lasted for stall_end; whoever takes its words ends the job.
  std::optional<std::string> take_stall_end() { return std::exchange(stall_end_, std::nullopt); }
  TimePoint next_look() const;
  Attention attention() const { return carried_.empty() ? Attention::kBell : Attention::kDriven; }

 private:
  // Which send a receive is meant for. peer: the other rank.
  using Key = std::tuple<std::uint32_t, int, std::string>;
  struct Offer {
    std::uint64_t number;
    TensorDescription description;
  };
  struct Sending {
    OperationPtr operation;
    int peer;
    TimePoint since;
    PairMemory memory = {};
    std::uint64_t number = 0;  // from the offer on; of this process's, whichever job
    std::size_t sent = 0;
  };
  struct Receiving {
    OperationPtr operation;
    PairMemory memory;
    std::size_t received = 0;
  };
  struct Carried {
    OperationPtr operation;
    PairMemory memory;
    std::unique_ptr<Collective> transfer;
  };
  struct Posted {
    OperationPtr operation;
    TimePoint since;
  };
  // What arrives on one pair's lane.
  struct Inlet {
    Channel* channel = nullptr;
    std::string header;                            // as far as it has arrived
    ChunkHeader chunk{0, 0};                       // bytes: still to come
    std::map<std::uint64_t, Receiving> transfers;  // by the sender's number
  };

  bool offer_copied();
  void offer(Sending sending);
  void offer_waiting(int peer);
  void match(const Key& key);
  Status expect(const OperationPtr& operation, int peer, std::uint64_t number);
  void answer(const Key& key, std::uint64_t number, const Status& status);
  Status take_offer(int from, std::string_view bytes);
  Status take_answer(int from, std::string_view bytes);
  void carry(const OperationPtr& operation, int peer, std::uint64_t number, PairMemory memory);
  bool advance_carried();
  bool send_some(int peer, std::deque<Sending>* queue);
  bool receive_some(int peer, Inlet* inlet, Status* trouble);
  bool read_header(Channel& channel, Inlet* inlet);
  bool finish_landed();
  bool finish(const Receiving& receiving);  // false: its memory is not free yet
  void end(const OperationPtr& operation, const Status& outcome, MomentPtr ended = nullptr);
  std::vector<PairStall> unanswered() const;
  void look_for_end(const std::vector<PairStall>& waiting, TimePoint time);

  DataPlane* const plane_;
  PairCarrier* const carrier_;
  std::map<Key, Offer> offers_;                  // to this rank, without a receive yet
  std::map<Key, Posted> posted_;                 // receives without an offer yet
  std::list<Sending> copying_;                   // to the host, before they are offered
  TimePoint last_look_{};                        // at those
  Status failure_;                               // of one of those
  std::map<std::uint64_t, Sending> offered_;     // without an answer yet
  std::map<int, std::size_t> unanswered_;        // of those, by peer
  std::map<int, std::deque<Sending>> waiting_;   // that cannot be offered yet, by peer
  std::map<int, std::deque<Sending>> accepted_;  // by peer, in the order of their answers
  std::list<Receiving> landed_;                  // on the host, and not in their memory yet
  std::list<Carried> carried_;                   // by the carrier, instead of the lane
  std::map<int, Inlet> inlets_;                  // by peer
  std::map<int, std::size_t> known_offers_;      // in offers_, by peer
  std::map<int, std::uint64_t> last_offers_;     // their numbers, by peer
  std::vector<std::pair<int, std::string>> messages_;
  std::vector<std::pair<OperationPtr, Status>> ended_;
  StallInspector stalls_;
  const Duration stall_end_after_;  // zero: never
  bool has_ended_ = false;          // the job, for a stall
  std::optional<std::string> stall_end_;
};

}  // namespace hv::runtime
