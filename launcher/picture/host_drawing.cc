// SPDX-License-Identifier: Apache-2.0
#include "launcher/picture/host_drawing.h"

#include <algorithm>
#include <array>
#include <map>

#include "launcher/allocation/host_names.h"
#include "launcher/check/groups.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kHostsThatAreMany = 12;
constexpr std::size_t kMostNodes = 8;    // drawn of a host
constexpr std::size_t kMostGpus = 16;    // of a node
constexpr std::size_t kMostChips = 12;   // ranks of a node without a GPU
constexpr std::size_t kMostStripes = 4;  // of a core that several ranks share
constexpr int kGap = 8;
constexpr int kInset = 8;  // of what is in a box
constexpr int kLine = 15;  // from one line of text to the next
constexpr int kLeastHostWidth = 190;
constexpr int kLeastNodeColumns = 8;
constexpr int kSwitchHeight = 14, kSwitchDrop = 16;  // the bar that is an NVSwitch, below GPUs
constexpr int kLeastBend = 14, kMostBend = 44;       // of a curve from GPU to GPU
constexpr int kChipColumns = 9;                      // "rank 1234"

// Light ones, on which dark letters can be read.
constexpr std::array kRankColours{"#8dd3c7", "#ffd166", "#bebada", "#fb8072", "#80b1d3", "#fdb462",
                                  "#b3de69", "#fccde5", "#d9c5a0", "#c994c7", "#a6e3f5", "#ccebc5"};

bool has_switch(const TopologyHost& host) {
  return std::any_of(host.gpus.begin(), host.gpus.end(),
                     [](const TopologyGpu& gpu) { return gpu.switch_links > 0; });
}

// Those that have a curve: the others go by the processor, or by the switch's bar.
bool has_curve(const TopologyHost& host, const GpuLink& link) {
  if (link.path == GpuPath::kPcieSwitch) return true;
  return link.path == GpuPath::kNvlink &&
         (host.gpus[link.from].switch_links == 0 || host.gpus[link.to].switch_links == 0);
}

int bend_of(const GpuLink& link) {
  return std::min(kMostBend, kLeastBend + 6 * static_cast<int>(link.to - link.from - 1));
}

int links_height(const TopologyHost& host) {
  int height = has_switch(host) ? kSwitchDrop + kSwitchHeight : 0;
  for (const GpuLink& link : host.links)
    if (has_curve(host, link)) height = std::max(height, bend_of(link));
  return height;
}

// Ranks that have no GPU to stand in.
std::vector<const TopologyRank*> chips_of(const TopologyHost& host, const std::vector<int>& ranks) {
  std::vector<const TopologyRank*> chips;
  for (const TopologyRank& rank : host.ranks)
    if (rank.gpus.empty() && std::find(ranks.begin(), ranks.end(), rank.rank) != ranks.end())
      chips.push_back(&rank);
  return chips;
}

struct NodeSize {
  int width = 0, height = 0;
  int columns = 1;  // of cores
  int chip_columns = 1;
};

int chip_width(const Scale& scale) {
  return width_of(scale.is_dense ? kChipColumns - 4 : kChipColumns, scale.text_size) + 6;
}

int lines_of(std::size_t things, int columns) {
  return (static_cast<int>(things) + columns - 1) / columns;
}

int shown_gpus(const TopologyNode& node) {
  return static_cast<int>(std::min(node.gpus.size(), kMostGpus));
}

NodeSize size_of(const TopologyHost& host, const TopologyNode& node, const Scale& scale) {
  NodeSize size;
  const int cores = static_cast<int>(node.cores.size());
  const int gpus_width = shown_gpus(node) * (scale.gpu_width + kGap) - kGap;
  const int cores_width = std::clamp(cores, kLeastNodeColumns, scale.columns) * scale.pitch;
  const std::size_t chips = chips_of(host, node.ranks).size();
  const int least = width_of(scale.is_dense ? 10 : 14, scale.text_size);
  const int inside = std::max({gpus_width, cores_width, chips > 0 ? chip_width(scale) : 0, least});
  size.columns = std::max(1, inside / scale.pitch);
  size.chip_columns = std::max(1, inside / (chip_width(scale) + 3));
  size.width = inside + 2 * kInset;
  size.height = kLine + kInset + lines_of(node.cores.size(), size.columns) * scale.pitch;
  if (!node.adapters.empty()) size.height += kLine;
  if (chips > 0)
    size.height += lines_of(std::min(chips, kMostChips), size.chip_columns) * (kLine + 3) + 4;
  if (!node.gpus.empty()) size.height += scale.gpu_height + kGap;
  size.height += kInset / 2;
  return size;
}

