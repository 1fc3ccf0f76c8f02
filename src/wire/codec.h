// Codec: values to bytes and back, bounded, little-endian; a message lists its fields once for both
// ways.
// SPDX-License-Identifier: Apache-2.0
//
//   struct Exited {
//     std::uint32_t rank;
//     std::string why;
//     void fields(auto& a) { a(rank, why); }
//   };
//
// A Reader never trusts a length: it is checked against the bytes that are left before anything is
// allocated. Nor does it make more than kMostElementBytes of list elements of one message: an empty
// text takes 4 bytes in a message and 32 in memory. Bad input leaves ok() false and every later
// field at its default.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "src/base/check.h"

namespace hv {

// The message holds the job's key: who sends or receives it wipes what it came in (wipe.h).
template <class Message>
concept SecretMessage = requires { requires Message::kIsSecret; };

class Writer {
 public:
  template <class... T>
  void operator()(const T&... values) {
    (write(values), ...);
  }
  std::string take() { return std::move(bytes_); }
  // So that it does not grow, and leave a copy behind, up to this size.
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }

 private:
  template <class T>
  void write(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      bytes_ += static_cast<char>(value);
    } else if constexpr (std::is_enum_v<T>) {
      write(static_cast<std::underlying_type_t<T>>(value));
    } else if constexpr (std::is_arithmetic_v<T>) {
      char raw[sizeof(T)];
      std::memcpy(raw, &value,
                  sizeof(T));  // every host we run on is little-endian (checked in frame.cc)
      bytes_.append(raw, sizeof(T));
    } else {
      const_cast<T&>(value).fields(*this);
    }
  }
  void write_size(std::size_t size) {
    HV_CHECK(size <= UINT32_MAX, "a message's sizes fit into 32 bits");
    write(static_cast<std::uint32_t>(size));
  }
  void write(const std::string& value) {
    write_size(value.size());
    bytes_ += value;
  }
  template <std::size_t N>
  void write(const std::array<unsigned char, N>& value) {
    bytes_.append(reinterpret_cast<const char*>(value.data()), N);
  }
  template <class T, std::size_t N>
  void write(const std::array<T, N>& values) {
    for (const T& value : values) write(value);
  }
  template <class T>
  void write(const std::vector<T>& values) {
    write_size(values.size());
    for (const T& value : values) write(value);
  }
  template <class A, class B>
  void write(const std::pair<A, B>& value) {
    write(value.first);
    write(value.second);
  }
  template <class T>
  void write(const std::optional<T>& value) {
    write(value.has_value());
    if (value) write(*value);
  }

  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class... T>
  void operator()(T&... values) {
    (read(values), ...);
  }
  bool ok() const { return ok_; }
  // Everything was there and nothing is left over.
  bool complete() const { return ok_ && rest_.empty(); }

 private:
  bool take(void* target, std::size_t size) {
    if (!ok_ || rest_.size() < size) {
      ok_ = false;
      return false;
    }
    std::memcpy(target, rest_.data(), size);
    rest_.remove_prefix(size);
    return true;
  }
  template <class T>
  void read(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      unsigned char raw = 0;
      take(&raw, 1);
      if (raw > 1) ok_ = false;
      value = raw == 1;
    } else if constexpr (std::is_enum_v<T>) {
      std::underlying_type_t<T> raw{};
      read(raw);
      value = static_cast<T>(raw);  // the receiver switches over known values and refuses the rest
    } else if constexpr (std::is_arithmetic_v<T>) {
      if (!take(&value, sizeof(T))) value = T{};
    } else {
      value.fields(*this);
    }
  }
  // A length of elements that take at least one byte each.
  std::uint32_t read_length() {
    std::uint32_t length = 0;
    read(length);
    if (length > rest_.size()) ok_ = false;
    return ok_ ? length : 0;
  }
  void read(std::string& value) {
    const std::uint32_t length = read_length();
    value.assign(rest_.substr(0, length));
    rest_.remove_prefix(length);
  }
  template <std::size_t N>
  void read(std::array<unsigned char, N>& value) {
    if (!take(value.data(), N)) value = {};
  }
  template <class T, std::size_t N>
  void read(std::array<T, N>& values) {
    for (T& value : values) read(value);
  }
  template <class T>
  void read(std::vector<T>& values) {
    values.clear();
    const std::uint32_t length = read_length();
    for (std::uint32_t i = 0; i < length && ok_; ++i) {
      if (element_bytes_left_ < sizeof(T)) {
        ok_ = false;
        return;
      }
      element_bytes_left_ -= sizeof(T);
      values.emplace_back();
      read(values.back());
    }
  }
  template <class A, class B>
  void read(std::pair<A, B>& value) {
    read(value.first);
    read(value.second);
  }
  template <class T>
  void read(std::optional<T>& value) {
    bool there = false;
    read(there);
    value.reset();
    if (there && ok_) read(value.emplace());
  }

  static constexpr std::size_t kMostElementBytes = 64 << 20;

  std::string_view rest_;
  std::size_t element_bytes_left_ = kMostElementBytes;
  bool ok_ = true;
};

template <class Message>
std::string encode(const Message& message) {
  Writer writer;
  if constexpr (SecretMessage<Message>) writer.reserve(4096);  // such messages are short
  const_cast<Message&>(message).fields(writer);
  return writer.take();
}

// False, with *message in some valid state, unless the bytes are exactly one such message.
template <class Message>
[[nodiscard]] bool decode(std::string_view bytes, Message* message) {
  Reader reader(bytes);
  message->fields(reader);
  return reader.complete();
}

}  // namespace hv
