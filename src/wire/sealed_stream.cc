// SPDX-License-Identifier: Apache-2.0
#include "src/wire/sealed_stream.h"

#include <sodium.h>

#include <cstdint>
#include <cstring>

#include "src/base/check.h"

namespace hv {
namespace {

constexpr std::size_t kHeaderBytes = crypto_secretstream_xchacha20poly1305_HEADERBYTES;
constexpr std::size_t kSealBytes = crypto_secretstream_xchacha20poly1305_ABYTES;
using Length = std::uint32_t;  // little-endian, as our hosts are (frame.cc)
static_assert(JobKey::kBytes == crypto_secretstream_xchacha20poly1305_KEYBYTES);
static_assert(JobKey::kBytes >= crypto_generichash_KEYBYTES_MIN &&
              JobKey::kBytes <= crypto_generichash_KEYBYTES_MAX);

unsigned char* raw(char* bytes) { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* raw(const char* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}

}  // namespace

JobKey stream_key(const JobKey& key, const std::string& direction, const Nonce& client,
                  const Nonce& server) {
  HV_CHECK(sodium_init() >= 0, "libsodium starts");
  std::string message = "hvrun stream " + direction + '\0';
  message.append(reinterpret_cast<const char*>(client.data()), client.size());
  message.append(reinterpret_cast<const char*>(server.data()), server.size());
  JobKey result;
  crypto_generichash(result.data(), result.size(), raw(message.data()), message.size(), key.data(),
                     key.size());
  return result;
}

struct Sealer::State {
  crypto_secretstream_xchacha20poly1305_state stream{};
  std::string header = std::string(kHeaderBytes, '\0');  // until it has gone out
  ~State() { sodium_memzero(&stream, sizeof stream); }
};

Sealer::Sealer(const JobKey& key) : state_(std::make_unique<State>()) {
  HV_CHECK(sodium_init() >= 0, "libsodium starts");
  crypto_secretstream_xchacha20poly1305_init_push(&state_->stream, raw(state_->header.data()),
                                                  key.data());
}
Sealer::~Sealer() = default;
Sealer::Sealer(Sealer&&) noexcept = default;
Sealer& Sealer::operator=(Sealer&&) noexcept = default;

void Sealer::seal(std::string_view bytes, std::string* out) {
  out->append(state_->header);
  state_->header.clear();
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kMostSealed);
    bytes.remove_prefix(piece.size());
    const auto length = static_cast<Length>(piece.size() + kSealBytes);
    out->append(reinterpret_cast<const char*>(&length), sizeof length);
    const std::size_t at = out->size();
    out->resize(at + length);
    crypto_secretstream_xchacha20poly1305_push(&state_->stream, raw(out->data() + at), nullptr,
                                               raw(piece.data()), piece.size(), nullptr, 0, 0);
  }
}

struct Opener::State {
  JobKey key;
  crypto_secretstream_xchacha20poly1305_state stream{};
  std::string pending;  // of a record that is not whole yet
  bool has_header = false;
  bool is_broken = false;
  ~State() { sodium_memzero(&stream, sizeof stream); }
};

Opener::Opener(const JobKey& key) : state_(std::make_unique<State>()) {
  HV_CHECK(sodium_init() >= 0, "libsodium starts");
  state_->key = key;
}
Opener::~Opener() = default;
Opener::Opener(Opener&&) noexcept = default;
Opener& Opener::operator=(Opener&&) noexcept = default;

bool Opener::open(std::string_view sealed, std::string* out) {
  State& state = *state_;
  if (state.is_broken) return false;
  state.pending.append(sealed);
  std::size_t at = 0;
  if (!state.has_header && state.pending.size() >= kHeaderBytes) {
    state.is_broken = crypto_secretstream_xchacha20poly1305_init_pull(
                          &state.stream, raw(state.pending.data()), state.key.data()) != 0;
    state.has_header = true;
    state.key.fill(0);
    at = kHeaderBytes;
  }
  while (state.has_header && !state.is_broken && state.pending.size() - at >= sizeof(Length)) {
    Length length = 0;
    std::memcpy(&length, state.pending.data() + at, sizeof length);
    if (length <= kSealBytes || length > kMostSealed + kSealBytes) {
      state.is_broken = true;
      break;
    }
    if (state.pending.size() - at - sizeof length < length) break;
    const std::size_t begin = out->size();
    out->resize(begin + length - kSealBytes);
    if (crypto_secretstream_xchacha20poly1305_pull(
            &state.stream, raw(out->data() + begin), nullptr, nullptr,
            raw(state.pending.data() + at + sizeof length), length, nullptr, 0) != 0) {
      out->resize(begin);
      state.is_broken = true;
    }
    at += sizeof length + length;
  }
  if (state.is_broken) return false;
  state.pending.erase(0, at);
  return true;
}

}  // namespace hv
