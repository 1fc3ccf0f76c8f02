// AddressProbe: tests which addresses of the other hosts are reachable from here, all at once; a
// proof identifies the right host.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>

#include "launcher/agent/event_loop.h"
#include "src/base/unique_fd.h"
#include "src/net/address.h"
#include "src/wire/authentication.h"
#include "src/wire/messages.h"

namespace hv::launcher {

class AddressProbe {
 public:
  // done is called once, from the loop: when every address has answered or failed, or the time is
  // over. on_proven: gets each connection whose host is proven; without it they are closed.
  using OnProven = std::function<void(std::uint32_t host_id, UniqueFd socket)>;
  AddressProbe(EventLoop& loop, const JobKey& key, std::string job_id,
               const wire::ProbeRequest& request, std::function<void(wire::ProbeReply)> done,
               OnProven on_proven = {});
  ~AddressProbe();
  AddressProbe(const AddressProbe&) = delete;
  AddressProbe& operator=(const AddressProbe&) = delete;

 private:
  struct Attempt {
    std::size_t target = 0;   // index into the reply's results
    std::size_t address = 0;  // index into that target's addresses
    SocketAddress where;
    UniqueFd fd;
    bool is_connected = false;
    Nonce nonce{};
    std::string received;
  };
  void add_attempts(const wire::ProbeRequest& request);
  void start_more();
  void ready(int fd);
  void send_nonce(Attempt& attempt);
  void check_answer(Attempt& attempt);
  void fail(Attempt& attempt, const std::string& reason);
  void close(int fd);
  void finish_if_done();
  void finish();
  void order_results();

  EventLoop& loop_;
  JobKey key_;
  std::string job_id_;
  std::function<void(wire::ProbeReply)> done_;
  OnProven on_proven_;
  wire::ProbeRequest request_;
  wire::ProbeReply reply_;
  std::deque<Attempt> waiting_;
  std::map<int, Attempt> open_;
  EventLoop::Timer deadline_;
};

}  // namespace hv::launcher
