// SPDX-License-Identifier: Apache-2.0
#include "src/wire/authentication.h"

#include <sodium.h>

#include <cstring>

#include "src/base/check.h"
#include "src/base/text.h"

namespace hv {
namespace {

void need_sodium() { HV_CHECK(sodium_init() >= 0, "libsodium starts"); }

Proof proof(const char* role, const JobKey& key, const std::string& purpose, const Nonce& first,
            const Nonce& second) {
  static_assert(kProofBytes == crypto_auth_BYTES && JobKey::kBytes == crypto_auth_KEYBYTES);
  need_sodium();
  std::string message = std::string("hvrun ") + role + '\0' + purpose + '\0';
  message.append(reinterpret_cast<const char*>(first.data()), first.size());
  message.append(reinterpret_cast<const char*>(second.data()), second.size());
  Proof result;
  crypto_auth(result.data(), reinterpret_cast<const unsigned char*>(message.data()), message.size(),
              key.data());
  return result;
}

}  // namespace

JobKey::JobKey() {
  need_sodium();
  bytes_ = static_cast<unsigned char*>(sodium_malloc(kBytes));
  HV_CHECK(bytes_ != nullptr, "there are two pages of memory for the job's key");
  fill(0);
}

JobKey::JobKey(const JobKey& other) : JobKey() { *this = other; }

JobKey& JobKey::operator=(const JobKey& other) {
  std::memmove(bytes_, other.bytes_, kBytes);
  return *this;
}

JobKey::~JobKey() { sodium_free(bytes_); }

void JobKey::fill(unsigned char value) { std::memset(bytes_, value, kBytes); }

JobKey random_key() {
  JobKey key;
  randombytes_buf(key.data(), key.size());
  return key;
}

Nonce random_nonce() {
  need_sodium();
  Nonce nonce;
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

std::string random_hex(std::size_t bytes) {
  need_sodium();
  std::string raw(bytes, '\0');
  randombytes_buf(raw.data(), raw.size());
  return hex(raw.data(), raw.size());
}

std::string content_digest(const std::string& content) {
  need_sodium();
  unsigned char digest[crypto_generichash_BYTES_MIN];
  crypto_generichash(digest, sizeof digest, reinterpret_cast<const unsigned char*>(content.data()),
                     content.size(), nullptr, 0);
  return hex(digest, sizeof digest);
}

Proof server_proof(const JobKey& key, const std::string& purpose, const Nonce& client,
                   const Nonce& server) {
  return proof("server", key, purpose, client, server);
}

Proof client_proof(const JobKey& key, const std::string& purpose, const Nonce& client,
                   const Nonce& server) {
  return proof("client", key, purpose, server, client);
}

bool equal_proofs(const Proof& a, const Proof& b) {
  need_sodium();
  return sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace hv
