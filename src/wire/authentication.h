// Proves on a fresh connection that both ends hold the job's key, before a byte is acted on.
// SPDX-License-Identifier: Apache-2.0
//
// Four fixed-size steps, sans I/O (HMAC-SHA-512-256 over both nonces, role and purpose; libsodium
// crypto_auth):
//   client -> server: nonce_c
//   server -> client: nonce_s, MAC(key, "server" | purpose | nonce_c | nonce_s)
//   client -> server: MAC(key, "client" | purpose | nonce_s | nonce_c)
// purpose binds the connection to what it is for ("ranks 3>1 epoch 0"), so that a proof is no use
// elsewhere.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace hv {

// 32 bytes in memory of their own that no core dump holds (sodium_malloc), overwritten when freed.
// All zero at first.
class JobKey {
 public:
  static constexpr std::size_t kBytes = 32;
  JobKey();
  JobKey(const JobKey& other);
  JobKey& operator=(const JobKey& other);
  ~JobKey();

  unsigned char* data() { return bytes_; }
  const unsigned char* data() const { return bytes_; }
  std::size_t size() const { return kBytes; }
  unsigned char& operator[](std::size_t i) { return bytes_[i]; }
  void fill(unsigned char value);
  // A message that holds one has `kIsSecret = true`, so that no buffer keeps a copy (codec.h,
  // frame.h).
  template <class Archive>
  void fields(Archive& archive) {
    for (std::size_t i = 0; i < kBytes; ++i) archive(bytes_[i]);
  }

 private:
  unsigned char* bytes_;
};

constexpr std::size_t kNonceBytes = 32;
constexpr std::size_t kProofBytes = 32;
using Nonce = std::array<unsigned char, kNonceBytes>;
using Proof = std::array<unsigned char, kProofBytes>;

JobKey random_key();
Nonce random_nonce();
std::string random_hex(std::size_t bytes);
// BLAKE2b of the bytes, 128 bits in hex: names a content.
std::string content_digest(const std::string& content);

Proof server_proof(const JobKey& key, const std::string& purpose, const Nonce& client,
                   const Nonce& server);
Proof client_proof(const JobKey& key, const std::string& purpose, const Nonce& client,
                   const Nonce& server);
// Constant time.
bool equal_proofs(const Proof& a, const Proof& b);

}  // namespace hv