std::vector<const TopologyNode*> shown_nodes(const TopologyHost& host) {
  std::vector<const TopologyNode*> nodes;
  for (const TopologyNode& node : host.nodes)
    if (nodes.size() < kMostNodes) nodes.push_back(&node);
  return nodes;
}

int local_rank_of(const TopologyHost& host, int rank) {
  for (const TopologyRank& one : host.ranks)
    if (one.rank == rank) return one.local_rank;
  return 0;
}

std::string list_ranks(const std::vector<int>& ranks) {
  if (ranks.empty()) return "no rank";
  return ranges_of("rank", ranks);
}

std::string square(int x, int y, int width, int height) {
  return "M" + std::to_string(x) + " " + std::to_string(y) + "h" + std::to_string(width) + "v" +
         std::to_string(height) + "h-" + std::to_string(width) + "z";
}

// Cores of the same ranks are one shape, which keeps pictures of thousands of cores small.
void draw_cores(const TopologyHost& host, const TopologyNode& node, int columns, const Scale& scale,
                int x, int y, Picture* picture) {
  std::map<std::vector<int>, std::vector<std::size_t>> by_ranks;
  for (std::size_t i = 0; i < node.cores.size(); ++i) by_ranks[node.cores[i].ranks].push_back(i);
  for (const auto& [ranks, cores] : by_ranks) {
    std::vector<int> threads;
    for (const std::size_t core : cores)
      threads.insert(threads.end(), node.cores[core].threads.begin(),
                     node.cores[core].threads.end());
    std::sort(threads.begin(), threads.end());
    const std::string title = "cores " + format_ranges(threads) + ": " + list_ranks(ranks);
    const std::size_t stripes = std::clamp<std::size_t>(ranks.size(), 1, kMostStripes);
    for (std::size_t stripe = 0; stripe < stripes; ++stripe) {
      const int from = scale.cell * static_cast<int>(stripe) / static_cast<int>(stripes);
      const int to = scale.cell * static_cast<int>(stripe + 1) / static_cast<int>(stripes);
      std::string data;
      for (const std::size_t core : cores)
        data += square(x + static_cast<int>(core) % columns * scale.pitch + from,
                       y + static_cast<int>(core) / columns * scale.pitch, to - from, scale.cell);
      picture->path(data, "core",
                    ranks.empty() ? "" : colour_of(local_rank_of(host, ranks[stripe])), title);
    }
  }
}

std::string title_of(const TopologyRank& rank) {
  return "rank " + std::to_string(rank.rank) + ", local rank " + std::to_string(rank.local_rank) +
         ": " + bindings_in_words({&rank});
}

void draw_chips(const std::vector<const TopologyRank*>& chips, int columns, const Scale& scale,
                int x, int y, Picture* picture) {
  const int width = chip_width(scale);
  for (std::size_t i = 0; i < std::min(chips.size(), kMostChips); ++i) {
    const Box box{x + static_cast<int>(i) % columns * (width + 3),
                  y + static_cast<int>(i) / columns * (kLine + 3), width, kLine};
    const bool is_rest = i + 1 == kMostChips && chips.size() > kMostChips;
    const std::string words =
        is_rest ? "+" + std::to_string(chips.size() - i)
                : (scale.is_dense ? "" : "rank ") + std::to_string(chips[i]->rank);
    picture->open("box", is_rest ? "and more ranks" : title_of(*chips[i]));
    picture->rect(box, "chip", is_rest ? "" : colour_of(chips[i]->local_rank));
    picture->text(box.x + box.width / 2, box.y + kLine - 4, box.width - 2, words,
                  {scale.text_size - 1, is_rest ? "" : "dark", Anchor::kMiddle});
    picture->close();
  }
}

std::string title_of(const TopologyGpu& gpu) {
  std::string title = "GPU " + std::to_string(gpu.number);
  if (!gpu.model.empty()) title += ": " + gpu.model;
  if (gpu.memory_bytes > 0) title += ", " + format_bytes(gpu.memory_bytes);
  if (!gpu.pci_address.empty()) title += ", " + gpu.pci_address;
  if (gpu.parts > 0) title += ", in " + std::to_string(gpu.parts) + " MIG devices";
  title += "; " + list_ranks(gpu.ranks);
  return gpu.fault.empty() ? title : title + "; " + gpu.fault;
}

std::string short_model(const std::string& model) {
  const std::string vendor = "NVIDIA ";
  return model.rfind(vendor, 0) == 0 ? model.substr(vendor.size()) : model;
}

