// The kernels that pack and unpack buckets: they move what the host's kernels move, bit for bit,
// and nothing beside. The suite "gpu" runs on real GPUs, too; the rest needs the stand-in.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/kernels.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/device/cuda/kernel_images.h"
#include "runtime/device/half.h"
#include "runtime/device/kernels.h"
#include "tests/fakes/cuda/fake_cuda.h"
#include "tests/unit/cuda/stand_in.h"
#include "tests/unit/device/random_tensors.h"

using namespace hv;
using namespace hv::cuda;
using runtime::Bytes;
using runtime::Compression;
using runtime::element_size;
using runtime::ElementType;

namespace {

constexpr std::size_t kGuard = 32;  // untouched bytes before and behind each tensor
constexpr std::byte kUntouched{0xa5};

std::shared_ptr<const Kernels> load() {
  std::shared_ptr<const Kernels> kernels;
  const Status status = Kernels::load(driver_under_test(), &kernels);
  REQUIRE_MESSAGE(status.ok(), status.message);
  return kernels;
}

const Kernels& kernels() {
  static const std::shared_ptr<const Kernels> one = load();
  return *one;
}

struct Pair {
  ElementType from, to;
};

// Every type to itself, and those that are made smaller and back.
std::vector<Pair> pairs() {
  std::vector<Pair> all;
  for (const ElementType type : runtime::element_types()) all.push_back({type, type});
  for (const ElementType wide : {ElementType::kFloat32, ElementType::kFloat64}) {
    for (const ElementType narrow : {ElementType::kFloat16, ElementType::kBfloat16}) {
      all.push_back({wide, narrow});
      all.push_back({narrow, wide});
    }
  }
  return all;
}

int wire_of(ElementType type) {
  return static_cast<int>(type == ElementType::kFloat16 ? Compression::kFloat16
                                                        : Compression::kBfloat16);
}

// What the host's kernels make of it.
void move_on_host(void* to, const void* from, std::size_t count, const Pair& pair, double factor) {
  const runtime::Kernels& host = runtime::portable_kernels();
  const int row = static_cast<int>(pair.from), result = static_cast<int>(pair.to);
  if (pair.from == pair.to && factor == 1) {
    host.copy(to, from, count * element_size(pair.from));
  } else if (pair.from == pair.to) {
    host.scale[row](to, from, count, factor);
  } else if (runtime::is_narrow_float(pair.to)) {
    host.pack[row][wire_of(pair.to)](to, from, count, factor);
  } else {
    host.unpack[result][wire_of(pair.from)](to, from, count);
    if (factor != 1) host.scale[result](to, to, count, factor);
  }
}

struct Tensor {
  std::size_t count;
  std::size_t from_shift, to_shift;  // bytes past an address of 16
};

// The tensors of a bucket, where they lie in one piece of memory each for sources and targets.
struct Layout {
  std::vector<std::size_t> from, to;
  std::size_t from_bytes = 0, to_bytes = 0;
};

Layout lay_out(const std::vector<Tensor>& tensors, const Pair& pair) {
  const auto next = [](std::size_t* end, std::size_t shift, std::size_t bytes) {
    const std::size_t begin = (*end + kGuard + 15) / 16 * 16 + shift;
    *end = begin + bytes + kGuard;
    return begin;
  };
  Layout layout;
  for (const Tensor& one : tensors) {
    layout.from.push_back(
        next(&layout.from_bytes, one.from_shift, one.count * element_size(pair.from)));
    layout.to.push_back(next(&layout.to_bytes, one.to_shift, one.count * element_size(pair.to)));
  }
  return layout;
}

struct Memory {
  explicit Memory(const Bytes& bytes) : size(bytes.size()) {
    REQUIRE(driver_under_test()->call().allocate(&address, size) == kSuccess);
    REQUIRE(driver_under_test()->call().copy_to_device(address, bytes.data(), size, nullptr) ==
            kSuccess);
    REQUIRE(driver_under_test()->call().stream_synchronize(nullptr) == kSuccess);
  }
  ~Memory() { driver_under_test()->call().free(address); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  Bytes bytes() const {
    Bytes copied(size);
    REQUIRE(driver_under_test()->call().copy_to_host(copied.data(), address, size, nullptr) ==
            kSuccess);
    REQUIRE(driver_under_test()->call().stream_synchronize(nullptr) == kSuccess);
    return copied;
  }

  std::size_t size;
  Address address = 0;
};

// Moves them on a GPU and on the host; the first byte of the targets that differs, or -1.
std::ptrdiff_t first_difference(const std::vector<Tensor>& tensors, const Pair& pair,
                                double factor) {
  const Layout layout = lay_out(tensors, pair);
  const Bytes source = runtime::random_bytes(layout.from_bytes, tensors.size() + 1);
  Bytes expected(layout.to_bytes, kUntouched);
  const Memory from(source), to(expected);
  std::vector<Strip> strips;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    strips.push_back({from.address + layout.from[i], to.address + layout.to[i], tensors[i].count});
    move_on_host(&expected[layout.to[i]], &source[layout.from[i]], tensors[i].count, pair, factor);
  }
  const Status status = kernels().move(nullptr, strips, pair.from, pair.to, {factor});
  REQUIRE_MESSAGE(status.ok(), status.message);
  REQUIRE(driver_under_test()->call().stream_synchronize(nullptr) == kSuccess);
  CHECK(from.bytes() == source);
  const Bytes result = to.bytes();
  const auto wrong = std::mismatch(result.begin(), result.end(), expected.begin()).first;
  return wrong == result.end() ? -1 : wrong - result.begin();
}

void check_alike(const std::vector<Tensor>& tensors, const Pair& pair, double factor) {
  const std::ptrdiff_t at = first_difference(tensors, pair, factor);
  CHECK_MESSAGE(at == -1, std::string(runtime::element_type_name(pair.from))
                              << " to " << std::string(runtime::element_type_name(pair.to))
                              << " times " << factor << " differs at byte " << at);
}

std::vector<double> factors(const Pair& pair) {
  if (pair.from == ElementType::kBool || runtime::is_float8(pair.from)) return {1};
  return {1, 0.5, -3, 1.0 / 3, 1e-5, 1e300, 0, std::numeric_limits<double>::infinity()};
}

template <typename Check>
void for_each_move(Check&& check) {
  for (const Pair& pair : pairs())
    for (const double factor : factors(pair)) check(pair, factor);
}

}  // namespace

