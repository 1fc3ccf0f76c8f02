// hvrun-pmix's conversation with the agent that has started it: frames over a Unix socket.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>

#include "src/base/unique_fd.h"
#include "src/wire/frame.h"
#include "src/wire/mpi_wiring.h"

namespace hv::launcher {

class AgentLink {
 public:
  explicit AgentLink(UniqueFd socket) : socket_(std::move(socket)) {}

  // From any thread; blocks while the agent does not read. False: the agent is gone.
  template <class Message>
  bool send(const Message& message) {
    return send_bytes(encode_frame_of(message));
  }
  // Blocks until a whole frame has come. False: the agent is gone, or says what is no frame. One
  // thread.
  bool receive(Frame* frame);

 private:
  bool send_bytes(const std::string& bytes);

  UniqueFd socket_;
  std::mutex writing_;
  FrameParser parser_{wire::kMaxAgentPayload};
};

}  // namespace hv::launcher
