// The fabric's Messenger: cuts messages into bytes for the control lanes and puts them together
// again.
// SPDX-License-Identifier: Apache-2.0
//
// On a channel a message is its length (4 bytes, this machine's order: all hosts of a job are
// little-endian) and its bytes. What a channel does not take at once waits in an outbox until
// progress().
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/transport/fabric.h"
#include "runtime/transport/transport.h"

namespace hv::runtime {

class MessageRouter : public Messenger {
 public:
  // on_garbage(rank, reason) is called when a peer sends a length that cannot be.
  MessageRouter(int rank, int size, std::function<void(int, const std::string&)> on_garbage);

  // Every peer must be reached by exactly one transport, added before the first message.
  void add(Transport& transport);

  // Besides a lost peer's words: kSystem for more than kMaxMessageBytes, and nothing is sent.
  Status send(int rank, const void* bytes, std::size_t size) override;
  bool receive(int* rank, std::string* message) override;
  void say_goodbye() override;
  bool has_unsent() const override;

  // Sends what waits and takes in what has arrived.
  void progress();
  // From here on what has not been sent is dropped.
  void drop_unsent();
  bool has_said_goodbye() const { return has_said_goodbye_; }
  // From here on send() to that rank fails with these words, and what waits for it is dropped.
  void cut_off(int rank, const Status& reason);

 private:
  struct Peer {
    Channel* channel = nullptr;
    std::deque<std::string> outbox;  // each with its length in front
    std::size_t sent_of_first = 0;
    std::string incoming;  // length and bytes of the message that is arriving
    Status cut;            // not ok: no use sending
  };

  void flush(Peer* peer);
  void say_goodbye_if_sent();
  void drop_unsent(Peer* peer);
  void take_in(int rank, Peer* peer);
  // Splits whole messages off peer->incoming; false if the peer sent nonsense.
  bool split_messages(int rank, Peer* peer);

  int rank_;
  std::function<void(int, const std::string&)> on_garbage_;
  std::vector<Peer> peers_;
  std::vector<Transport*> transports_;
  std::vector<int> waiting_;  // peers whose outbox is not empty
  std::deque<std::pair<int, std::string>> arrived_;
  std::size_t unsent_ = 0;  // messages in outboxes
  bool is_leaving_ = false;
  bool has_said_goodbye_ = false;
};

}  // namespace hv::runtime
