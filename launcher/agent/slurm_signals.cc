// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/slurm_signals.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "launcher/facts/read_file.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

// Of a host that gets its configuration from slurmctld, the second.
constexpr const char* kPlaces[] = {"/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf"};
constexpr int kDeepest = 8;  // of files that include others
constexpr char kBlanks[] = " \t\r";

std::string_view without_blanks_before(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(kBlanks), text.size()));
}

// Takes the text up to one of the ends.
std::string take_until(std::string_view* rest, const char* ends) {
  const std::size_t size = std::min(rest->find_first_of(ends), rest->size());
  const std::string taken(rest->substr(0, size));
  rest->remove_prefix(size);
  return taken;
}

// The words of a configuration of Slurm: lines of NAME=VALUE, with blanks around the sign or none,
// or "Include FILE". Of repeated names the last counts.
class SlurmWords {
 public:
  SlurmWords(std::string folder, const FileText& text_of)
      : folder_(std::move(folder)), text_of_(text_of) {}

  void read(const std::string& file, int depth = 0) {
    const std::string path = file[0] == '/' ? file : folder_ + file;
    const std::optional<std::string> text = depth < kDeepest ? text_of_(path) : std::nullopt;
    if (!text) return;
    for (const std::string& line : split(*text, '\n'))
      read_line(std::string_view(line).substr(0, line.find('#')), depth);
  }
  // In small letters; empty: it is not set.
  std::string value(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? std::string() : lower(found->second);
  }

 private:
  void read_line(std::string_view rest, int depth) {
    for (rest = without_blanks_before(rest); !rest.empty(); rest = without_blanks_before(rest)) {
      const std::string name = lower(take_until(&rest, "= \t\r"));
      rest = without_blanks_before(rest);
      if (!rest.empty() && rest[0] == '=') {
        rest = without_blanks_before(rest.substr(1));
        values_[name] = take_value(&rest);
      } else if (const std::string file = take_until(&rest, kBlanks);
                 name == "include" && !file.empty()) {
        read(file, depth + 1);
      }
    }
  }
  static std::string take_value(std::string_view* rest) {
    if (rest->empty() || (*rest)[0] != '"') return take_until(rest, kBlanks);
    rest->remove_prefix(1);
    const std::string value = take_until(rest, "\"");
    rest->remove_prefix(std::min<std::size_t>(rest->size(), 1));
    return value;
  }

  const std::string folder_;
  const FileText& text_of_;
  std::map<std::string, std::string> values_;
};

bool is_yes(const std::string& value) {
  return value == "yes" || value == "up" || value == "true" || value == "1";
}

}  // namespace

bool signals_every_process(const std::string& slurm_conf, const FileText& text_of) {
  constexpr std::string_view kKind = "proctrack/";
  const std::string folder = slurm_conf.substr(0, slurm_conf.rfind('/') + 1);
  SlurmWords words(folder, text_of);
  words.read(slurm_conf);
  std::string plugin = words.value("proctracktype");
  if (plugin.rfind(kKind, 0) == 0) plugin.erase(0, kKind.size());
  if (!plugin.empty() && plugin != "cgroup") return plugin == "linuxproc";
  SlurmWords of_cgroups(folder, text_of);
  of_cgroups.read(folder + "cgroup.conf");
  return is_yes(of_cgroups.value("signalchildrenprocesses"));
}

bool slurm_signals_every_process(const Environment& environment) {
  if (!environment.get_filled("SLURM_STEP_ID")) return false;
  const FileText text_of = [](const std::string& path) { return read_file(path); };
  if (const auto named = environment.get_filled("SLURM_CONF"))
    return signals_every_process(*named, text_of);
  for (const char* place : kPlaces)
    if (read_file(place)) return signals_every_process(place, text_of);
  return false;
}

}  // namespace hv::launcher
