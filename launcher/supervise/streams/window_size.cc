// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/streams/window_size.h"

#include <algorithm>

#include "launcher/output/label.h"
#include "launcher/output/terminal_size.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kLeastColumns = 20;  // whatever the label takes

std::size_t label_width(const Job& job) {
  const OutputSpec& output = job.spec.output;
  LabelMaker maker({output.label, output.timestamp});
  const std::size_t last_rank = job.slots.count() > 0 ? job.slots.count() - 1 : 0;
  std::size_t longest_host = 0;
  if (output.label_has_host)
    for (const Host& host : job.members())
      longest_host = std::max(longest_host, host.target.name.size() + 1);
  return maker.label(static_cast<std::uint32_t>(last_rank), 0).size() + longest_host;
}

}  // namespace

wire::WindowSize window_of_ranks(const Job& job) {
  const auto own = own_terminal_size();
  if (!own) return {};
  const std::size_t label = label_width(job);
  const std::size_t left = own->columns > label ? own->columns - label : 0;
  return {static_cast<std::uint32_t>(std::max(left, std::min(own->columns, kLeastColumns))),
          static_cast<std::uint32_t>(own->rows)};
}

}  // namespace hv::launcher
