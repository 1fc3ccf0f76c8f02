// One GPU of this process: its context, the runtime's stream on it, its events and pinned memory.
// SPDX-License-Identifier: Apache-2.0
//
// Any thread may call. Held by the accelerator and by all memory and moments that come from it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/device/accelerator.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/spare_memory.h"
#include "src/base/clock.h"

namespace hv::cuda {

class Device : public std::enable_shared_from_this<Device> {
 public:
  // Destroys a stream, which may have work still: the driver then lets it end.
  class StreamCloser {
   public:
    StreamCloser() = default;
    explicit StreamCloser(std::shared_ptr<Device> device) : device_(std::move(device)) {}
    void operator()(Stream stream) const;

   private:
    std::shared_ptr<Device> device_;
  };
  using StreamPtr = std::unique_ptr<std::remove_pointer_t<Stream>, StreamCloser>;

  static Status open(std::shared_ptr<const Driver> driver, int ordinal,
                     std::shared_ptr<Device>* made);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const std::shared_ptr<const Driver>& driver() const { return driver_; }
  Stream work() const { return work_; }
  int ordinal() const { return ordinal_; }
  // The same in every process, whatever CUDA_VISIBLE_DEVICES says.
  Status identify(Uuid* uuid);
  // Its place in this machine, such as "0000:3B:00.0": of MIG devices that of their GPU.
  Status locate(std::string* pci_address);
  // While it runs, this thread's context is the device's, and no capture forbids what it calls.
  Status within(const std::function<Status()>& action);
  // One more of the runtime's own, of the highest priority.
  Status open_stream(StreamPtr* made);
  Status mark(Stream stream, runtime::MomentPtr* made);
  // A caller's: kUnsupported while a graph is captured from it.
  Status mark_callers(Stream stream, runtime::MomentPtr* made);
  // What the stream is given from now on waits for it; for all of them.
  Status wait_in(Stream stream, const runtime::Moment& moment);
  Status wait_in(Stream stream, const std::vector<runtime::MomentPtr>& moments);
  Status poll(Event event);
  // When the last owner lets go of it, work of any stream may still use it: a thread of its own
  // waits for that. Where there is no more, that thread gives back what is spare, and the caller
  // waits a while.
  Status allocate(std::size_t bytes, runtime::MemoryPtr* made);
  // No work uses it any more. Where this is the last owner, the next allocate() may have it.
  static void let_go(runtime::MemoryPtr memory);
  Status allocate_pinned(std::size_t bytes, runtime::MemoryPtr* made);
  class RecordedEvent;
  Status copy(Stream stream, runtime::Accelerator::Way way, void* to, const void* from,
              std::size_t bytes);
  Status clear(Stream stream, void* memory, std::size_t bytes);

 private:
  class Unforbidden;
  class Current;
  class Piece;

  Device(std::shared_ptr<const Driver> driver, int ordinal);
  Status begin();
  Status make_stream(Stream* made);
  Status check_capture(Stream stream);
  Status record(Stream stream, runtime::MomentPtr* made);  // with the context current
  Status have_wait(Stream stream, Event event);            // so, too
  std::uint64_t id_of(Stream stream) const;                // 0: it cannot be told
  Status take_event(Event* event);
  void give_back(Event event);
  struct Freed {
    std::byte* memory;
    bool is_pinned;
  };
  Status take_from_driver(std::size_t bytes, std::byte** memory);
  std::byte* take_spare(SparePieces* from, std::size_t* bytes);  // as SparePieces::take()
  void keep(const Freed& piece, std::size_t bytes);
  void free_later(const std::vector<Freed>& pieces);
  void free_all_of_those();
  bool await_freed(Duration limit);  // false: not all of it by then
  Status check(int result, std::string_view doing) const;
  const DriverFunctions& call() const { return driver_->call(); }

  const std::shared_ptr<const Driver> driver_;
  const int ordinal_;
  int number_ = 0;  // as the driver names it
  Context context_ = nullptr;
  Stream work_ = nullptr;
  std::atomic<std::uint64_t> turns_{0};  // of records: two each, before and after
  std::mutex mutex_;                     // guards all below
  std::vector<Event> free_events_;
  SparePieces spare_, spare_pinned_;
  std::vector<Freed> freed_later_;
  bool is_freeing_ = false;  // a thread frees those
  std::condition_variable freed_;
};

// A moment of a device.
class Device::RecordedEvent : public runtime::Moment {
 public:
  // stream: its id; before, after: the turns between which it was recorded there.
  RecordedEvent(std::shared_ptr<Device> device, Event event, std::uint64_t stream,
                std::uint64_t before, std::uint64_t after)
      : device_(std::move(device)),
        event_(event),
        stream_(stream),
        before_(before),
        after_(after) {}
  ~RecordedEvent() override { device_->give_back(event_); }
  RecordedEvent(const RecordedEvent&) = delete;
  RecordedEvent& operator=(const RecordedEvent&) = delete;

  Device& device() const { return *device_; }
  Event event() const { return event_; }
  // It has passed when that one has.
  bool is_before(const RecordedEvent& other) const {
    return stream_ != 0 && stream_ == other.stream_ && after_ < other.before_;
  }
  // A bucket's results have one end, and a stream that waits for it does so for all of them; the
  // moment's own comes past it anyway.
  bool is_awaited_by(std::uint64_t stream) const {
    return stream != 0 && (stream_ == stream || awaited_by_ == stream);
  }
  void note_awaited_by(std::uint64_t stream) const { awaited_by_ = stream; }

 private:
  const std::shared_ptr<Device> device_;
  const Event event_;
  const std::uint64_t stream_, before_, after_;
  mutable std::atomic<std::uint64_t> awaited_by_{0};  // the last one
};

}  // namespace hv::cuda