TEST_SUITE_BEGIN("gpu");

TEST_CASE("every type is copied, scaled, packed and unpacked as on the host") {
  std::vector<Tensor> tensors;
  for (const std::size_t count : {0, 1, 15, 16, 17, 1000}) tensors.push_back({count, 0, 0});
  for_each_move([&](const Pair& pair, double factor) { check_alike(tensors, pair, factor); });
}

TEST_CASE("tensors at any address are moved as on the host") {
  std::vector<Tensor> tensors;
  for (std::size_t from = 0; from < 16; ++from)
    for (std::size_t to = 0; to < 16; ++to) tensors.push_back({40 + from + 3 * to, from, to});
  for_each_move([&](const Pair& pair, double factor) { check_alike(tensors, pair, factor); });
}

TEST_CASE("tensors larger than a chunk are moved as on the host") {
  const std::vector<Tensor> tensors = {{16383, 0, 0}, {16384, 8, 8}, {40001, 2, 10}, {16385, 0, 0}};
  for_each_move([&](const Pair& pair, double factor) {
    if (factor == 1 || factor == 0.5) check_alike(tensors, pair, factor);
  });
}

TEST_CASE("a thousand tensors of all sizes are moved as on the host") {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < 1000; ++i)
    tensors.push_back({i % 100 == 99 ? 20000 : i % 37, i % 3 * 4, i % 5 * 4});
  check_alike(tensors, {ElementType::kFloat32, ElementType::kFloat32}, 1);
  check_alike(tensors, {ElementType::kFloat32, ElementType::kFloat16}, 0.25);
  check_alike(tensors, {ElementType::kBfloat16, ElementType::kFloat32}, 4);
}

// A card's own instructions give NaNs of another kind, and could give subnormal numbers up.
TEST_CASE("every float16 is widened, and what lies at it and beside it made one, as on the host") {
  Bytes halves(2 * 65536), beside(4 * 5 * 65536);
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    std::memcpy(&halves[2 * bits], &half, 2);
    const std::uint32_t wide = runtime::bits_from_float(runtime::float_from_half(half));
    const std::uint32_t near[] = {wide, wide + 1, wide + 0xfff, wide + 0x1000, wide + 0x1001};
    std::memcpy(&beside[20 * bits], near, sizeof near);
  }
  const auto check_moved = [](const Bytes& values, const Pair& pair) {
    const std::size_t count = values.size() / element_size(pair.from);
    const Memory from(values), to(Bytes(count * element_size(pair.to)));
    const Strip strip = {from.address, to.address, count};
    REQUIRE(kernels().move(nullptr, {&strip, 1}, pair.from, pair.to, {1}).ok());
    REQUIRE(driver_under_test()->call().stream_synchronize(nullptr) == kSuccess);
    Bytes expected(to.size);
    move_on_host(expected.data(), values.data(), count, pair, 1);
    CHECK(to.bytes() == expected);
  };
  check_moved(halves, {ElementType::kFloat16, ElementType::kFloat32});
  check_moved(beside, {ElementType::kFloat32, ElementType::kFloat16});
}

TEST_CASE("a tensor is scaled in its place") {
  const Bytes values = runtime::random_tensor(ElementType::kFloat32, 5000, 1);
  const Memory memory(values);
  const Strip strip = {memory.address, memory.address, 5000};
  REQUIRE(
      kernels().move(nullptr, {&strip, 1}, ElementType::kFloat32, ElementType::kFloat32, {3}).ok());
  REQUIRE(driver_under_test()->call().stream_synchronize(nullptr) == kSuccess);
  Bytes expected(values.size());
  move_on_host(expected.data(), values.data(), 5000, {ElementType::kFloat32, ElementType::kFloat32},
               3);
  CHECK(memory.bytes() == expected);
}

