// What ranks say to each other before they have met: rank 0's answer with the key ('K'), frames of
// a star ('F'), what rank 0 gives all ('G'), and the cards and puts of the store above ('S').
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "src/rendezvous/gathered_store.h"
#include "src/rendezvous/slurm_step.h"
#include "src/rendezvous/star_exchange.h"
#include "src/wire/agent_greeting.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;

namespace {

constexpr std::uint64_t kMost = 1 << 16;
constexpr std::size_t kRanks = 3;

// Frames come cut anywhere, and are the same as in one piece.
void take_frames(fuzz::Input input) {
  const std::size_t step = std::max<std::size_t>(input.byte(), 1);
  std::string at_once(input.rest()), left = at_once, come, bytes, other;
  for (;;) {
    FrameState state = take_frame(&come, kMost, &bytes);
    while (state == FrameState::kPartial && !left.empty()) {
      come += left.substr(0, step);
      left.erase(0, step);
      state = take_frame(&come, kMost, &bytes);
    }
    HV_CHECK(state == take_frame(&at_once, kMost, &other), "alike however it is cut");
    if (state != FrameState::kWhole) return;
    HV_CHECK(bytes == other && bytes.size() <= kMost, "the same bytes, no more than may come");
  }
}

void take_key(fuzz::Input input) {
  const std::string words(input.piece());
  const std::string_view answer = input.rest();
  JobKey key, again;
  if (!decode_key_answer(answer, words, &key)) return;
  const std::string same = encode_key_answer(key, words);
  HV_CHECK(same.size() == answer.size() && same.ends_with(words), "an answer has one size");
  HV_CHECK(decode_key_answer(same, words, &again) && key_as_text(key) == key_as_text(again),
           "and one key");
  HV_CHECK(!decode_key_answer(answer, words + "x", &again), "it is for who asked");
}

void take_answer(std::string_view bytes) {
  std::vector<std::string> all, again;
  if (!decode_gathered(bytes, kRanks, &all)) return;
  HV_CHECK(all.size() == kRanks, "a word of each rank");
  HV_CHECK(decode_gathered(encode_gathered(all), kRanks, &again) && again == all, "and the same");
}

// Others say what the input holds; this rank's own words go nowhere.
class SaidExchange : public Exchange {
 public:
  explicit SaidExchange(fuzz::Input input) : input_(input) {}
  int rank() const override { return 1; }
  int size() const override { return kRanks; }
  Status gather(const std::string& mine, const WaitLimits&,
                std::vector<std::string>* all) override {
    all->assign(kRanks, mine);
    for (const std::size_t rank : {0, 2}) (*all)[rank] = input_.piece();
    return Status::success();
  }

 private:
  fuzz::Input input_;
};

void meet(fuzz::Input input) {
  std::unique_ptr<Store> store;
  GatheredStore::Meeting meeting;
  const auto exchange = std::make_shared<SaidExchange>(input);
  const WaitLimits limits{std::chrono::milliseconds(1)};
  if (!GatheredStore::meet(exchange, "here", limits, 0, &store, &meeting).ok()) return;
  HV_CHECK(meeting.hosts.size() == kRanks && meeting.hosts[1] == "here", "a host of each rank");
  JobKey key;
  HV_CHECK(store->job_key(&key).ok(), "a key");
  (void)store->put("address", "mine");
  if (!store->fence(limits.timeout).ok()) return;
  std::string value;
  HV_CHECK(store->get(1, "address", &value).ok() && value == "mine", "what this rank has put");
  for (const int rank : {-1, 0, 2, 3}) (void)store->get(rank, "address", &value);
}

}  // namespace

namespace hv::fuzz {

std::vector<std::string> seeds() {
  // What a rank says itself is what others may say.
  class Recorder : public Exchange {
   public:
    int rank() const override { return 0; }
    int size() const override { return 1; }
    Status gather(const std::string& mine, const WaitLimits&,
                  std::vector<std::string>* all) override {
      said.push_back(mine);
      *all = {mine};
      return Status::success();
    }
    std::vector<std::string> said;
  };
  const auto recorder = std::make_shared<Recorder>();
  std::unique_ptr<Store> store;
  GatheredStore::Meeting meeting;
  (void)GatheredStore::meet(recorder, "h", {std::chrono::milliseconds(1)}, 0, &store, &meeting);
  (void)store->put("address", "there");
  (void)store->fence(std::chrono::milliseconds(1));
  std::string talk = "S";
  for (const std::string& words : recorder->said) talk += piece(words) + piece(words);
  return {talk, "F\3" + frame_head("abc") + "abc" + frame_head("") + frame_head("d") + "d",
          "G" + encode_gathered({"a", "", "c"}),
          "K" + piece("7.9 ab") + encode_key_answer(JobKey(), "7.9 ab")};
}

}  // namespace hv::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(fuzz::view(data, size));
  const char who = static_cast<char>(input.byte());
  if (who == 'K') take_key(input);
  if (who == 'F') take_frames(input);
  if (who == 'G') take_answer(input.rest());
  if (who == 'S') meet(input);
  return 0;
}
