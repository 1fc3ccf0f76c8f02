// Tests of streams that nobody else can read or change.
// SPDX-License-Identifier: Apache-2.0
#include "src/wire/sealed_stream.h"

#include <doctest/doctest.h>

#include <random>

namespace {

hv::JobKey key_of_stream(const std::string& direction, unsigned char seed = 1) {
  hv::JobKey key;
  key.fill(seed);
  hv::Nonce client, server;
  client.fill(2);
  server.fill(3);
  return hv::stream_key(key, direction, client, server);
}

std::string sealed(const std::string& bytes) {
  std::string out;
  hv::Sealer(key_of_stream("there")).seal(bytes, &out);
  return out;
}

std::string some_bytes(std::size_t size) {
  std::mt19937 random(static_cast<unsigned>(size));
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

}  // namespace

TEST_CASE("what is sealed is opened as it was, whatever pieces it comes in") {
  for (const std::size_t size : {0ul, 1ul, 100ul, hv::kMostSealed, hv::kMostSealed + 1, 300000ul}) {
    CAPTURE(size);
    const std::string bytes = some_bytes(size), stream = sealed(bytes);
    CHECK((size < 10 || stream.find(bytes.substr(0, 10)) == std::string::npos));
    for (const std::size_t step : {1ul, 7ul, 5000ul, stream.size() + 1}) {
      hv::Opener opener(key_of_stream("there"));
      std::string out;
      for (std::size_t at = 0; at < stream.size(); at += step)
        REQUIRE(opener.open(std::string_view(stream).substr(at, step), &out));
      CHECK(out == bytes);
    }
  }
}

TEST_CASE("many records follow each other under one header") {
  hv::Sealer sealer(key_of_stream("there"));
  hv::Opener opener(key_of_stream("there"));
  std::string sent, out;
  for (int i = 0; i < 100; ++i) {
    std::string stream;
    const std::string bytes = some_bytes(static_cast<std::size_t>(i) * 37);
    sealer.seal(bytes, &stream);
    sent += bytes;
    REQUIRE(opener.open(stream, &out));
  }
  CHECK(out == sent);
}

TEST_CASE("no bit can be changed: nothing of that record comes out, nor of any after it") {
  const std::string stream = sealed("attack at dawn");
  for (std::size_t bit = 0; bit < stream.size() * 8; ++bit) {
    std::string changed = stream;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ 1 << bit % 8);
    hv::Opener opener(key_of_stream("there"));
    std::string out;
    // A longer length may leave it waiting for more.
    const bool waits = opener.open(changed, &out) && out.empty();
    CHECK(out.empty());
    if (!waits) CHECK_FALSE(opener.open("", &out));
  }
}

TEST_CASE("records that are left out, repeated or swapped break the stream") {
  hv::Sealer sealer(key_of_stream("there"));
  std::string first, second, third;
  sealer.seal("first", &first);
  sealer.seal("second", &second);
  sealer.seal("third", &third);
  const auto opened = [](const std::string& stream, bool* is_whole) {
    hv::Opener opener(key_of_stream("there"));
    std::string out;
    *is_whole = opener.open(stream, &out);
    return out;
  };
  bool is_whole = false;
  CHECK(opened(first + second + third, &is_whole) == "firstsecondthird");
  CHECK(is_whole);
  CHECK(opened(first + third, &is_whole) == "first");
  CHECK_FALSE(is_whole);
  CHECK(opened(first + second + second, &is_whole) == "firstsecond");
  CHECK_FALSE(is_whole);
  CHECK(opened(first + third + second, &is_whole) == "first");
  CHECK_FALSE(is_whole);
}

TEST_CASE("another key, another direction and other nonces open nothing") {
  hv::JobKey key;
  key.fill(1);
  hv::Nonce client, server;
  client.fill(2);
  server.fill(4);
  for (const hv::JobKey& other : {key_of_stream("there", 9), key_of_stream("back"),
                                  hv::stream_key(key, "there", client, server),
                                  hv::stream_key(key, "there", server, client)}) {
    hv::Opener opener(other);
    std::string out;
    CHECK_FALSE(opener.open(sealed("secret"), &out));
    CHECK(out.empty());
  }
}

TEST_CASE("a length that no record has breaks the stream at once") {
  for (const std::string& length :
       {std::string("\x11\0\0\0", 4), std::string("\0\0\0\0", 4), std::string("\x12\0\1\0", 4),
        std::string("\xff\xff\xff\xff")}) {
    hv::Opener opener(key_of_stream("there"));
    std::string out;
    CHECK_FALSE(opener.open(std::string(24, 'h') + length, &out));
  }
}