// As the host's kernels finish a sum; values that no 32 bits hold must not go through a float64.
TEST_CASE("integers are divided as on the host, truncating") {
  for (const ElementType type : runtime::element_types()) {
    if (!runtime::is_integer(type)) continue;
    const Bytes values = runtime::random_bytes(1000 * element_size(type), 1);
    for (const Scaling& scaling : {Scaling{1, 3}, Scaling{1, 1000000007}, Scaling{-0.7, 2}}) {
      const Memory memory(values);
      const Strip strip = {memory.address, memory.address, 1000};
      REQUIRE(kernels().move(nullptr, {&strip, 1}, type, type, scaling).ok());
      REQUIRE(driver_under_test()->call().stream_synchronize(nullptr) == kSuccess);
      Bytes expected(values.size());
      const void* const source = values.data();
      runtime::portable_kernels()
          .reduce[static_cast<int>(type)][static_cast<int>(runtime::Reduction::kSum)](
              expected.data(), &source, 1, 1000,
              {scaling.factor, static_cast<double>(scaling.divisor)});
      CHECK_MESSAGE(memory.bytes() == expected, runtime::element_type_name(type)
                                                    << " / " << scaling.divisor);
    }
  }
}

TEST_CASE("what no kernel moves is refused with its types") {
  const Strip strip = {16, 16, 1};
  const auto words = [&](ElementType from, ElementType to, double factor) {
    const Status status = kernels().move(nullptr, {&strip, 1}, from, to, {factor});
    CHECK(status.code == StatusCode::kUnsupported);
    return status.message;
  };
  CHECK(words(ElementType::kBool, ElementType::kBool, 2) == "no kernel scales bool to bool");
  CHECK(words(ElementType::kFloat8E4M3, ElementType::kFloat8E4M3, 2) ==
        "no kernel scales float8_e4m3 to float8_e4m3");
  CHECK(words(ElementType::kInt32, ElementType::kInt64, 1) == "no kernel scales int32 to int64");
  const Status divided =
      kernels().move(nullptr, {&strip, 1}, ElementType::kFloat32, ElementType::kFloat32, {1, 2});
  CHECK(divided.message == "no kernel scales float32 to float32");
}

TEST_SUITE_END();

TEST_CASE("a launch that fails is told with its GPU") {
  tell_faults("cuLaunchKernel@1=700");
  const Strip strip = {16, 16, 1};
  const Status status =
      kernels().move(nullptr, {&strip, 1}, ElementType::kInt8, ElementType::kInt8, {});
  tell_faults("");
  CHECK(status.code == StatusCode::kSystem);
  CHECK(status.message ==
        "GPU 1 (stand-in for a GPU): launch a kernel: CUDA_ERROR_ILLEGAL_ADDRESS "
        "(as the stand-in was told)");
}

TEST_CASE("a driver that refuses the fatbin is given the PTX") {
  if (fatbin_image() == nullptr) return;  // built without CUDA's compiler
  tell_faults("cuModuleLoadData@1=209");
  CHECK(load() != nullptr);
  tell_faults("");
}

TEST_CASE("a driver that loads no image is told with what it said of each") {
  tell_faults("cuModuleLoadData@1=222,cuModuleLoadData@2=222");
  std::shared_ptr<const Kernels> none;
  const Status status = Kernels::load(driver_under_test(), &none);
  tell_faults("");
  CHECK(status.code == StatusCode::kUnsupported);
  CHECK(none == nullptr);
  CHECK(status.message.find("PTX: CUDA_ERROR_UNSUPPORTED_PTX_VERSION") != std::string::npos);
  CHECK(status.message.find("try: a newer driver") != std::string::npos);
}

TEST_CASE("a failure that is not the image's own is not taken for a refusal") {
  tell_faults("cuModuleLoadData@1=2");
  std::shared_ptr<const Kernels> none;
  const Status status = Kernels::load(driver_under_test(), &none);
  tell_faults("");
  CHECK(status.code == StatusCode::kSystem);
  CHECK(status.message.find("load the kernels: CUDA_ERROR_OUT_OF_MEMORY") != std::string::npos);
}

TEST_CASE("a card older than the kernels is refused with its capability") {
  ::setenv("HVRUN_FAKE_CUDA_CAPABILITY", "70", 1);
  std::shared_ptr<const Kernels> none;
  const Status status = Kernels::load(driver_under_test(), &none);
  ::unsetenv("HVRUN_FAKE_CUDA_CAPABILITY");
  CHECK(status.code == StatusCode::kUnsupported);
  CHECK(status.message ==
        "GPU 1 (stand-in for a GPU): its compute capability is 7.0, and the "
        "kernels are for 7.5 and newer");
}

TEST_CASE("the stand-in loads a fatbin and PTX, and nothing else") {
  Module module = nullptr;
  const DriverFunctions& call = driver_under_test()->call();
  CHECK(call.load_module(&module,
                         "\x7f"
                         "ELF, of a program") == kInvalidImage);
  REQUIRE(call.load_module(&module, ptx_image()) == kSuccess);
  CHECK(call.unload_module(module) == kSuccess);
}
