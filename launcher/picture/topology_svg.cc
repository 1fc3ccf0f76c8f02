// SPDX-License-Identifier: Apache-2.0
#include "launcher/picture/topology_svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "launcher/check/ways.h"
#include "launcher/picture/host_drawing.h"
#include "launcher/picture/picture.h"
#include "src/base/clock.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostDrawn = 128;  // drawn
constexpr int kMargin = 16;
constexpr int kHostGap = 14;  // between hosts
constexpr int kWidth = 1500;  // that a picture of many hosts is to have
constexpr int kSize = 11;
constexpr int kSvgLine = 18;
constexpr int kSpace = 5;
constexpr int kMostLabelColumns = 20;  // of a host's name beside the matrix

struct Colour {
  const char* name;
  const char* light;
  const char* dark;
};
constexpr Colour kColours[] = {
    {"ink", "#1b1f24", "#e6edf3"},  {"soft", "#57606a", "#9aa5b1"}, {"paper", "#ffffff", "#0d1117"},
    {"host", "#f6f8fa", "#161b22"}, {"node", "#ffffff", "#0d1117"}, {"edge", "#c4ccd5", "#3d4650"},
    {"core", "#dde3ea", "#2d3640"}, {"gpu", "#eef1f4", "#222a33"},  {"bad", "#cf222e", "#ff7b72"}};

constexpr const char* kRules =
    ".topology { font-family: 'DejaVu Sans Mono', 'Liberation Mono', Menlo, Consolas, monospace; "
    "}\n"
    ".topology text { fill: var(--ink); }\n"
    ".topology text.soft { fill: var(--soft); }\n"
    ".topology text.dark { fill: #14181d; }\n"
    ".topology text.light { fill: #ffffff; }\n"
    ".topology text.name { font-weight: bold; }\n"
    ".topology .paper { fill: var(--paper); }\n"
    ".topology .host { fill: var(--host); stroke: var(--edge); rx: 6px; }\n"
    ".topology .node { fill: var(--node); stroke: var(--edge); rx: 4px; }\n"
    ".topology .bad { stroke: var(--bad); stroke-dasharray: 4 3; }\n"
    // A colour of its own is an attribute, which a style would overrule.
    ".topology .core:not([fill]) { fill: var(--core); }\n"
    ".topology .gpu:not([fill]), .topology .chip:not([fill]) { fill: var(--gpu); }\n"
    ".topology .gpu, .topology .chip { stroke: var(--edge); rx: 3px; }\n"
    ".topology .gpu.bad { stroke: var(--bad); stroke-width: 2; }\n"
    ".topology .pair:not([fill]) { fill: var(--core); }\n"
    ".topology .lost { stroke: var(--bad); stroke-width: 1.5; fill: none; }\n";

std::string variables_of(const char* Colour::*mode) {
  std::string text = ".topology {";
  for (const Colour& colour : kColours)
    text += std::string(" --") + colour.name + ": " + colour.*mode + ";";
  return text + " }";
}

std::string style_of(PictureColours colours) {
  if (colours == PictureColours::kViewers)
    return variables_of(&Colour::light) + "\n@media (prefers-color-scheme: dark) { " +
           variables_of(&Colour::dark) + " }\n" + kRules;
  std::string rules = kRules;
  for (const Colour& colour : kColours) {
    const std::string name = std::string("var(--") + colour.name + ")";
    for (std::size_t at = rules.find(name); at != std::string::npos; at = rules.find(name))
      rules.replace(at, name.size(), colour.light);
  }
  return rules;
}

struct SpeedClass {
  Speed speed;
  double least_megabytes_per_s;
  const char* colour_name;
  const char* words;
};
// The colours are those of colour_of(Speed).
constexpr std::array kClasses{SpeedClass{Speed::k10GB, 10000, "light blue", "10 GB/s and more"},
                              SpeedClass{Speed::k2500MB, 2500, "teal", "from 2.5 GB/s"},
                              SpeedClass{Speed::k1GB, 1000, "green", "from 1 GB/s"},
                              SpeedClass{Speed::k50MB, kSlowPath_MBs, "orange", "from 50 MB/s"},
                              SpeedClass{Speed::kSlow, 0, "red", "slow: less than 50 MB/s"}};