void draw_gpu(const TopologyHost& host, const TopologyGpu& gpu, const Scale& scale, const Box& box,
              Picture* picture) {
  const bool has_rank = !gpu.ranks.empty();
  const char* const letters = has_rank ? "dark" : "";
  const TextStyle style{scale.text_size - (scale.is_dense ? 1 : 0), letters, Anchor::kMiddle};
  const int middle = box.x + box.width / 2, width = box.width - 4;
  picture->open("box", title_of(gpu));
  picture->rect(box, gpu.fault.empty() ? "gpu" : "gpu bad",
                has_rank ? colour_of(local_rank_of(host, gpu.ranks[0])) : "");
  const std::string ranks = gpu.ranks.empty() ? "-" : format_ranges(gpu.ranks);
  if (scale.is_dense) {
    picture->text(middle, box.y + 11, width, "GPU" + std::to_string(gpu.number), style);
    picture->text(middle, box.y + 24, width, ranks, style);
  } else {
    const std::string parts = gpu.parts > 0 ? " / " + std::to_string(gpu.parts) + " MIG" : "";
    picture->text(middle, box.y + 12, width, "GPU " + std::to_string(gpu.number) + parts, style);
    picture->text(middle, box.y + 26, width, short_model(gpu.model),
                  {scale.text_size - 1, letters, Anchor::kMiddle});
    picture->text(middle, box.y + 40, width, list_ranks(gpu.ranks), style);
  }
  picture->close();
}

// gpus: by index, where each has been drawn.
void draw_links(const TopologyHost& host, const std::map<std::size_t, Box>& gpus, Box below,
                Picture* picture) {
  const auto foot = [&](std::size_t gpu) {
    const Box& box = gpus.at(gpu);
    return std::pair(box.x + box.width / 2, box.y + box.height);
  };
  for (const GpuLink& link : host.links) {
    if (!has_curve(host, link) || gpus.count(link.from) == 0 || gpus.count(link.to) == 0) continue;
    const auto [x, y] = foot(link.from);
    const auto [to_x, to_y] = foot(link.to);
    // A curve's lowest point lies at three quarters of the way to its handles.
    const int handle = y + bend_of(link) * 4 / 3;
    const bool is_nvlink = link.path == GpuPath::kNvlink;
    picture->line("M" + std::to_string(x) + " " + std::to_string(y) + "C" + std::to_string(x) +
                      " " + std::to_string(handle) + " " + std::to_string(to_x) + " " +
                      std::to_string(handle) + " " + std::to_string(to_x) + " " +
                      std::to_string(to_y),
                  "link", is_nvlink ? std::min(1.0 + link.nvlinks * 0.5, 5.0) : 1.5,
                  colour_of(is_nvlink ? Speed::kNvlink : Speed::k10GB),
                  "GPU " + std::to_string(host.gpus[link.from].number) + " - GPU " +
                      std::to_string(host.gpus[link.to].number) + ": " + path_in_words(link.path) +
                      (is_nvlink ? " x" + std::to_string(link.nvlinks) : ""));
  }
  if (!has_switch(host)) return;
  const int top = below.y + kSwitchDrop;
  int left = below.x + below.width, right = below.x;
  for (const auto& [gpu, box] : gpus) {
    const int links = host.gpus[gpu].switch_links;
    if (links == 0) continue;
    const auto [x, y] = foot(gpu);
    left = std::min(left, box.x);
    right = std::max(right, box.x + box.width);
    picture->line("M" + std::to_string(x) + " " + std::to_string(y) + "V" + std::to_string(top),
                  "link", std::min(1.0 + links * 0.25, 6.0), colour_of(Speed::kNvlink),
                  "GPU " + std::to_string(host.gpus[gpu].number) + " - NVSwitch: NVLink x" +
                      std::to_string(links));
  }
  if (right <= left) return;
  picture->open("box", "NVSwitch");
  picture->rect({left, top, right - left, kSwitchHeight}, "switch", colour_of(Speed::kNvlink));
  picture->text((left + right) / 2, top + 11, right - left - 4, "NVSwitch",
                {10, "light", Anchor::kMiddle});
  picture->close();
}

std::string title_of(const TopologyNode& node) {
  return node.number ? "node " + std::to_string(*node.number) : "no node told";
}

