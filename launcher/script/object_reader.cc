// SPDX-License-Identifier: Apache-2.0
#include "launcher/script/object_reader.h"

#include <algorithm>
#include <set>
#include <utility>

#include "launcher/script/job_time.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostElements = 256;
constexpr int kDeepest = 16;  // a reader of today needs four
// Json::parse with a callback looks through all elements of an array after each object in it.
constexpr std::size_t kMostObjects = 4096;

[[noreturn]] void refuse(const std::string& source, const std::string& what,
                         const std::string& expected) {
  throw Error(ErrorKind::kUsage, "read site file " + printable(source) + ": " + what,
              expected + "; hvrun-site(5) describes the file");
}

// nlohmann-json's words, without its own number and name.
std::string reason_of(const Json::exception& error) {
  const std::string words = error.what();
  const std::size_t end = words.find("] ");
  return printable(end == std::string::npos ? words : words.substr(end + 2), 300);
}

}  // namespace

Json parse_json(std::string_view text, const std::string& source, std::size_t most_bytes) {
  if (text.size() > most_bytes)
    refuse(source, "it is larger than " + format_bytes(most_bytes), "a file of that size at most");
  std::vector<std::set<std::string>> names;  // of the objects that are open
  std::size_t objects = 0;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kDeepest)
      refuse(source, "it is nested deeper than " + std::to_string(kDeepest), "a flatter file");
    if (event == Json::parse_event_t::object_start) {
      if (++objects > kMostObjects)
        refuse(source, "it has more than " + count_of(kMostObjects, "object"), "fewer objects");
      names.emplace_back();
    }
    if (event == Json::parse_event_t::object_end) names.pop_back();
    if (event != Json::parse_event_t::key) return true;
    const std::string name = value.get<std::string>();
    if (!names.back().insert(name).second)
      refuse(source, "'" + printable(name) + "' stands twice in one object", "each name once");
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::exception& error) {
    refuse(source, reason_of(error), "JSON");
  }
}

ObjectReader::ObjectReader(const Json& object, std::string source, std::string path)
    : object_(object), source_(std::move(source)), path_(std::move(path)) {
  if (!object_.is_object())
    refuse(source_, (path_.empty() ? "/" : path_) + " is " + object_.type_name(),
           "expected an object: {\"name\": ...}");
}

void ObjectReader::mistake(const std::string& key, const std::string& what,
                           const std::string& expected) const {
  refuse(source_, path_ + "/" + key + " " + what, "expected " + expected);
}

const Json* ObjectReader::find(const std::string& key) {
  known_.push_back(key);
  const auto found = object_.find(key);
  return found == object_.end() ? nullptr : &*found;
}

std::string ObjectReader::checked_text(const std::string& key, const Json& value,
                                       const TextRule& rule) const {
  if (!value.is_string()) mistake(key, std::string("is ") + value.type_name(), rule.form);
  std::string text = value.get<std::string>();
  if (text.empty()) mistake(key, "is empty", rule.form);
  if (!rule.allows(text)) mistake(key, "is '" + printable(text) + "'", rule.form);
  return text;
}

std::string ObjectReader::text(const std::string& key, const TextRule& rule) {
  const Json* const value = find(key);
  return value ? checked_text(key, *value, rule) : "";
}

std::string ObjectReader::required_text(const std::string& key, const TextRule& rule) {
  std::string value = text(key, rule);
  if (value.empty()) mistake(key, "is missing", rule.form);
  return value;
}

std::vector<std::string> ObjectReader::texts(const std::string& key, const TextRule& rule) {
  std::vector<std::string> all;
  const Json* const value = find(key);
  if (!value) return all;
  if (!value->is_array() || value->size() > kMostElements)
    mistake(key, std::string("is ") + (value->is_array() ? "too long" : value->type_name()),
            "an array of at most " + std::to_string(kMostElements) + " texts");
  for (const Json& each : *value) {
    const std::string place = key + "/" + std::to_string(all.size());
    all.push_back(checked_text(place, each, rule));
  }
  return all;
}

std::optional<int> ObjectReader::number(const std::string& key, int lowest, int highest) {
  const Json* const value = find(key);
  if (!value) return std::nullopt;
  const std::string expected =
      "a whole number from " + std::to_string(lowest) + " to " + std::to_string(highest);
  if (!value->is_number_integer()) mistake(key, std::string("is ") + value->type_name(), expected);
  const bool is_huge = value->is_number_unsigned() && value->get<std::uint64_t>() > INT32_MAX;
  const std::int64_t number = is_huge ? INT64_MAX : value->get<std::int64_t>();
  if (number < lowest || number > highest) mistake(key, "is " + value->dump(), expected);
  return static_cast<int>(number);
}

std::optional<std::chrono::seconds> ObjectReader::time(const std::string& key) {
  const auto is_time = [](std::string_view text) { return parse_job_time(text).has_value(); };
  const std::string value = text(key, {is_time, kJobTimeForm});
  return value.empty() ? std::nullopt : parse_job_time(value);
}

bool ObjectReader::flag(const std::string& key) {
  const Json* const value = find(key);
  if (value && !value->is_boolean())
    mistake(key, std::string("is ") + value->type_name(), "true or false");
  return value && value->get<bool>();
}

void ObjectReader::each_object(const std::string& key,
                               const std::function<void(ObjectReader&)>& visit) {
  const Json* const value = find(key);
  if (!value) return;
  if (!value->is_array() || value->size() > kMostElements)
    mistake(key, std::string("is ") + (value->is_array() ? "too long" : value->type_name()),
            "an array of at most " + std::to_string(kMostElements) + " objects");
  for (std::size_t i = 0; i < value->size(); ++i) {
    ObjectReader reader((*value)[i], source_, path_ + "/" + key + "/" + std::to_string(i));
    visit(reader);
    reader.finish();
  }
}

void ObjectReader::finish() const {
  for (const auto& [name, value] : object_.items()) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    const auto meant = nearest(name, known_);
    mistake(printable(name, 60), "is unknown",
            (meant ? *meant + "? The names are " : "one of ") + join(known_, ", "));
  }
}

}  // namespace hv::launcher
