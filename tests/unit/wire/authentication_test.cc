// Tests of src/wire/authentication.
// SPDX-License-Identifier: Apache-2.0
#include "src/wire/authentication.h"

#include <doctest/doctest.h>

#include <set>

#include "src/base/text.h"

using namespace std::string_literals;

namespace {

constexpr const char* kPurpose = "ranks 3>1 epoch 0";

// What the two ends of one connection hold: fixed, so that every run sees the same bits.
struct Connection {
  hv::JobKey key{};
  hv::Nonce client{}, server{};
  std::string purpose = kPurpose;
  Connection() {
    for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<unsigned char>(i);
    client.fill(0x11);
    server.fill(0x22);
  }
  hv::Proof of_server() const { return hv::server_proof(key, purpose, client, server); }
  hv::Proof of_client() const { return hv::client_proof(key, purpose, client, server); }
};

// That neither proof made in `other` is worth anything in the connection as it was agreed.
bool is_refused(const Connection& other) {
  const Connection agreed;
  return !hv::equal_proofs(agreed.of_server(), other.of_server()) &&
         !hv::equal_proofs(agreed.of_client(), other.of_client());
}

template <class Bytes>
void flip(Bytes* bytes, std::size_t bit) {
  (*bytes)[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
}

}  // namespace

// The expected bytes are Python's hmac.new(key, message, "sha512").digest()[:32].
TEST_CASE("proofs are the HMAC that the header describes, so that builds can meet") {
  const Connection connection;
  const auto text = [](const hv::Proof& proof) { return hv::hex(proof.data(), proof.size()); };
  CHECK(text(connection.of_server()) ==
        "c02d9a56a4ae17542385ee51445c68596b04ef6f17d481b72ce00f44bdea2d2e");
  CHECK(text(connection.of_client()) ==
        "2273d245f6fa2383e530b44bff0e234d475dfd7fa842d940b41fe775036cba2f");
}

TEST_CASE("both ends that hold the same come to the same proofs") {
  CHECK(hv::equal_proofs(Connection().of_server(), Connection().of_server()));
  CHECK(hv::equal_proofs(Connection().of_client(), Connection().of_client()));
}

TEST_CASE("a flipped bit anywhere in key or nonces makes both proofs worthless") {
  for (std::size_t bit = 0; bit < 256; ++bit) {
    CAPTURE(bit);
    Connection key, client, server;
    flip(&key.key, bit);
    CHECK(is_refused(key));
    flip(&client.client, bit);
    CHECK(is_refused(client));
    flip(&server.server, bit);
    CHECK(is_refused(server));
  }
}

TEST_CASE("a flipped bit anywhere in a proof makes it another") {
  const hv::Proof proof = Connection().of_server();
  for (std::size_t bit = 0; bit < 256; ++bit) {
    CAPTURE(bit);
    hv::Proof damaged = proof;
    flip(&damaged, bit);
    CHECK_FALSE(hv::equal_proofs(proof, damaged));
  }
}

TEST_CASE("a proof holds for its purpose only") {
  const std::string purpose = kPurpose;
  std::vector<std::string> others{"",
                                  purpose + " ",
                                  " " + purpose,
                                  purpose + "\0"s,
                                  "\0"s + purpose,
                                  purpose.substr(1),
                                  "ranks 1>3 epoch 0",
                                  "ranks 3>1 epoch 1"};
  for (std::size_t i = 0; i < purpose.size(); ++i) {
    others.push_back(purpose);
    others.back()[i] ^= 1;
  }
  for (const std::string& other : others) {
    CAPTURE(other);
    Connection connection;
    connection.purpose = other;
    CHECK(is_refused(connection));
  }
}

TEST_CASE("a proof seen on one connection is no use on the next, where a nonce is fresh") {
  const Connection seen;
  for (const bool server_is_fresh : {false, true}) {
    Connection next;
    (server_is_fresh ? next.server : next.client) = hv::random_nonce();
    CHECK_FALSE(hv::equal_proofs(seen.of_server(), next.of_server()));
    CHECK_FALSE(hv::equal_proofs(seen.of_client(), next.of_client()));
  }
}

TEST_CASE("a proof sent back by an attacker in the other role is worth nothing") {
  const Connection connection;
  Connection turned = connection;
  std::swap(turned.client, turned.server);
  for (const Connection& at : {connection, turned}) {
    CHECK_FALSE(hv::equal_proofs(connection.of_server(), at.of_client()));
    CHECK_FALSE(hv::equal_proofs(connection.of_client(), at.of_server()));
  }
  CHECK(is_refused(turned));
  // Not even where an attacker echoes the nonce that it was given.
  Connection echoed;
  echoed.server = echoed.client;
  CHECK_FALSE(hv::equal_proofs(echoed.of_server(), echoed.of_client()));
}

TEST_CASE("bytes moved between purpose and nonce do not make the same proof") {
  Connection shifted;
  shifted.purpose += '\0';
  shifted.purpose += '\x11';
  CHECK(is_refused(shifted));
}

TEST_CASE("keys and nonces never come twice, and no byte of them stays the same") {
  std::set<hv::Nonce> nonces;
  std::set<std::string> keys;
  hv::Nonce differing{};
  const hv::Nonce first = hv::random_nonce();
  for (int i = 0; i < 200; ++i) {
    const hv::Nonce nonce = hv::random_nonce();
    for (std::size_t at = 0; at < nonce.size(); ++at)
      differing[at] |= static_cast<unsigned char>(nonce[at] ^ first[at]);
    CHECK(nonces.insert(nonce).second);
    const hv::JobKey key = hv::random_key();
    CHECK(keys.insert(hv::hex(key.data(), key.size())).second);
  }
  for (const unsigned char bits : differing) CHECK(bits != 0);
}

TEST_CASE("random_hex has two digits a byte and differs each time") {
  CHECK(hv::random_hex(0).empty());
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{12}, std::size_t{1000}}) {
    const std::string text = hv::random_hex(bytes);
    CHECK(text.size() == 2 * bytes);
    CHECK(text.find_first_not_of("0123456789abcdef") == std::string::npos);
  }
  CHECK(hv::random_hex(12) != hv::random_hex(12));
}

// The expected digits are Python's hashlib.blake2b(content, digest_size=16).
TEST_CASE("a content's digest is its BLAKE2b of 128 bits") {
  CHECK(hv::content_digest("") == "cae66941d9efbd404e4d88758ea67670");
  CHECK(hv::content_digest("abc") == "cf4ab791c62b8d2b2109c90275287816");
  CHECK(hv::content_digest("\0"s) == "7025e075d5e2f6cde3cc051a31f07660");
}

TEST_CASE("contents that differ in one byte anywhere have different digests") {
  const std::string content(10000, 'x');
  std::set<std::string> digests{hv::content_digest(content), hv::content_digest(content + 'x')};
  for (const std::size_t at : {0u, 63u, 64u, 127u, 128u, 4095u, 4096u, 9999u}) {
    std::string changed = content;
    changed[at] = 'y';
    digests.insert(hv::content_digest(changed));
  }
  CHECK(digests.size() == 10);
}
