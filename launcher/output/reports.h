// Reports: what the writer threads tell the owner of the room: bytes written, sinks broken.
// SPDX-License-Identifier: Apache-2.0
//
// Shared by all writer threads, which may outlive the room; after silence() its owner hears nothing
// any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <variant>

#include "launcher/output/output_room.h"

namespace hv::launcher {

class Reports {
 public:
  Reports(OutputRoom::Written on_written, OutputRoom::Broken on_broken)
      : on_written_(std::move(on_written)), on_broken_(std::move(on_broken)) {}

  // Collected by rank until the next send(): a line each must not become a call each.
  void note_written(std::uint32_t rank, std::size_t bytes);
  void send();
  void tell_broken(const std::string& what, int errno_value, int stream);
  // Waits for a call that is under way.
  void silence();

 private:
  const OutputRoom::Written on_written_;
  const OutputRoom::Broken on_broken_;
  std::mutex written_mutex_;  // guards written_; never held together with calls_mutex_
  std::unordered_map<std::uint32_t, std::size_t> written_;
  std::mutex calls_mutex_;  // guards is_silent_, held during calls
  bool is_silent_ = false;
};

// A chunk on its way to its sinks. The last of them to let go of it reports its bytes as written.
struct Shipment {
  Shipment(OutputChunk what, std::shared_ptr<Reports> to)
      : chunk(std::move(what)), reports(std::move(to)) {}
  ~Shipment() { reports->note_written(chunk.rank, chunk.bytes.size()); }
  Shipment(const Shipment&) = delete;
  Shipment& operator=(const Shipment&) = delete;

  const OutputChunk chunk;
  const std::shared_ptr<Reports> reports;
};
using SharedShipment = std::shared_ptr<const Shipment>;

// The last copy to go says that everything before it has been written.
using Token = std::shared_ptr<void>;

struct Note {
  std::string text;  // see OutputRoom::note
};

struct TypedRow {
  std::uint32_t rank = 0;  // see ConsoleFormat::end_typed_row
};

// What a writer thread gets.
using WriterItem = std::variant<SharedShipment, Token, Note, TypedRow, OutputRanks>;

}  // namespace hv::launcher
