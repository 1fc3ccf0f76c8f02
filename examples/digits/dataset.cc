// Parsing with limits, the search for the data file, and the shuffle.
// SPDX-License-Identifier: Apache-2.0
#include "examples/digits/dataset.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <stdexcept>

namespace digits {
namespace {

constexpr int kMaxImages = 100'000;
constexpr int kMaxGrey = 16;
constexpr int kTestEvery = 6;

[[noreturn]] void refuse(const std::string& path, int line, const std::string& fault) {
  throw std::runtime_error("reading the digits from " + path + ", line " + std::to_string(line) +
                           ": " + fault +
                           ". Is this a file that examples/data/make_digits.py wrote?");
}

// Reads at most `limit` characters of a line: a file of another kind may have no line end at all.
bool read_line(std::istream& stream, size_t limit, std::string* line) {
  line->clear();
  for (int c = stream.get(); c != std::char_traits<char>::eof(); c = stream.get()) {
    if (c == '\n') return true;
    line->push_back(static_cast<char>(c));
    if (line->size() > limit) return true;
  }
  return !line->empty();
}

int grey_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'g') return 10 + (c - 'a');
  return -1;
}

int parse_header(const std::string& path, const std::string& line) {
  const std::string prefix = "hvrun-digits 1 ";
  const std::string suffix = std::to_string(kPixels) + " " + std::to_string(kClasses);
  int count = 0;
  if (!line.starts_with(prefix)) refuse(path, 1, "no header 'hvrun-digits 1'");
  const auto end = std::from_chars(line.data() + prefix.size(), line.data() + line.size(), count);
  if (end.ec != std::errc{} || line.substr(end.ptr - line.data()) != ' ' + suffix)
    refuse(path, 1, "the header wants 'hvrun-digits 1 IMAGES " + suffix + "'");
  if (count < kTestEvery || count > kMaxImages)
    refuse(path, 1, "between 6 and 100000 images are possible, not " + std::to_string(count));
  return count;
}

void parse_image(const std::string& path, int line_number, const std::string& line,
                 Images* images) {
  if (line.size() != 2 + kPixels || line[1] != ' ' || line[0] < '0' || line[0] > '9')
    refuse(path, line_number, "an image is a digit, a space and 64 characters");
  for (const char c : line.substr(2)) {
    const int grey = grey_value(c);
    if (grey < 0) refuse(path, line_number, "a pixel is one of 0-9 and a-g");
    images->pixels.push_back(static_cast<float>(grey) / kMaxGrey);
  }
  images->labels.push_back(line[0] - '0');
}

std::filesystem::path program_folder() {
  std::error_code ignored;  // without /proc only the other places are looked at
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
}

}  // namespace

Dataset load_dataset(const std::string& path) {
  std::ifstream stream(path);
  if (!stream)
    throw std::runtime_error("reading the digits: cannot open " + path + ": " +
                             std::strerror(errno));
  std::string line;
  const size_t limit = 2 + kPixels;
  if (!read_line(stream, limit, &line)) refuse(path, 1, "the file is empty");
  const int count = parse_header(path, line);
  Dataset dataset;
  for (int i = 0; i < count; ++i) {
    if (!read_line(stream, limit, &line))
      refuse(
          path, i + 2,
          "the file ends after " + std::to_string(i) + " of " + std::to_string(count) + " images");
    parse_image(path, i + 2, line,
                i % kTestEvery == kTestEvery - 1 ? &dataset.test : &dataset.train);
  }
  if (read_line(stream, limit, &line)) refuse(path, count + 2, "more lines than the header says");
  return dataset;
}

std::string find_dataset(const std::string& given) {
  if (!given.empty()) return given;
  const std::filesystem::path folder = program_folder();
  const std::filesystem::path places[] = {folder / "digits.txt", folder / "data/digits.txt",
                                          folder / "../share/hvrun/examples/data/digits.txt",
                                          HVRUN_EXAMPLE_DATA};
  std::string tried;
  for (const auto& place : places) {
    std::error_code ignored;  // a place that cannot be looked at holds no data
    if (std::filesystem::is_regular_file(place, ignored)) return place.lexically_normal().string();
    tried += "\n  " + place.lexically_normal().string();
  }
  throw std::runtime_error("the digits are in none of these places; name the file with --data:" +
                           tried);
}

Shard::Shard(const Images& images, int rank, int size, int batch_size, uint64_t seed)
    : images_(images),
      rank_(rank),
      size_(size),
      batch_size_(batch_size),
      seed_(seed),
      order_(images.count()) {
  const int64_t images_a_step = int64_t{batch_size} * size;
  batches_ = static_cast<int>((images.count() + images_a_step - 1) / images_a_step);
}

// Fisher and Yates by hand: std::shuffle may differ between standard libraries, and with it the
// weights.
void Shard::start_epoch(int epoch) {
  std::mt19937_64 random(seed_ + 0x9e3779b97f4a7c15u * static_cast<uint64_t>(epoch + 1));
  std::iota(order_.begin(), order_.end(), 0);
  for (size_t i = order_.size() - 1; i > 0; --i) std::swap(order_[i], order_[random() % (i + 1)]);
}

void Shard::copy_batch(int number, Images* batch) const {
  batch->pixels.resize(size_t(batch_size_) * kPixels);
  batch->labels.resize(batch_size_);
  for (int i = 0; i < batch_size_; ++i) {
    const int64_t turn = (int64_t{number} * batch_size_ + i) * size_ + rank_;
    const int image = order_[turn % images_.count()];
    std::copy_n(&images_.pixels[size_t(image) * kPixels], kPixels,
                &batch->pixels[size_t(i) * kPixels]);
    batch->labels[i] = images_.labels[image];
  }
}

}  // namespace digits
