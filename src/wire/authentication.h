// Proves on a fresh connection that both ends hold the job's key, before a byte is acted on.
// SPDX-License-Identifier: Apache-2.0
//
// Four fixed-size steps, sans I/O (HMAC-SHA-512-256 over both nonces, role and purpose; libsodium crypto_auth):
//   client -> server: nonce_c
//   server -> client: nonce_s, MAC(key, "server" | purpose | nonce_c | nonce_s)
//   client -> server: MAC(key, "client" | purpose | nonce_s | nonce_c)
// purpose binds the connection to what it is for ("ranks 3>1 epoch 0"), so that a proof is no use elsewhere.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace hv {

using JobKey = std::array<unsigned char, 32>;
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
