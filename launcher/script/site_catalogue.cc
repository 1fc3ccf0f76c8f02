// SPDX-License-Identifier: Apache-2.0
#include "launcher/script/site_catalogue.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <system_error>

#include "launcher/script/site.h"
#include "src/base/bounded_file.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr const char* kEnding = ".json";
constexpr const char* kShipped = "shipped with hvrun";
constexpr std::size_t kMostFilesInFolder = 1000;

bool ends_in_json(const std::string& name) {
  const std::string_view ending = kEnding;
  return name.size() > ending.size() &&
         name.compare(name.size() - ending.size(), ending.size(), ending) == 0;
}

// In the order in which they are looked through; "" is the current one.
std::vector<std::string> folders(const Environment& environment) {
  std::vector<std::string> all{""};
  const std::string home = environment.get_or("HOME", "");
  std::string own = environment.get_or("XDG_CONFIG_HOME", "");
  if (own.empty() && !home.empty()) own = home + "/.config";
  if (!own.empty() && own[0] == '/') all.push_back(own + "/hvrun/sites/");
  all.emplace_back("/etc/hvrun/sites/");
  return all;
}

std::string read_site(const std::string& path) {
  return read_bounded_file(path, kMostSiteBytes, "site file",
                           "'hvrun script --list-sites' names those that there are");
}

bool is_there(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

// The names of sites in a folder that there may not be, sorted.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder.empty() ? "." : folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (ends_in_json(name) && names.size() < kMostFilesInFolder)
      names.push_back(name.substr(0, name.size() - std::string_view(kEnding).size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> names_of_sites(const Environment& environment) {
  std::vector<std::string> names;
  for (const std::string& folder : folders(environment)) {
    if (folder.empty()) continue;  // other JSON lies there
    for (std::string& name : names_in(folder)) names.push_back(std::move(name));
  }
  for (const ShippedSite& site : shipped_sites()) names.emplace_back(site.name);
  return names;
}

using Row = std::array<std::string, 3>;  // name, scheduler, what it is and where it lies

Row row_of(const SiteFile& file) {
  const std::string source = "(" + printable(file.source) + ")";
  try {
    const Site site = parse_site(file.text, file.source);
    const std::string what = printable(site.description);
    return {file.name, name_of(site.scheduler), what + (what.empty() ? "" : " ") + source};
  } catch (const Error& error) {
    return {file.name, "-", std::string("MALFORMED: ") + error.what() + " " + source};
  }
}

// Columns as wide as what stands in them; the last is left as it is.
std::string as_table(const std::vector<Row>& rows) {
  std::array<std::size_t, 2> widths{};
  for (const Row& row : rows)
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i)
      text += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    text += row[2] + "\n";
  }
  return text;
}

}  // namespace

SiteFile find_site(const std::string& name, const Environment& environment) {
  if (name.find('/') != std::string::npos || ends_in_json(name))
    return {name, name, read_site(name)};
  for (const std::string& folder : folders(environment)) {
    const std::string path = folder + name + kEnding;
    if (is_there(path)) return {name, path, read_site(path)};
  }
  for (const ShippedSite& site : shipped_sites())
    if (site.name == name) return {name, kShipped, std::string(site.text)};
  const std::vector<std::string> names = names_of_sites(environment);
  const auto meant = nearest(name, names);
  throw Error(ErrorKind::kUsage, "there is no site " + printable(name),
              (meant ? *meant + "? One of " : "one of ") + join(names, ", ") +
                  ", or a file: --site ./mine.json");
}

std::string list_of_sites(const Environment& environment) {
  std::vector<Row> rows;
  std::set<std::string> seen;
  for (const std::string& name : names_of_sites(environment)) {
    if (!seen.insert(name).second) continue;
    try {
      rows.push_back(row_of(find_site(name, environment)));
    } catch (const Error& error) {
      rows.push_back({printable(name), "-", error.what()});
    }
  }
  return as_table(rows);
}

}  // namespace hv::launcher
