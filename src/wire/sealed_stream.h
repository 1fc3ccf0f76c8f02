// Sealer, Opener: one direction of a connection, encrypted and authenticated. Sans I/O.
// SPDX-License-Identifier: Apache-2.0
//
// For control connections over TCP, once both ends have proven the key (authentication.h):
//   header  24 bytes, once (libsodium's secretstream, XChaCha20-Poly1305)
//   record  length (u32, of what follows), then 1 to kMostSealed bytes and 17 of the seal
// A record that was changed, left out, repeated or put elsewhere breaks the stream: nothing of it,
// nor of what follows, is handed on. Where it ends is for what it carries to say.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "src/wire/authentication.h"

namespace hv {

constexpr std::size_t kMostSealed = 64 << 10;

// The key of one direction of one connection: nobody has it who lacks the job's key, and no other
// connection or direction has the same. direction: "hvrun to agent".
JobKey stream_key(const JobKey& key, const std::string& direction, const Nonce& client,
                  const Nonce& server);

class Sealer {
 public:
  explicit Sealer(const JobKey& key);
  ~Sealer();
  Sealer(Sealer&&) noexcept;
  Sealer& operator=(Sealer&&) noexcept;
  // Appends the bytes to *out as records; before the first of them the header.
  void seal(std::string_view bytes, std::string* out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class Opener {
 public:
  explicit Opener(const JobKey& key);
  ~Opener();
  Opener(Opener&&) noexcept;
  Opener& operator=(Opener&&) noexcept;
  // Takes what has come and appends what whole records held to *out. False: the stream is broken,
  // and stays so.
  bool open(std::string_view sealed, std::string* out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hv
