// Tests of the digits' file and of the shares that ranks take.
// SPDX-License-Identifier: Apache-2.0
#include "examples/digits/dataset.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>

#include "tests/unit/examples/temporary_file.h"

namespace {

std::string image_line(char label, char grey) {
  return std::string(1, label) + " " + std::string(64, grey) + "\n";
}

std::string small_file(int images) {
  std::string text = "hvrun-digits 1 " + std::to_string(images) + " 64 10\n";
  for (int i = 0; i < images; ++i) text += image_line(static_cast<char>('0' + i % 10), 'g');
  return text;
}

// What load_dataset says of a file with this text; empty when it takes it.
std::string dataset_complaint(const std::string& text) {
  const TemporaryFile file(text);
  try {
    digits::load_dataset(file.path());
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

digits::Images numbered_images(int count) {
  digits::Images images;
  for (int i = 0; i < count; ++i) {
    images.labels.push_back(i);
    images.pixels.insert(images.pixels.end(), digits::kPixels, static_cast<float>(i));
  }
  return images;
}

// The labels, which number the images, of everything a rank sees in an epoch.
std::vector<int> seen(const digits::Images& images, int rank, int size, int batch_size,
                      uint64_t seed, int epoch) {
  digits::Shard shard(images, rank, size, batch_size, seed);
  shard.start_epoch(epoch);
  std::vector<int> labels;
  digits::Images batch;
  for (int i = 0; i < shard.batches(); ++i) {
    shard.copy_batch(i, &batch);
    labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
  }
  return labels;
}

}  // namespace

TEST_CASE("the committed digits are the 1,797 of scikit-learn, every sixth of them for testing") {
  const digits::Dataset dataset = digits::load_dataset(digits::find_dataset(""));
  CHECK(dataset.train.count() == 1498);
  CHECK(dataset.test.count() == 299);
  std::vector<int> of_class(digits::kClasses);
  for (const auto* images : {&dataset.train, &dataset.test})
    for (const int label : images->labels) ++of_class[label];
  CHECK(of_class == std::vector<int>{178, 182, 177, 183, 181, 182, 181, 179, 174, 180});
  // The first image of the file, a nought: its first row is 0 0 5 13 9 1 0 0.
  CHECK(dataset.train.labels[0] == 0);
  CHECK(dataset.train.pixels[2] == 5.0f / 16);
  CHECK(dataset.train.pixels[3] == 13.0f / 16);
}

TEST_CASE("pixels are scaled to 0..1 and the sixth image tests") {
  const TemporaryFile file(small_file(12));
  const digits::Dataset dataset = digits::load_dataset(file.path());
  CHECK(dataset.train.labels == std::vector<int>{0, 1, 2, 3, 4, 6, 7, 8, 9, 0});
  CHECK(dataset.test.labels == std::vector<int>{5, 1});
  CHECK(std::all_of(dataset.train.pixels.begin(), dataset.train.pixels.end(),
                    [](float p) { return p == 1.0f; }));
}

TEST_CASE("a file that is no digits file is refused with its line and fault") {
  const std::string good = small_file(6);
  CHECK(dataset_complaint(good).empty());
  CHECK(dataset_complaint("").find("line 1: the file is empty") != std::string::npos);
  CHECK(dataset_complaint("P5 8 8\n").find("line 1: no header") != std::string::npos);
  CHECK(dataset_complaint("hvrun-digits 1 6 81 10\n").find("line 1: the header wants") !=
        std::string::npos);
  CHECK(dataset_complaint("hvrun-digits 1 x 64 10\n").find("line 1: the header wants") !=
        std::string::npos);
  CHECK(dataset_complaint("hvrun-digits 1 99999999999999 64 10\n").find("line 1") !=
        std::string::npos);
  CHECK(dataset_complaint("hvrun-digits 1 -6 64 10\n").find("between 6 and") != std::string::npos);
  CHECK(dataset_complaint("hvrun-digits 1 200000 64 10\n").find("between 6 and") !=
        std::string::npos);
  CHECK(dataset_complaint(good.substr(0, good.size() - 67))
            .find("line 7: the file ends after 5 of 6") != std::string::npos);
  CHECK(dataset_complaint(good.substr(0, good.size() - 2)).find("line 7: an image is") !=
        std::string::npos);
  CHECK(dataset_complaint(good + image_line('1', '0')).find("line 8: more lines") !=
        std::string::npos);
  CHECK(dataset_complaint("hvrun-digits 1 6 64 10\n" + image_line('a', '0'))
            .find("line 2: an image") != std::string::npos);
  CHECK(dataset_complaint("hvrun-digits 1 6 64 10\n" + image_line('1', 'h'))
            .find("line 2: a pixel") != std::string::npos);
}

TEST_CASE("a file of one endless line is refused without being read whole") {
  CHECK(dataset_complaint(std::string(1 << 20, 'x')).find("line 1: no header") !=
        std::string::npos);
}

TEST_CASE("a missing file is named") {
  const TemporaryFile file("");
  const std::string missing = file.path() + ".none";
  CHECK_THROWS_WITH(digits::load_dataset(missing),
                    doctest::Contains(("cannot open " + missing).c_str()));
  CHECK(digits::find_dataset("/some/where") == "/some/where");
}

TEST_CASE("the shares of all ranks together are every image once") {
  const digits::Images images = numbered_images(96);
  std::vector<int> all;
  for (int rank = 0; rank < 3; ++rank) {
    const std::vector<int> share = seen(images, rank, 3, 8, 7, 0);
    CHECK(share.size() == 32);
    all.insert(all.end(), share.begin(), share.end());
  }
  std::sort(all.begin(), all.end());
  std::vector<int> expected(96);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(all == expected);
}

TEST_CASE("every rank makes the same number of full batches when images do not divide") {
  const digits::Images images = numbered_images(100);
  for (const int size : {1, 2, 3, 6, 7, 150}) {
    std::set<int> all;
    std::set<size_t> lengths;
    for (int rank = 0; rank < size; ++rank) {
      const std::vector<int> share = seen(images, rank, size, 16, 7, 0);
      lengths.insert(share.size());
      all.insert(share.begin(), share.end());
    }
    CHECK(lengths.size() == 1);
    CHECK(*lengths.begin() % 16 == 0);
    CHECK(all.size() == 100);  // nobody is left out
  }
}

TEST_CASE("the order depends on seed and epoch, and on nothing else") {
  const digits::Images images = numbered_images(50);
  const std::vector<int> order = seen(images, 0, 1, 10, 1, 0);
  CHECK(order == seen(images, 0, 1, 10, 1, 0));
  CHECK(order != seen(images, 0, 1, 10, 1, 1));
  CHECK(order != seen(images, 0, 1, 10, 2, 0));
  // An epoch's order does not depend on the epochs before it: a resumed training sees the same.
  digits::Shard shard(images, 0, 1, 10, 1);
  digits::Images batch;
  shard.start_epoch(5);
  shard.start_epoch(0);
  shard.copy_batch(0, &batch);
  CHECK(batch.labels == std::vector<int>(order.begin(), order.begin() + 10));
}

TEST_CASE("a batch carries each image's own pixels") {
  const digits::Images images = numbered_images(10);
  digits::Shard shard(images, 0, 1, 5, 3);
  shard.start_epoch(0);
  digits::Images batch;
  shard.copy_batch(1, &batch);
  for (int i = 0; i < 5; ++i)
    CHECK(batch.pixels[i * digits::kPixels + 63] == float(batch.labels[i]));
}
