// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/hostfile.h"

#include <algorithm>
#include <cctype>

#include "launcher/allocation/host_words.h"
#include "launcher/allocation/node_expression.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

struct FormName {
  const char* word;
  HostfileForm form;
};
constexpr FormName kFormNames[] = {
    {"auto", HostfileForm::kAny},        {"openmpi", HostfileForm::kSlots},
    {"deepspeed", HostfileForm::kSlots}, {"mpich", HostfileForm::kColon},
    {"horovod", HostfileForm::kColon},   {"pbs", HostfileForm::kNames},
    {"lsf", HostfileForm::kPairs},       {"sge", HostfileForm::kQueues},
    {"slurm", HostfileForm::kNodes},
};

const char* example_of(HostfileForm form) {
  switch (form) {
    case HostfileForm::kSlots:
      return "a line like 'node1 slots=4'";
    case HostfileForm::kColon:
      return "a line like 'node1:4'";
    case HostfileForm::kNames:
      return "a line like 'node1', one for each slot";
    case HostfileForm::kPairs:
      return "a line like 'node1 4 node2 4'";
    case HostfileForm::kQueues:
      return "a line like 'node1 4 all.q@node1 UNDEFINED'";
    case HostfileForm::kNodes:
      return "a line like 'node[01-16]'";
    case HostfileForm::kAny:
      break;
  }
  return kHostForm;
}

// Whether a line of form `line`, of so many words, is one of the dialect.
bool accepts(HostfileForm wanted, HostfileForm line, std::size_t words) {
  const bool is_alone = line == HostfileForm::kSlots && words == 1;
  switch (wanted) {
    case HostfileForm::kAny:
      return true;
    case HostfileForm::kColon:
      return line == HostfileForm::kColon || line == HostfileForm::kSlots;
    case HostfileForm::kNames:
      return is_alone;
    case HostfileForm::kSlots:
    case HostfileForm::kPairs:
    case HostfileForm::kQueues:
    case HostfileForm::kNodes:
      break;
  }
  return line == wanted || (is_alone && wanted != HostfileForm::kQueues);
}

// A name without a number is one slot: what PBS and LSF write.
bool has_line_for_each_slot(HostfileForm wanted) {
  return wanted == HostfileForm::kNames || wanted == HostfileForm::kPairs;
}

// A line, cut into words.
class Line {
 public:
  Line(Place place, HostfileForm wanted, HostCollector* collector)
      : place_(std::move(place)),
        words_(words_of_line(place_.text)),
        wanted_(wanted),
        collector_(collector) {}

  void parse() {
    if (words_.empty()) return;
    const HostfileForm form = form_of();
    if (!accepts(wanted_, form, words_.size()))
      mistake(place_, words_[0].begin, "this line is of another form than --hostfile-format states",
              example_of(wanted_));
    if (form == HostfileForm::kPairs) return parse_pairs();
    if (form == HostfileForm::kQueues) return add(0, slots_at(1));
    if (form == HostfileForm::kNodes) return parse_nodes();
    parse_settings();
  }

 private:
  std::string_view word(std::size_t i) const {
    return place_.text.substr(words_[i].begin, words_[i].end - words_[i].begin);
  }
  bool is_number(std::size_t i) const {
    const std::string_view text = word(i);
    return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
  }

  // What the line looks like.
  HostfileForm form_of() const {
    const std::size_t size = words_.size();
    if (size == 1) {
      if (find_comma(place_.text, words_[0].begin, words_[0].end) < words_[0].end)
        return HostfileForm::kNodes;
      const std::string_view text = word(0);
      const std::size_t bracket = text.rfind(']');
      const std::size_t from = bracket == std::string_view::npos ? 0 : bracket;
      return text.find(':', from) == std::string_view::npos ? HostfileForm::kSlots
                                                            : HostfileForm::kColon;
    }
    if (!is_number(1)) {
      const bool has_colon = word(0).back() != ']' && word(0).find(':') != std::string_view::npos;
      return has_colon ? HostfileForm::kColon : HostfileForm::kSlots;
    }
    // What stands behind a queue may be a number, too.
    const bool has_queue = size > 2 && word(2).find('@') != std::string_view::npos;
    const bool has_processors =
        size == 4 && (word(3) == "UNDEFINED" || word(3) == "<NULL>" ||
                      word(3).find_first_of(",:") != std::string_view::npos);
    const bool is_queues = has_queue || has_processors || wanted_ == HostfileForm::kQueues;
    return is_queues ? HostfileForm::kQueues : HostfileForm::kPairs;
  }

