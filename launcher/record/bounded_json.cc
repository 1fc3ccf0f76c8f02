// SPDX-License-Identifier: Apache-2.0
#include "launcher/record/bounded_json.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "src/base/text.h"

namespace hv::launcher {
namespace {

using Parsed = nlohmann::json;

// Builds the value that a text holds, until a limit is reached. Json::parse with a callback would
// do, but looks through all elements of an array after each object in it: a minute for an array of
// 200,000 objects. Names are sorted, because an object that keeps their order compares each new
// name with all, and copies all its values whenever it grows.
class Builder {
 public:
  explicit Builder(const JsonLimits& limits) : limits_(limits) {}

  // nlohmann's SAX interface. False ends the parsing.
  bool null() { return add(nullptr) != nullptr; }
  bool boolean(bool value) { return add(value) != nullptr; }
  bool number_integer(std::int64_t value) { return add(value) != nullptr; }
  bool number_unsigned(std::uint64_t value) { return add(value) != nullptr; }
  bool number_float(double value, const std::string&) { return add(value) != nullptr; }
  bool string(std::string& value) { return add(std::move(value)) != nullptr; }
  bool binary(Parsed::binary_t&) { return refuse("it is no JSON"); }  // text has none
  bool start_object(std::size_t) { return open(Parsed::object()); }
  bool end_object() { return close(); }
  bool start_array(std::size_t) { return open(Parsed::array()); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    if (++open_.back().members > limits_.members)
      return refuse("it has an object of more than " + count_of(limits_.members, "member"));
    next_value_ = &(*open_.back().value)[std::move(name)];  // of two with one name the last counts
    return true;
  }
  template <class Exception>
  bool parse_error(std::size_t, const std::string&, const Exception&) {
    return refuse("it is no JSON, or was cut off");
  }

  const std::string& problem() const { return problem_; }
  Parsed take() { return std::move(root_); }

 private:
  struct Open {
    Parsed* value;
    std::size_t members = 0;
  };

  bool refuse(std::string what) {
    problem_ = std::move(what);
    return false;
  }
  // Returns the stored value; nullptr if the limit is reached.
  Parsed* add(Parsed value) {
    if (++values_ > limits_.values) {
      refuse("it has more than " + count_of(limits_.values, "value"));
      return nullptr;
    }
    if (!open_.empty() && open_.back().value->is_array()) {
      open_.back().value->push_back(std::move(value));
      return &open_.back().value->back();
    }
    *next_value_ = std::move(value);
    return next_value_;
  }
  bool open(Parsed value) {
    if (open_.size() == limits_.depth)
      return refuse("it is nested deeper than " + count_of(limits_.depth, "level"));
    Parsed* const added = add(std::move(value));
    if (added) open_.push_back({added});
    return added != nullptr;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  const JsonLimits limits_;
  Parsed root_;
  Parsed* next_value_ = &root_;  // where the next value goes, unless an array is open
  // Containers around the next value. None moves while a later one is open: only the last grows.
  std::vector<Open> open_;
  std::size_t values_ = 0;
  std::string problem_;
};

}  // namespace

std::variant<Parsed, RecordProblem> parse_bounded(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes)
    return RecordProblem{"it is larger than " + format_bytes(limits.bytes)};
  Builder builder(limits);
  if (Parsed::sax_parse(text, &builder)) return builder.take();
  return RecordProblem{builder.problem()};
}

}  // namespace hv::launcher
