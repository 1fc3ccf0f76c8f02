// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/mpi_output.h"

#include <algorithm>
#include <map>

#include "launcher/mpirank/carried_output.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostDigits = 9;  // all that an int holds for certain; a tenth is no tag's

constexpr int kFirstJob = 1;          // to Open MPI; others are what its ranks have spawned
constexpr int kBlankBehindColon = 5;  // from this Open MPI on

// Whose bytes come.
struct Source {
  int rank = kMpirunItself;
  int job = kFirstJob;
};

// What stands at the beginning of a text: a tag, no tag, or what may become one.
struct Match {
  enum class Kind { kNone, kBegun, kTag } kind = Kind::kNone;
  std::size_t size = 0;
  Source source{};
};

// Takes a tag apart from the left.
class TagReader {
 public:
  explicit TagReader(std::string_view text) : text_(text) {}
  void word(std::string_view expected) {
    const std::string_view there = text_.substr(at_, expected.size());
    if (there != expected.substr(0, there.size()))
      is_none_ = true;
    else if (there.size() < expected.size())
      is_begun_ = true;
    at_ += there.size();
  }
  int number() {
    const std::size_t begin = at_;
    int value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' &&
           at_ - begin < kMostDigits)
      value = value * 10 + (text_[at_++] - '0');
    if (at_ == text_.size())
      is_begun_ = true;
    else if (at_ == begin)
      is_none_ = true;
    return value;
  }
  bool goes_on() const { return !is_none_ && !is_begun_; }
  Match match(const Source& source) const {
    if (is_none_) return {};
    if (is_begun_) return {Match::Kind::kBegun};
    return {Match::Kind::kTag, at_, source};
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  bool is_none_ = false, is_begun_ = false;
};

// "<0123456789abcdef 3>"
Match match_hydra_tag(std::string_view text, std::string_view begin) {
  TagReader reader(text);
  reader.word(begin);
  const int rank = reader.goes_on() ? reader.number() : 0;
  if (reader.goes_on()) reader.word(">");
  return reader.match({rank});
}

// "[1,3]<stdout>:", and a blank where is_new
Match match_openmpi_tag(std::string_view text, int stream, bool is_new) {
  TagReader reader(text);
  Source source;
  reader.word("[");
  if (reader.goes_on()) source.job = reader.number();
  if (reader.goes_on()) reader.word(",");
  if (reader.goes_on()) source.rank = reader.number();
  if (reader.goes_on()) reader.word(stream == 1 ? "]<stdout>:" : "]<stderr>:");
  if (reader.goes_on() && is_new) reader.word(" ");
  return reader.match(source);
}

class TaggedOutput : public MpiOutput {
 public:
  TaggedOutput(const Mpirun& mpirun, int stream, const std::string& tag)
      : kind_(mpirun.kind),
        is_new_(mpirun.major >= kBlankBehindColon),
        stream_(stream),
        begin_(kind_ == MpiKind::kHydra ? hydra_tag_begin(tag) : "[") {}

  void feed(std::string_view bytes, const Sink& sink) override {
    held_.append(bytes);
    const std::string text = std::move(held_);
    held_.clear();
    std::string_view rest = text;
    std::size_t at = 0;
    while ((at = rest.find(begin_[0], at)) != std::string_view::npos) {
      const Match match = match_tag(rest.substr(at));
      if (match.kind == Match::Kind::kBegun) break;
      if (match.kind == Match::Kind::kNone) {
        ++at;
        continue;
      }
      give(rest.substr(0, at), sink);
      source_ = match.source;
      rest.remove_prefix(at + match.size);
      at = 0;
    }
    const std::size_t known = std::min(at, rest.size());
    give(rest.substr(0, known), sink);
    held_ = std::string(rest.substr(known));
  }

  void end(const Sink& sink) override {
    give(held_, sink);
    held_.clear();
  }

 private:
  Match match_tag(std::string_view text) const {
    return kind_ == MpiKind::kHydra ? match_hydra_tag(text, begin_)
                                    : match_openmpi_tag(text, stream_, is_new_);
  }

  // A line's end is where mpirun's own words may begin: a rank's next line has a tag.
  void give(std::string_view text, const Sink& sink) {
    if (source_.rank != kMpirunItself) {
      const std::size_t newline = text.find('\n');
      const std::size_t its = newline == std::string_view::npos ? text.size() : newline + 1;
      give_ranks(text.substr(0, its), sink);
      if (newline != std::string_view::npos) source_ = {};
      text.remove_prefix(its);
    }
    if (!text.empty()) sink({kMpirunItself, stream_, text});
  }

  void give_ranks(std::string_view text, const Sink& sink) {
    std::string bytes;
    // Nobody has encoded what processes write that ranks have spawned.
    if (kind_ == MpiKind::kOpenMpi && source_.job == kFirstJob) {
      decoders_[source_.rank].decode(text, &bytes);
      text = bytes;
    }
    if (!text.empty()) sink({source_.rank, stream_, text});
  }

  const MpiKind kind_;
  const bool is_new_;
  const int stream_;
  std::string begin_;                       // of a tag
  Source source_;                           // of the next bytes
  std::string held_;                        // may become a tag
  std::map<int, CarriedDecoder> decoders_;  // by rank; Open MPI's
};

}  // namespace

std::string hydra_tag_begin(const std::string& tag) { return "<" + tag + " "; }

std::unique_ptr<MpiOutput> make_mpi_output(const Mpirun& mpirun, int stream,
                                           const std::string& tag) {
  return std::make_unique<TaggedOutput>(mpirun, stream, tag);
}

}  // namespace hv::launcher
