// What two ranks say to each other on a fresh connection, before anything else: who, and a proof.
// SPDX-License-Identifier: Apache-2.0
//
// Fixed sizes, so that nothing from an unproven peer is ever parsed: the client's hello (56 bytes:
// mark, from, to, epoch, use, nonce), the server's nonce and proof (64), the client's proof (32).
// The proof's purpose names the job, both ranks, the epoch and the use, so a proof given elsewhere
// is worth nothing here.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "src/base/status.h"
#include "src/wire/authentication.h"

namespace hv::runtime {

struct Hello {
  char mark[8] = {'H', 'V', 'R', 'U', 'N', 'D', 'P', '1'};
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t epoch = 0;
  std::uint32_t use = 0;
  Nonce nonce{};

  bool has_mark() const;
};
static_assert(sizeof(Hello) == 56);

struct ServerAnswer {
  Nonce nonce{};
  Proof proof{};
};
static_assert(sizeof(ServerAnswer) == 64);

constexpr std::uint32_t kUseHostMemory = 1;
constexpr std::uint32_t kUseData = 2;
// One of several connections for data is told apart by what stands above the use: its number.
constexpr std::uint32_t use_of_stream(int stream) {
  return kUseData | static_cast<std::uint32_t>(stream) << 8;
}
// -1: the use is another one.
constexpr int stream_of_use(std::uint32_t use) {
  return (use & 0xff) == kUseData ? static_cast<int>(use >> 8) : -1;
}

std::string purpose_of(const std::string& job_id, const Hello& hello);

// Both ways on a connected socket, blocking. hello is what the client says; its nonce is filled in
// here.
Status prove_as_client(int socket, const JobKey& key, const std::string& job_id, Hello hello,
                       std::chrono::milliseconds timeout);
// *hello is what the proven client said; expected.to, epoch and use are checked.
Status prove_as_server(int socket, const JobKey& key, const std::string& job_id,
                       const Hello& expected, Hello* hello, std::chrono::milliseconds timeout);

}  // namespace hv::runtime