const SpeedClass& class_of(double megabytes_per_s) {
  return *std::find_if(kClasses.begin(), kClasses.end() - 1, [&](const SpeedClass& one) {
    return megabytes_per_s >= one.least_megabytes_per_s;
  });
}

Speed speed_of(double megabytes_per_s) { return class_of(megabytes_per_s).speed; }

struct Drawing {
  const JobTopology& topology;
  Scale scale;
  std::size_t hosts;  // that are drawn
  Picture picture{};
  int width = 0, y = kMargin;  // so far
};

// In rows of as many as fit.
void draw_hosts(Drawing* drawing) {
  const std::vector<TopologyHost>& hosts = drawing->topology.hosts;
  int width = 1;
  for (std::size_t i = 0; i < drawing->hosts; ++i)
    width = std::max(width, size_of(hosts[i], drawing->scale).width);
  const auto columns =
      static_cast<std::size_t>(std::max(1, (kWidth + kHostGap) / (width + kHostGap)));
  for (std::size_t first = 0; first < drawing->hosts; first += columns) {
    const std::size_t end = std::min(first + columns, drawing->hosts);
    int height = 0;
    for (std::size_t i = first; i < end; ++i)
      height = std::max(height, size_of(hosts[i], drawing->scale).height);
    int x = kMargin;
    for (std::size_t i = first; i < end; ++i, x += width + kHostGap)
      draw_host(hosts[i], drawing->scale, {x, drawing->y, width, height}, &drawing->picture);
    drawing->width = std::max(drawing->width, x - kHostGap);
    drawing->y += height + kHostGap;
  }
}

std::string path_title(const JobTopology& topology, const HostPath& path) {
  std::string title = topology.hosts[path.from].name + " - " + topology.hosts[path.to].name + ": ";
  if (!path.is_reached) return title + "not reached";
  if (!path.megabytes_per_s) return title + "reached, not measured";
  title += bandwidth_in_words(*path.megabytes_per_s);
  if (path.round_trip_us)
    title += ", round trip " + format_duration(Seconds(*path.round_trip_us / 1e6));
  return path.address.empty() ? title : title + ", by " + path.address;
}

std::string swatch_square(int x, int y, int side) {
  const std::string s = std::to_string(side);
  return "M" + std::to_string(x) + " " + std::to_string(y) + "h" + s + "v" + s + "h-" + s + "z";
}

std::string cross(int x, int y, int side) {
  const std::string s = std::to_string(side);
  return "M" + std::to_string(x) + " " + std::to_string(y) + "l" + s + " " + s + "m0 -" + s + "l-" +
         s + " " + s;
}

// Each host has a row and a column.
void draw_paths(Drawing* drawing) {
  const JobTopology& topology = drawing->topology;
  if (topology.paths.empty()) return;
  const int pitch = drawing->hosts <= 16 ? 18 : drawing->hosts <= 40 ? 13 : 9;
  const int size = std::min(kSize, pitch - 1), cell = pitch - 2;
  const auto at = [pitch](std::size_t host) { return static_cast<int>(host) * pitch; };
  Picture& picture = drawing->picture;
  picture.text(kMargin, drawing->y + kSvgLine, drawing->width, "Between hosts", {13, "name"});
  int columns = 0;
  for (std::size_t i = 0; i < drawing->hosts; ++i)
    columns = std::max(columns, std::min(columns_of(topology.hosts[i].name), kMostLabelColumns));
  const int label = width_of(columns, size) + 2;
  const int x = kMargin + label + kSpace, y = drawing->y + kSvgLine + label + 4 * kSpace;
  for (std::size_t i = 0; i < drawing->hosts; ++i) {
    const std::string& name = topology.hosts[i].name;
    const int middle = at(i) + cell / 2 + size / 2 - 1;
    picture.open("label", name);
    picture.text(x - kSpace, y + middle, label, name, {size, "", Anchor::kEnd});
    picture.upright_text(x + middle, y - kSpace, label, name, {size});
    picture.close();
  }
  for (const HostPath& path : topology.paths) {
    if (path.to >= drawing->hosts) continue;
    const std::string title = path_title(topology, path);
    const std::string colour =
        path.megabytes_per_s ? colour_of(speed_of(*path.megabytes_per_s)) : "";
    const auto shape = path.is_reached ? swatch_square : cross;
    picture.path(shape(x + at(path.to), y + at(path.from), cell) +
                     shape(x + at(path.from), y + at(path.to), cell),
                 path.is_reached ? "pair" : "lost", colour, title);
  }
  drawing->width = std::max(drawing->width, x + at(drawing->hosts));
  drawing->y = y + at(drawing->hosts) + kHostGap;
}

