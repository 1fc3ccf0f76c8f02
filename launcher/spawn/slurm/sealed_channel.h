// SealedChannel: an AgentChannel over a TCP connection whose both ends have proven the key.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <string>

#include "launcher/spawn/spawner.h"
#include "src/wire/agent_greeting.h"
#include "src/wire/sealed_stream.h"

namespace hv::launcher {

using TcpSocket = boost::asio::generic::stream_protocol::socket;

class SealedChannel : public AgentChannel {
 public:
  SealedChannel(TcpSocket socket, const ControlKeys& keys);

  boost::asio::awaitable<std::size_t> read_some(boost::asio::mutable_buffer buffer) override;
  boost::asio::awaitable<bool> write(boost::asio::const_buffer buffer) override;
  void close() override;
  std::string last_words() const override { return words_; }

 private:
  TcpSocket socket_;
  Sealer sealer_;
  Opener opener_;
  std::string sealed_;   // room for what comes
  std::string arrived_;  // opened, from taken_ on not yet read
  std::size_t taken_ = 0;
  std::string words_;
};

}  // namespace hv::launcher
