// The agent's socket and clients that send it any bytes.
// SPDX-License-Identifier: Apache-2.0
//
// The input: a byte and a piece, again and again. Bytes 0 to 2 name the client that sends the
// piece; 3: the piece is a FenceOut of hvrun's; 4: the rank of its first byte ends; 5: that rank is
// lost on another host.
#include "launcher/agent/rendezvous/rank_socket.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "src/net/socket.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::launcher;

namespace {

class Host {
 public:
  Host()
      : socket_(loop_, JobKey{},
                {[this](wire::FenceIn fence) { told_.push_back(std::move(fence)); },
                 [](const wire::RankLost&) {}, [](const wire::FenceStalled&) {},
                 [](const wire::TensorStalled& stalled) {
                   HV_CHECK(stalled.stall.is_plausible(), "nothing that cannot be is passed on");
                 },
                 [](const wire::CallStalled& stalled) {
                   HV_CHECK(stalled.by < 2 && stalled.stall.is_plausible(), "the same");
                 }}) {
    static const std::string job = "fuzz-" + std::to_string(::getpid());
    HV_CHECK(socket_.listen(job, 0).ok(), "it listens");
    socket_.expect({0, 1});
    for (UniqueFd& client : clients_)
      HV_CHECK(connect_unix(socket_.name(), &client).ok(), "clients connect");
    turn();
  }

  void say(std::size_t client, std::string_view bytes) {
    (void)::send(clients_[client].get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    turn();
  }
  void pass(std::string_view bytes) {
    wire::FenceOut out;
    if (decode(bytes, &out)) socket_.pass_fence(out);
  }
  void end(std::uint32_t rank) {
    (void)socket_.rank_ended(rank);
    HV_CHECK(socket_.reports().step_times(rank).is_plausible(),
             "nothing that cannot be is passed on");
  }
  void lose(std::uint32_t rank) { socket_.report_loss(rank, "is gone"); }

  // hvrun answers fences with what it was told, as in a job of one host.
  void turn() {
    loop_.run_once(now());
    for (wire::FenceIn& fence : std::exchange(told_, {}))
      socket_.pass_fence({fence.epoch, fence.number, std::move(fence.puts)});
  }
  // What clients were told are whole messages of an agent.
  void check_replies() {
    for (UniqueFd& client : clients_) {
      FrameParser parser(rendezvous::kMaxPayload);
      char bytes[4096];
      ssize_t got = 0;
      while ((got = ::recv(client.get(), bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
        HV_CHECK(parser.feed({bytes, static_cast<std::size_t>(got)}), "frames");
        Frame frame;
        while (parser.next(&frame))
          HV_CHECK(frame.type >= static_cast<std::uint8_t>(rendezvous::Type::kWelcome),
                   "an agent's");
      }
      HV_CHECK(parser.partial_bytes() == 0, "whole ones");
    }
  }

 private:
  EventLoop loop_;
  RankSocket socket_;
  std::vector<wire::FenceIn> told_;
  std::array<UniqueFd, 3> clients_;
};

template <class Message>
std::string said(char client, const Message& message) {
  return client + fuzz::piece(encode_frame_of(message));
}

std::string joined(char client, std::uint32_t rank, std::uint32_t epoch = 0) {
  rendezvous::Join join;
  join.rank = rank;
  join.epoch = epoch;
  return said(client, join);
}

}  // namespace

namespace hv::fuzz {

std::vector<std::string> seeds() {
  using namespace hv::rendezvous;
  const std::string both = joined(0, 0) + joined(1, 1);
  const std::string fence = said(0, Put{"k", "v"}) + said(0, Fence{1}) + said(1, Fence{1});
  return {both + fence + said(1, Get{0, "k"}) + said(1, Get{7, ""}) + said(0, Goodbye{}),
          both + said(0, Lost{1, "silent"}) + "\x04" + piece("\x01") + said(0, Fence{1}) + fence,
          "\x05" + piece("\x02") + both + joined(2, 0) + joined(2, 1, 1) + said(0, Fence{3}),
          both + said(0, Steps{{20, 90, 40, 30, 20}}) + said(1, Steps{{1, 2, 3, 4, 5}}) + "\x04" +
              piece(std::string(1, '\0')) + "\x04" + piece("\x01"),
          both + said(0, Stalled{{61, {1}, 0, "w"}}) + said(1, Stalled{{-1, {}, 0, ""}}),
          said(0, Waits{1, {61, false, "c", "p"}}) + said(1, Waits{2, {61, false, "c", "p"}}),
          both + fence + "\x03" + piece(encode(wire::FenceOut{0, 1, {{1, "a", "b"}}}))};
}

}  // namespace hv::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(fuzz::view(data, size));
  Host host;
  while (!input.empty()) {
    const std::uint8_t what = input.byte();
    const std::string_view piece = input.piece();
    const std::uint32_t rank = piece.empty() ? 0 : static_cast<unsigned char>(piece[0]);
    if (what < 3) host.say(what, piece);
    if (what == 3) host.pass(piece);
    if (what == 4) host.end(rank);
    if (what == 5) host.lose(rank);
  }
  host.turn();
  host.check_replies();
  return 0;
}
