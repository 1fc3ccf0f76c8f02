// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/file_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "launcher/output/console_format.h"
#include "src/base/blocking_write.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {
namespace {

// Beyond this many, all are closed and opened again as they are needed: hvrun has other uses for
// descriptors.
constexpr std::size_t kOpenFiles = 128;

struct RankFile {
  std::string folder;
  const char* name = "";  // in it
  UniqueFd fd;
  bool was_opened = false;
  bool is_broken = false;
  std::vector<SharedShipment> waiting;
  std::unique_ptr<FileWriter> own_writer;  // of a special file

  std::string path() const { return folder + "/" + name; }
};

// What the thread owns.
class FileLoop {
 public:
  FileLoop(OutputDirectory directory, FileWriter::Scope scope,
           std::shared_ptr<WorkQueue<WriterItem>> queue, std::shared_ptr<Reports> reports)
      : directory_(std::move(directory)),
        scope_(scope),
        queue_(std::move(queue)),
        reports_(std::move(reports)) {}

  void run() {
    std::vector<WriterItem> items;
    while (queue_->take_all(items)) {
      for (WriterItem& item : items) sort_in(std::move(item));
      write_waiting();
      pass_on_tokens();
    }
    for (auto& [stream, file] : files_) {
      if (file.own_writer) file.own_writer->close();
    }
    for (auto& [stream, file] : files_) {
      if (file.own_writer) file.own_writer->join(std::nullopt);
    }
  }

 private:
  void sort_in(WriterItem item) {
    if (auto* token = std::get_if<Token>(&item)) tokens_.push_back(std::move(*token));
    if (auto* shipment = std::get_if<SharedShipment>(&item)) sort_in(std::move(*shipment));
  }

  void sort_in(SharedShipment shipment) {
    const OutputChunk& chunk = shipment->chunk;
    const StreamId stream = stream_id(chunk.rank, chunk.stream);
    if (scope_ == FileWriter::Scope::kAllFiles && !files_.contains(stream)) make_both(chunk.rank);
    RankFile& file = file_of(stream, chunk.rank, chunk.stream);
    if (file.own_writer) {
      file.own_writer->put(std::move(shipment));
      return;
    }
    if (file.waiting.empty()) touched_.push_back(stream);
    file.waiting.push_back(std::move(shipment));
  }

  // With --pty a rank has one stream: the other's file is empty then, not an earlier job's.
  void make_both(std::uint32_t rank) {
    for (const std::uint8_t number : {1, 2}) {
      const StreamId stream = stream_id(rank, number);
      if (!file_of(stream, rank, number).own_writer) touched_.push_back(stream);
    }
  }

  RankFile& file_of(StreamId stream, std::uint32_t rank, std::uint8_t number) {
    const auto [found, is_new] = files_.try_emplace(stream);
    RankFile& file = found->second;
    if (!is_new) return file;
    file.folder = directory_.path() + "/rank." + std::to_string(rank);
    file.name = number == 2 ? "stderr" : "stdout";
    struct stat status {};
    const bool is_special = ::lstat(file.path().c_str(), &status) == 0 &&
                            !S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode);
    if (is_special && scope_ == FileWriter::Scope::kAllFiles) {
      file.own_writer =
          std::make_unique<FileWriter>(directory_, FileWriter::Scope::kOneSpecialFile, reports_);
    }
    return file;
  }

  void write_waiting() {
    for (const StreamId stream : touched_) {
      RankFile& file = files_[stream];
      if (!file.is_broken && open(file)) write(file);
      file.waiting.clear();
      reports_->send();
    }
    touched_.clear();
  }

  bool open(RankFile& file) {
    if (file.fd) return true;
    if (open_files_ >= kOpenFiles) close_all();
    const auto directory = directory_.open_rank_directory(file.folder);
    if (directory.error != 0) return fail(file, directory.error, directory.detail);
    const int mode = file.was_opened ? O_APPEND : O_CREAT;
    const int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | mode;
    UniqueFd fd(::openat(directory.fd.get(), file.name, flags, 0666));
    struct stat status {};
    if (!fd || ::fstat(fd.get(), &status) != 0)
      return fail(file, errno, errno == ELOOP ? ", a symbolic link" : "");
    const bool is_own = S_ISCHR(status.st_mode) || !directory_.reason_against(status);
    if (!is_own) return fail(file, EPERM, ", which belongs to another user");
    const bool is_former = S_ISREG(status.st_mode) && !file.was_opened;  // of another job
    if (is_former && ::ftruncate(fd.get(), 0) != 0) return fail(file, errno);
    file.fd = std::move(fd);
    file.was_opened = true;
    ++open_files_;
    return true;
  }

  void write(RankFile& file) {
    std::vector<iovec> pieces;
    for (const SharedShipment& shipment : file.waiting) {
      const std::string& bytes = shipment->chunk.bytes;
      pieces.push_back({const_cast<char*>(bytes.data()), bytes.size()});
    }
    if (const int failure = write_all(file.fd.get(), pieces)) fail(file, failure);
  }

  bool fail(RankFile& file, int errno_value, const char* detail = "") {
    file.is_broken = true;
    reports_->tell_broken("write output to " + printable(file.path(), 1000) + detail, errno_value,
                          0);
    return false;
  }

  void close_all() {
    for (auto& [stream, file] : files_) file.fd.reset();
    open_files_ = 0;
  }

  void pass_on_tokens() {
    for (const Token& token : tokens_) {
      for (auto& [stream, file] : files_) {
        if (file.own_writer) file.own_writer->put(token);
      }
    }
    tokens_.clear();
  }

  const OutputDirectory directory_;
  const FileWriter::Scope scope_;
  const std::shared_ptr<WorkQueue<WriterItem>> queue_;
  const std::shared_ptr<Reports> reports_;
  std::map<StreamId, RankFile> files_;
  std::vector<StreamId> touched_;  // files with something waiting
  std::vector<Token> tokens_;
  std::size_t open_files_ = 0;
};

}  // namespace

FileWriter::FileWriter(OutputDirectory directory, Scope scope, std::shared_ptr<Reports> reports)
    : queue_(std::make_shared<WorkQueue<WriterItem>>()),
      thread_([loop = std::make_shared<FileLoop>(std::move(directory), scope, queue_,
                                                 std::move(reports))] { loop->run(); }) {}

}  // namespace hv::launcher