// gpus: gets where each is.
void draw_node(const TopologyHost& host, const TopologyNode& node, const Scale& scale,
               const Box& box, std::map<std::size_t, Box>* gpus, Picture* picture) {
  const NodeSize size = size_of(host, node, scale);
  const int x = box.x + kInset;
  int y = box.y + kLine;
  picture->open("box", "NUMA " + title_of(node) + ", package " + std::to_string(node.package) +
                           ", " + std::to_string(node.cores.size()) + " cores");
  picture->rect(box, "node");
  picture->text(x, y - 3, size.width - 2 * kInset, title_of(node), {scale.text_size - 1, "soft"});
  draw_cores(host, node, size.columns, scale, x, y + 2, picture);
  y += kInset / 2 + lines_of(node.cores.size(), size.columns) * scale.pitch;
  if (!node.adapters.empty()) {
    picture->text(x, y + kLine - 4, size.width - 2 * kInset, fold_host_names(node.adapters),
                  {scale.text_size - 1, "soft"});
    y += kLine;
  }
  draw_chips(chips_of(host, node.ranks), size.chip_columns, scale, x, y + 4, picture);
  const int gpu_y = box.y + box.height - scale.gpu_height - kInset / 2 - 2;
  for (int i = 0; i < shown_gpus(node); ++i) {
    const std::size_t gpu = node.gpus[static_cast<std::size_t>(i)];
    const Box place{x + i * (scale.gpu_width + kGap), gpu_y, scale.gpu_width, scale.gpu_height};
    draw_gpu(host, host.gpus[gpu], scale, place, picture);
    gpus->emplace(gpu, place);
  }
  picture->close();
}

std::string details_of(const TopologyHost& host) {
  if (!host.is_reached) return "does not answer";
  std::string words = host_in_words(host);
  if (host.memory_bytes > 0) words += ", " + format_bytes(host.memory_bytes);
  if (host.nodes.size() > kMostNodes)
    words += ", of the nodes the first " + std::to_string(kMostNodes);
  return words;
}

int chip_columns(int host_width, const Scale& scale) {
  return std::max(1, (host_width - 2 * kInset) / (chip_width(scale) + 3));
}

// Of its name and details, and its ranks that are of no node.
int head_height(const TopologyHost& host, int host_width, const Scale& scale) {
  const std::size_t chips = chips_of(host, host.ranks_of_no_node).size();
  const int rows = lines_of(std::min(chips, kMostChips), chip_columns(host_width, scale));
  return scale.name_size + 8 + kLine + rows * (kLine + 3) + (rows > 0 ? 2 : 0);
}

}  // namespace

Scale scale_for(std::size_t hosts) {
  if (hosts <= kHostsThatAreMany) return {};
  return {true, 6, 7, 24, 40, 30, 12, 10};
}

std::string colour_of(int local_rank) {
  return kRankColours[static_cast<std::size_t>(local_rank) % kRankColours.size()];
}

std::string colour_of(Speed speed) {
  constexpr std::array kColours{"#3b5bdb", "#1c8fc7", "#2fb5a4", "#8fbf3f", "#f0a030", "#d9342b"};
  return kColours[static_cast<std::size_t>(speed)];
}

Box size_of(const TopologyHost& host, const Scale& scale) {
  Box size{0, 0, kInset, 0};
  for (const TopologyNode* node : shown_nodes(host)) {
    const NodeSize its = size_of(host, *node, scale);
    size.width += its.width + kGap;
    size.height = std::max(size.height, its.height);
  }
  size.width = std::max(size.width, kLeastHostWidth);
  size.height += head_height(host, size.width, scale) + links_height(host) + 2 * kInset;
  return size;
}

void draw_host(const TopologyHost& host, const Scale& scale, const Box& place, Picture* picture) {
  const int x = place.x + kInset, width = place.width - 2 * kInset;
  int y = place.y + scale.name_size + 4;
  std::string title = host.name + ": " + details_of(host);
  for (const std::string& cache : host.caches) title += ", " + cache;
  picture->open("box", title);
  picture->rect(place, host.is_reached ? "host" : "host bad");
  picture->text(x, y, width, host.name, {scale.name_size, "name"});
  y += kLine;
  picture->text(x, y, width, details_of(host), {scale.text_size - 1, "soft"});
  if (const auto chips = chips_of(host, host.ranks_of_no_node); !chips.empty())
    draw_chips(chips, chip_columns(place.width, scale), scale, x, y + 6, picture);
  y = place.y + head_height(host, place.width, scale) + kInset / 2;
  int height = 0;
  for (const TopologyNode* node : shown_nodes(host))
    height = std::max(height, size_of(host, *node, scale).height);
  std::map<std::size_t, Box> gpus;
  int node_x = x;
  for (const TopologyNode* node : shown_nodes(host)) {
    const bool is_last = node == shown_nodes(host).back();
    const int node_width = is_last ? x + width - node_x : size_of(host, *node, scale).width;
    draw_node(host, *node, scale, {node_x, y, node_width, height}, &gpus, picture);
    node_x += node_width + kGap;
  }
  draw_links(host, gpus, {x, y + height, width, 0}, picture);
  picture->close();
}

}  // namespace hv::launcher