struct Swatch {
  std::string words;
  std::string colour;
  const char* classes = "pair";
};

// Of what occurs.
std::vector<Swatch> swatches(const Drawing& drawing) {
  std::set<GpuPath> links;
  bool has_bound_core = false;
  for (std::size_t i = 0; i < drawing.hosts; ++i) {
    for (const GpuLink& link : drawing.topology.hosts[i].links) links.insert(link.path);
    for (const TopologyRank& rank : drawing.topology.hosts[i].ranks)
      has_bound_core = has_bound_core || !rank.cores.empty();
  }
  std::vector<Swatch> list{{"grey: a core", "", "core"}};
  if (has_bound_core)
    list.push_back(
        {"in a rank's colour: bound to it, in stripes: to several", colour_of(0), "core"});
  if (links.count(GpuPath::kNvlink) != 0)
    list.push_back({"blue: NVLink, as thick as they are many", colour_of(Speed::kNvlink)});
  if (links.count(GpuPath::kPcieSwitch) != 0)
    list.push_back({"light blue: one PCIe switch", colour_of(Speed::k10GB)});
  if (links.count(GpuPath::kNode) + links.count(GpuPath::kAcrossNodes) != 0)
    list.push_back({"GPUs without a line: by the processor", "", "gpu"});
  std::set<Speed> speeds;
  bool has_lost = false, has_unmeasured = false;
  for (const HostPath& path : drawing.topology.paths) {
    if (path.megabytes_per_s) speeds.insert(speed_of(*path.megabytes_per_s));
    has_lost = has_lost || !path.is_reached;
    has_unmeasured = has_unmeasured || (path.is_reached && !path.megabytes_per_s);
  }
  for (const SpeedClass& one : kClasses)
    if (!speeds.empty())
      list.push_back({std::string(one.colour_name) + ": " + one.words, colour_of(one.speed)});
  if (has_unmeasured) list.push_back({"grey: reached, not measured", ""});
  if (has_lost) list.push_back({"red cross: not reached", "", "lost"});
  return list;
}

void draw_legend(Drawing* drawing) {
  Picture& picture = drawing->picture;
  constexpr int kSide = 11;
  int x = kMargin, y = drawing->y + 4;
  for (const Swatch& swatch : swatches(*drawing)) {
    const int words = width_of(static_cast<int>(swatch.words.size()), kSize);
    const int width = kSide + 6 + words + 16;
    if (x > kMargin && x + width > drawing->width) {
      x = kMargin;
      y += kSvgLine;
    }
    const auto shape = std::string(swatch.classes) == "lost" ? cross : swatch_square;
    picture.path(shape(x, y, kSide), swatch.classes, swatch.colour);
    picture.text(x + kSide + 6, y + 10, words + kSize, swatch.words, {kSize, "soft"});
    drawing->width = std::max(drawing->width, x + width);
    x += width;
  }
  drawing->y = y + kSvgLine;
}

}  // namespace

const char* colour_name_of(double megabytes_per_s) { return class_of(megabytes_per_s).colour_name; }

std::string topology_as_svg(const JobTopology& topology, const std::string& name,
                            PictureColours colours, const std::string& made) {
  const std::size_t hosts = std::min(topology.hosts.size(), kMostDrawn);
  Drawing drawing{topology, scale_for(hosts), hosts};
  draw_hosts(&drawing);
  if (hosts < topology.hosts.size()) {
    drawing.picture.text(kMargin, drawing.y + kSize, drawing.width,
                         "and " + std::to_string(topology.hosts.size() - hosts) + " hosts more",
                         {kSize, "soft"});
    drawing.y += kSvgLine;
  }
  draw_paths(&drawing);
  draw_legend(&drawing);
  if (!made.empty()) {
    drawing.picture.text(kMargin, drawing.y + kSize, drawing.width, made, {kSize, "soft"});
    drawing.y += kSvgLine;
  }
  return drawing.picture.finished(drawing.width + kMargin, drawing.y + kMargin, name,
                                  style_of(colours));
}

}  // namespace hv::launcher
