// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/device.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>

#include "src/base/signal_block.h"

namespace hv::cuda {
namespace {

constexpr std::chrono::seconds kFreesWithin{2};

Address address_of(const void* memory) { return reinterpret_cast<Address>(memory); }

const Device::RecordedEvent& event_of(const runtime::Moment& moment) {
  return static_cast<const Device::RecordedEvent&>(moment);  // there are no others
}

}  // namespace

// Meanwhile no capture, of whichever thread, forbids what this thread calls.
class Device::Unforbidden {
 public:
  explicit Unforbidden(const DriverFunctions& call) : call_(call) {
    call_.exchange_capture_mode(&mode_);
  }
  ~Unforbidden() { call_.exchange_capture_mode(&mode_); }
  Unforbidden(const Unforbidden&) = delete;
  Unforbidden& operator=(const Unforbidden&) = delete;

 private:
  const DriverFunctions& call_;
  int mode_ = kCaptureRelaxed;  // from the constructor on: the thread's own
};

// This thread's context is the device's meanwhile, too.
class Device::Current {
 public:
  explicit Current(const Device& device)
      : device_(device), unforbidden_(call()), result_(call().push_context(device.context_)) {}
  ~Current() {
    if (!is_taken()) return;
    Context popped = nullptr;
    call().pop_context(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

  bool is_taken() const { return result_ == kSuccess; }
  Status taken() const { return device_.check(result_, "take its context"); }

 private:
  const DriverFunctions& call() const { return device_.call(); }

  const Device& device_;
  const Unforbidden unforbidden_;
  const int result_;
};

Device::Device(std::shared_ptr<const Driver> driver, int ordinal)
    : driver_(std::move(driver)), ordinal_(ordinal) {}

Status Device::open(std::shared_ptr<const Driver> driver, int ordinal,
                    std::shared_ptr<Device>* made) {
  std::shared_ptr<Device> device(new Device(std::move(driver), ordinal));
  if (Status begun = device->begin(); !begun.ok()) return begun;
  *made = std::move(device);
  return Status::success();
}

Status Device::begin() {
  const Unforbidden unforbidden(call());
  if (Status status = check(call().device(&number_, ordinal_), "look it up"); !status.ok())
    return status;
  if (Status status = check(call().retain_context(&context_, number_), "make its context");
      !status.ok())
    return status;
  const Current current(*this);
  if (Status status = current.taken(); !status.ok()) return status;
  return make_stream(&work_);
}

Status Device::make_stream(Stream* made) {
  int lowest = 0, highest = 0;
  if (Status status = check(call().stream_priorities(&lowest, &highest), "ask for priorities");
      !status.ok())
    return status;
  return check(call().make_stream(made, kStreamNonBlocking, highest), "make a stream");
}

Status Device::open_stream(StreamPtr* made) {
  const Current current(*this);
  if (Status status = current.taken(); !status.ok()) return status;
  Stream stream = nullptr;
  if (Status status = make_stream(&stream); !status.ok()) return status;
  *made = StreamPtr(stream, StreamCloser(shared_from_this()));
  return Status::success();
}

void Device::StreamCloser::operator()(Stream stream) const {
  const Current current(*device_);
  if (current.is_taken()) device_->call().destroy_stream(stream);
}

// The driver may have gone before, at the process's end: then all of it has.
Device::~Device() {
  if (context_ == nullptr) return;
  {
    const Current current(*this);
    if (current.is_taken()) {
      for (const Event event : free_events_) call().destroy_event(event);
      for (std::byte* const piece : spare_pinned_.take_all()) call().free_host(piece);
      for (std::byte* const piece : spare_.take_all()) call().free(address_of(piece));
      if (work_ != nullptr) call().destroy_stream(work_);
    }
  }
  call().release_context(number_);
}

Status Device::check(int result, std::string_view doing) const {
  if (result == kSuccess) return Status::success();
  Status status =
      driver_->check(result, "GPU " + std::to_string(ordinal_) + ": " + std::string(doing));
  if (result == kOutOfMemory) status.code = StatusCode::kMemory;
  return status;
}

Status Device::identify(Uuid* uuid) {
  return check(call().device_uuid(uuid, number_), "ask for its UUID");
}

Status Device::locate(std::string* pci_address) {
  char text[32] = "";
  Status status =
      check(call().device_pci_address(text, sizeof text, number_), "ask for its PCI address");
  *pci_address = text;
  return status;
}

Status Device::within(const std::function<Status()>& action) {
  const Current current(*this);
  const Status taken = current.taken();
  return taken.ok() ? action() : taken;
}

Status Device::check_capture(Stream stream) {
  int status = kCapturesNone;
  const int result = call().stream_captures(stream, &status);
  if (result == kSuccess && status == kCapturesNone) return Status::success();
  if (result != kSuccess && result != kStreamCaptureImplicit)
    return check(result, "ask whether a stream is captured");
  return {StatusCode::kUnsupported,
          "a CUDA graph is being captured from the tensor's stream, and a graph that is replayed "
          "would not negotiate; try: enqueue before or after the capture, or on another stream"};
}

Status Device::take_event(Event* event) {
  {
    const std::lock_guard lock(mutex_);
    if (!free_events_.empty()) {
      *event = free_events_.back();
      free_events_.pop_back();
      return Status::success();
    }
  }
  return check(call().make_event(event, kEventDisableTiming), "make an event");
}

void Device::give_back(Event event) {
  const std::lock_guard lock(mutex_);
  free_events_.push_back(event);
}

Status Device::mark_callers(Stream stream, runtime::MomentPtr* made) {
  const Current current(*this);
  if (Status status = current.taken(); !status.ok()) return status;
  if (Status status = check_capture(stream); !status.ok()) return status;
  return record(stream, made);
}

Status Device::mark(Stream stream, runtime::MomentPtr* made) {
  const Current current(*this);
  if (Status status = current.taken(); !status.ok()) return status;
  return record(stream, made);
}

Status Device::record(Stream stream, runtime::MomentPtr* made) {
  Event event = nullptr;
  if (Status status = take_event(&event); !status.ok()) return status;
  const std::uint64_t id = id_of(stream);
  const std::uint64_t before = ++turns_;
  const int result = call().record_event(event, stream);  // waits where a stream has very much
  auto moment =
      std::make_shared<const RecordedEvent>(shared_from_this(), event, id, before, ++turns_);
  if (Status status = check(result, "record an event"); !status.ok()) return status;
  *made = std::move(moment);
  return Status::success();
}

// An address may be that of a stream that has gone, whose work goes on; an id is never used again.
std::uint64_t Device::id_of(Stream stream) const {
  unsigned long long id = 0;
  if (call().stream_id == nullptr || call().stream_id(stream, &id) != kSuccess) return 0;
  return id;
}

Status Device::have_wait(Stream stream, Event event) {
  return check(call().stream_wait(stream, event, 0), "have a stream wait");
}

Status Device::wait_in(Stream stream, const runtime::Moment& moment) {
  const RecordedEvent& one = event_of(moment);
  const Current current(*this);
  if (Status status = current.taken(); !status.ok()) return status;
  const std::uint64_t id = id_of(stream);
  if (one.is_awaited_by(id)) return Status::success();
  Status status = have_wait(stream, one.event());
  if (status.ok()) one.note_awaited_by(id);
  return status;
}

// Tensors of a bucket mostly come from one stream: the last one's moment is that of all.
Status Device::wait_in(Stream stream, const std::vector<runtime::MomentPtr>& moments) {
  std::vector<const RecordedEvent*> last;  // of each stream
  for (const runtime::MomentPtr& moment : moments) {
    const RecordedEvent& one = event_of(*moment);
    const auto other = std::find_if(last.begin(), last.end(), [&](const RecordedEvent* known) {
      return one.is_before(*known) || known->is_before(one);
    });
    if (other == last.end())
      last.push_back(&one);
    else if ((*other)->is_before(one))
      *other = &one;
  }
  const Current current(*this);
  Status status = current.taken();
  for (const RecordedEvent* const one : last)
    if (status.ok()) status = have_wait(stream, one->event());
  return status;
}

Status Device::poll(Event event) {
  const Current current(*this);
  if (Status status = current.taken(); !status.ok()) return status;
  const int result = call().event_query(event);
  if (result == kNotReady) return {StatusCode::kInProgress, {}};
  return check(result, "carry out what it was given");
}

// What lets go of a piece of the device's memory.
class Device::Piece {
 public:
  Piece(std::shared_ptr<Device> device, std::size_t bytes)
      : device_(std::move(device)), bytes_(bytes) {}
  void operator()(std::byte* memory) const {
    const Freed piece{memory, false};
    is_quiet ? device_->keep(piece, bytes_) : device_->free_later({piece});
  }

  bool is_quiet = false;  // no work uses it

 private:
  std::shared_ptr<Device> device_;
  std::size_t bytes_;
};

Status Device::allocate(std::size_t wanted, runtime::MemoryPtr* made) {
  std::size_t bytes = SparePieces::size_for(wanted);
  std::byte* memory = take_spare(&spare_, &bytes);
  if (memory == nullptr) {
    if (Status status = take_from_driver(bytes, &memory); !status.ok()) return status;
  }
  made->reset(memory, Piece(shared_from_this(), bytes));
  return Status::success();
}

// The driver's free waits for all work there, which may itself wait for this thread: another one
// calls it, and this one does not wait for long.
Status Device::take_from_driver(std::size_t bytes, std::byte** memory) {
  const Current current(*this);
  if (Status status = current.taken(); !status.ok()) return status;
  Address address = 0;
  int result = call().allocate(&address, bytes);
  if (result == kOutOfMemory) {
    std::vector<Freed> spare;
    {
      const std::lock_guard lock(mutex_);
      for (std::byte* const one : spare_.take_all()) spare.push_back({one, false});
    }
    free_later(spare);
    if (await_freed(kFreesWithin)) result = call().allocate(&address, bytes);
  }
  *memory = reinterpret_cast<std::byte*>(address);
  return check(result, "allocate " + std::to_string(bytes) + " bytes");
}

void Device::let_go(runtime::MemoryPtr memory) {
  Piece* const piece = std::get_deleter<Piece>(memory);
  if (piece != nullptr && memory.use_count() == 1) piece->is_quiet = true;
}

std::byte* Device::take_spare(SparePieces* from, std::size_t* bytes) {
  const std::lock_guard lock(mutex_);
  return from->take(*bytes, bytes);
}

void Device::keep(const Freed& piece, std::size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    SparePieces& spare = piece.is_pinned ? spare_pinned_ : spare_;
    if (spare.put(piece.memory, bytes)) return;
  }
  free_later({piece});
}

// Called where nothing may be thrown: without a thread the pieces are left to the next call.
void Device::free_later(const std::vector<Freed>& pieces) {
  {
    const std::lock_guard lock(mutex_);
    freed_later_.insert(freed_later_.end(), pieces.begin(), pieces.end());
    if (freed_later_.empty() || std::exchange(is_freeing_, true)) return;
  }
  const SignalBlock block;
  try {
    std::thread([self = shared_from_this()] { self->free_all_of_those(); }).detach();
  } catch (const std::system_error&) {
    const std::lock_guard lock(mutex_);
    is_freeing_ = false;
  }
}

void Device::free_all_of_those() {
  const auto take = [this] {
    const std::lock_guard lock(mutex_);
    is_freeing_ = !freed_later_.empty();
    return std::exchange(freed_later_, {});
  };
  for (std::vector<Freed> pieces = take(); !pieces.empty(); pieces = take()) {
    const Current current(*this);
    for (const Freed& one : pieces) {
      if (!current.is_taken()) break;
      one.is_pinned ? call().free_host(one.memory) : call().free(address_of(one.memory));
    }
  }
  freed_.notify_all();
}

bool Device::await_freed(Duration limit) {
  std::unique_lock lock(mutex_);
  return freed_.wait_for(lock, limit, [this] { return !is_freeing_; });
}

Status Device::allocate_pinned(std::size_t wanted, runtime::MemoryPtr* made) {
  std::size_t bytes = SparePieces::size_for(wanted);
  void* memory = take_spare(&spare_pinned_, &bytes);
  if (memory == nullptr) {
    const Current current(*this);
    if (Status status = current.taken(); !status.ok()) return status;
    if (Status status = check(call().allocate_host(&memory, bytes, kHostPortable),
                              "pin " + std::to_string(bytes) + " bytes of the host's memory");
        !status.ok())
      return status;
  }
  made->reset(static_cast<std::byte*>(memory),
              [device = shared_from_this(), bytes](std::byte* one) {
                device->keep({one, true}, bytes);
              });
  return Status::success();
}

Status Device::copy(Stream stream, runtime::Accelerator::Way way, void* to, const void* from,
                    std::size_t bytes) {
  if (bytes == 0) return Status::success();
  const Current current(*this);
  if (Status status = current.taken(); !status.ok()) return status;
  using Way = runtime::Accelerator::Way;
  switch (way) {
    case Way::kToHost:
      return check(call().copy_to_host(to, address_of(from), bytes, stream), "copy to the host");
    case Way::kToDevice:
      return check(call().copy_to_device(address_of(to), from, bytes, stream),
                   "copy from the host");
    case Way::kOnDevice:
      return check(call().copy_on_device(address_of(to), address_of(from), bytes, stream), "copy");
  }
  return Status::success();
}

Status Device::clear(Stream stream, void* memory, std::size_t bytes) {
  if (bytes == 0) return Status::success();
  const Current current(*this);
  if (Status status = current.taken(); !status.ok()) return status;
  return check(call().fill(address_of(memory), 0, bytes, stream), "clear memory");
}

}  // namespace hv::cuda