  int slots_at(std::size_t i) const { return parse_slots(place_, words_[i].begin, words_[i].end); }

  // Word i as a host; slots: stated elsewhere in the line.
  void add(std::size_t i, std::optional<int> slots) {
    add_hosts(words_[i].begin, words_[i].end, [&](HostEntry* entry) {
      if (entry->slots)
        mistake(place_, words_[i].begin, "slots are stated twice",
                example_of(HostfileForm::kPairs));
      entry->slots = slots;
    });
  }

  template <class Complete>
  void add_hosts(std::size_t begin, std::size_t end, const Complete& complete) {
    const HostWord host = parse_host_word(place_, begin, end, kMostHosts);
    HostEntry entry;
    entry.user = host.user;
    entry.slots = host.slots;
    entry.origin = place_.origin();
    entry.column = begin;
    complete(&entry);
    if (has_line_for_each_slot(wanted_) && !entry.slots) entry.slots = 1;
    for (const std::string& name : host.names) {
      entry.name = name;
      collector_->add(entry, place_);
    }
  }

  void parse_pairs() {
    if (words_.size() % 2 != 0)
      mistake(place_, words_.back().begin, "no number of slots stands behind this host",
              example_of(HostfileForm::kPairs));
    for (std::size_t i = 0; i < words_.size(); i += 2) add(i, slots_at(i + 1));
  }

  void parse_nodes() {
    for (std::size_t begin = words_[0].begin; begin <= words_[0].end;) {
      const std::size_t end = find_comma(place_.text, begin, words_[0].end);
      add_hosts(begin, end, [](HostEntry*) {});
      begin = end + 1;
    }
  }

  void parse_settings() {
    add_hosts(words_[0].begin, words_[0].end, [this](HostEntry* entry) {
      for (const WordRange& setting : join_settings(place_.text, words_, 1))
        parse_host_setting(place_, setting.begin, setting.end, entry);
    });
  }

  const Place place_;
  const std::vector<WordRange> words_;
  const HostfileForm wanted_;
  HostCollector* const collector_;
};

}  // namespace

HostList parse_hostfile(std::string_view content, const std::string& source, HostfileForm form) {
  if (content.size() > kMostHostfileBytes)
    throw Error(ErrorKind::kUsage,
                source + ": a hostfile of " + format_bytes(content.size()) + " is refused",
                "at most " + format_bytes(kMostHostfileBytes));
  HostCollector collector;
  std::size_t line_number = 0;
  for (std::size_t begin = 0; begin < content.size();) {
    const std::size_t end = std::min(content.find('\n', begin), content.size());
    Line({source, ++line_number, content.substr(begin, end - begin)}, form, &collector).parse();
    begin = end + 1;
  }
  return collector.take({source, 1, content.substr(0, content.find('\n'))});
}

HostfileForm hostfile_form(const std::string& word) {
  std::vector<std::string> words;
  for (const FormName& known : kFormNames) {
    if (word == known.word) return known.form;
    words.push_back(known.word);
  }
  const auto meant = nearest(word, words);
  throw Error(
      ErrorKind::kUsage, "--hostfile-format '" + printable(word) + "' is not understood",
      (meant ? "expected " + *meant + "? One of " : "expected one of ") + join(words, ", "));
}

}  // namespace hv::launcher
