// Questions down, answers up.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/stall_questions.h"

#include <algorithm>

#include "src/base/text.h"

namespace hv::runtime {
namespace {

bool contains(const std::vector<int>& subtree, std::uint32_t rank) {
  return rank <= INT32_MAX &&
         std::binary_search(subtree.begin(), subtree.end(), static_cast<int>(rank));
}

}  // namespace

void StallQuestions::ask(std::vector<Waiting> stalls, TimePoint time, Messages* out) {
  held_ = std::move(stalls);
  deadline_ = time + patience_;
  words_.clear();
  StallQuestion question{epoch_, ++number_, {}};
  for (const Waiting& stall : held_) {
    for (const std::uint32_t rank : stall.missing) {
      if (question.ranks.size() == kMostAsked) break;
      if (words_.emplace(rank, "").second) question.ranks.push_back(rank);
    }
  }
  pass_down(question, out);
}

void StallQuestions::pass_down(const StallQuestion& question, Messages* out) {
  for (const std::uint32_t rank : question.ranks)
    is_asked_ |= rank == static_cast<std::uint32_t>(tree_.self);
  for (const ControlTree::Child& child : tree_.children) {
    StallQuestion part{question.epoch, question.number, {}};
    for (const std::uint32_t rank : question.ranks)
      if (contains(child.subtree, rank)) part.ranks.push_back(rank);
    if (!part.ranks.empty())
      out->emplace_back(child.rank, encode_control(ControlType::kStallQuestion, part));
  }
}

bool StallQuestions::receive_question(std::string_view bytes, Messages* out) {
  StallQuestion question;
  if (!decode(bytes, &question) || question.epoch != epoch_) return false;
  if (question.ranks.empty() || question.ranks.size() > kMostAsked) return false;
  number_ = question.number;
  pass_down(question, out);
  return true;
}

void StallQuestions::answer(const std::string& words, Messages* out) {
  is_asked_ = false;
  const auto self = static_cast<std::uint32_t>(tree_.self);
  const std::string bounded = words.substr(0, kMostAnswerBytes);
  if (tree_.is_root()) return keep(self, bounded);
  out->emplace_back(tree_.parent, encode_control(ControlType::kStallAnswer,
                                                 StallAnswer{epoch_, number_, self, bounded}));
}

bool StallQuestions::receive_answer(const ControlTree::Child& from, std::string_view bytes,
                                    Messages* out) {
  StallAnswer answer;
  if (!decode(bytes, &answer) || answer.epoch != epoch_) return false;
  if (!contains(from.subtree, answer.rank) || answer.words.empty() ||
      answer.words.size() > kMostAnswerBytes)
    return false;
  if (!tree_.is_root()) {
    out->emplace_back(tree_.parent, encode_control(ControlType::kStallAnswer, answer));
  } else if (answer.number == number_) {  // else it came too late
    keep(answer.rank, answer.words);
  }
  return true;
}

void StallQuestions::keep(std::uint32_t rank, const std::string& words) {
  const auto asked = words_.find(rank);
  if (asked != words_.end()) asked->second = printable(words, kMostAnswerBytes);
}

std::vector<Waiting> StallQuestions::take(TimePoint time) {
  const bool is_known = std::none_of(words_.begin(), words_.end(),
                                     [](const auto& one) { return one.second.empty(); });
  if (held_.empty() || (!is_known && time < deadline_)) return {};
  for (Waiting& stall : held_) {
    for (const std::uint32_t rank : stall.missing) {
      const auto asked = words_.find(rank);
      if (asked == words_.end()) continue;
      const bool has_answered = !asked->second.empty();
      stall.standing.push_back({rank, has_answered ? asked->second : kNoAnswer});
    }
  }
  return std::exchange(held_, {});
}

}  // namespace hv::runtime
