// The operations that are timed, on float32: how many elements go in and come out, what they are,
// and whether a result is right. Ours and every peer's program share it.
// SPDX-License-Identifier: Apache-2.0
//
// "B bytes" are the whole tensor: what an allreduce or broadcast works on, an allgather yields, a
// rank gives to an alltoall or a reducescatter, or sends in an exchange. The least is one element
// for each rank's part, so "4 bytes" are four for each rank where a tensor has parts. Beside five
// collectives there is an exchange: each of two ranks sends to the other and receives from it; of
// more ranks the first and the last do, and so inwards.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>

namespace bench {

// A buffer as tensor libraries allocate them: aligned to a cache line.
// Where tensors lie.
struct Memory {
  std::function<void*(std::size_t bytes)> take = [](std::size_t bytes) {
    return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  };
  std::function<void(void*)> give_back = std::free;
};

class Buffer {
 public:
  Buffer(std::size_t count, float value, const Memory& memory = {})
      : memory_(memory), data_(static_cast<float*>(memory.take(count * 4))), count_(count) {
    fill(value);
  }
  ~Buffer() { memory_.give_back(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void fill(float value) { std::fill(data_, data_ + count_, value); }
  float* data() { return data_; }
  std::size_t size() const { return count_; }
  float& operator[](std::size_t i) { return data_[i]; }
  float operator[](std::size_t i) const { return data_[i]; }

 private:
  const Memory memory_;
  float* data_;
  std::size_t count_;
};

inline bool is_operation(const std::string& name) {
  return name == "allreduce" || name == "allgather" || name == "broadcast" || name == "alltoall" ||
         name == "reducescatter" || name == "exchange";
}

struct Operation {
  std::string name;
  int ranks = 1;
  int rank = 0;
  std::size_t whole = 0;  // elements of the whole tensor
  std::size_t part = 0;   // of one rank's part; the whole where there are no parts

  Operation(std::string operation, std::size_t bytes, int size, int me)
      : name(std::move(operation)), ranks(size), rank(me) {
    const auto parts = has_parts() ? static_cast<std::size_t>(size) : 1;
    part = std::max<std::size_t>(1, bytes / sizeof(float) / parts);
    whole = part * parts;
  }
  bool has_parts() const {
    return name != "allreduce" && name != "broadcast" && name != "exchange";
  }
  int other() const { return ranks - 1 - rank; }  // of an exchange
  std::size_t input_count() const { return name == "allgather" ? part : whole; }
  std::size_t output_count() const { return name == "reducescatter" ? part : whole; }

  float input_at(std::size_t i) const {
    const auto me = static_cast<float>(rank + 1), place = static_cast<float>(i / part);
    if (name == "alltoall") return static_cast<float>(rank * ranks) + place + 1;
    return name == "reducescatter" ? me + place : me;
  }
  // root: of a broadcast.
  float output_at(std::size_t i, int root) const {
    const auto place = static_cast<float>(i / part),
               sum = static_cast<float>(ranks * (ranks + 1) / 2);
    if (name == "allreduce") return sum;
    if (name == "broadcast") return static_cast<float>(root + 1);
    if (name == "exchange") return static_cast<float>(other() + 1);
    if (name == "allgather") return place + 1;
    if (name == "alltoall") return place * static_cast<float>(ranks) + static_cast<float>(rank + 1);
    return sum + static_cast<float>(ranks * rank);
  }
  void fill(Buffer& input) const {
    for (std::size_t i = 0; i < input.size(); ++i) input[i] = input_at(i);
  }
  bool is_right(const Buffer& output, int root) const {
    for (std::size_t i = 0; i < output.size(); ++i)
      if (output[i] != output_at(i, root)) return false;
    return true;
  }
};

}  // namespace bench
