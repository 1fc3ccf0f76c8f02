// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/result_writer.h"

#include <utility>
#include <vector>

#include "src/base/blocking_write.h"

namespace hv::launcher {
namespace {

// Body of the thread.
void write_results(const UniqueFd& fd, WorkQueue<std::string>& queue, Reports& reports) {
  bool is_broken = false;
  std::vector<std::string> items;
  while (queue.take_all(items)) {
    for (const std::string& bytes : items) {
      const int failure = is_broken ? 0 : write_all(fd.get(), bytes);
      if (failure != 0) {
        is_broken = true;
        reports.tell_broken("write the results", failure, 0);
      }
      reports.note_written(0, bytes.size());
      reports.send();
    }
  }
}

}  // namespace

ResultWriter::ResultWriter(UniqueFd fd, Written on_written, Broken on_broken)
    : queue_(std::make_shared<WorkQueue<std::string>>()),
      reports_(std::make_shared<Reports>(
          [report = std::move(on_written)](std::uint32_t, std::size_t bytes) { report(bytes); },
          [report = std::move(on_broken)](const std::string&, int errno_value, int) {
            report(errno_value);
          })),
      thread_([owned = std::make_shared<UniqueFd>(std::move(fd)), queue = queue_,
               reports = reports_] { write_results(*owned, *queue, *reports); }) {}

ResultWriter::~ResultWriter() {
  close();
  reports_->silence();
}

}  // namespace hv::launcher
