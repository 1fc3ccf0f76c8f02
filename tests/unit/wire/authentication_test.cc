// Tests of the proofs. SPDX-License-Identifier: Apache-2.0
#include "src/wire/authentication.h"

#include <doctest/doctest.h>

TEST_CASE("a proof holds for its key, purpose, nonces and role only") {
  const hv::JobKey key = hv::random_key();
  const hv::Nonce client = hv::random_nonce(), server = hv::random_nonce();
  const hv::Proof proof = hv::server_proof(key, "ranks 0>1", client, server);
  CHECK(hv::equal_proofs(proof, hv::server_proof(key, "ranks 0>1", client, server)));
  CHECK_FALSE(hv::equal_proofs(proof, hv::server_proof(key, "ranks 0>2", client, server)));
  CHECK_FALSE(
      hv::equal_proofs(proof, hv::server_proof(hv::random_key(), "ranks 0>1", client, server)));
  CHECK_FALSE(hv::equal_proofs(proof, hv::server_proof(key, "ranks 0>1", server, client)));
  // A proof reflected by an attacker in the other role is worth nothing, whatever the order of nonces.
  CHECK_FALSE(hv::equal_proofs(proof, hv::client_proof(key, "ranks 0>1", client, server)));
  CHECK_FALSE(hv::equal_proofs(proof, hv::client_proof(key, "ranks 0>1", server, client)));
}

TEST_CASE("random values differ and have their size") {
  CHECK(hv::random_key() != hv::random_key());
  CHECK(hv::random_hex(12).size() == 24);
  CHECK(hv::random_hex(12) != hv::random_hex(12));
}

TEST_CASE("a content's digest names the content") {
  CHECK(hv::content_digest("a") == hv::content_digest("a"));
  CHECK(hv::content_digest("a") != hv::content_digest("b"));
  CHECK(hv::content_digest("").size() == 32);
}
