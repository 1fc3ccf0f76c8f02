// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/carrier_table.h"

#include <doctest/doctest.h>

#include <map>

#include "runtime/backend/mpi/mpi_abilities.h"
#include "runtime/backend/native/native_backend.h"
#include "src/base/text.h"
#include "tests/ranks/collective_checks.h"

namespace hv::runtime {
namespace {

// As NCCL's operations have it.
bool by_nccl(const CollectiveRequest& request) {
  return request.kind != CollectiveKind::kSparseAllreduce &&
         request.reduction != Reduction::kAdasum && !request.deterministic &&
         request.type != ElementType::kInt16;
}

CarrierQuestion asked(const std::string& names) {
  CarrierQuestion question;
  if (!names.empty()) question.names = split(names, ',');
  question.nccl = by_nccl;
  return question;
}

// By operation: the host's memory and GPUs'.
using Cells = std::map<std::string, std::pair<std::string, std::string>>;
Cells cells_of(const CarrierQuestion& question) {
  Cells cells;
  for (const std::string& line : split(carrier_table(question), '\n'))
    if (line.size() > 40)
      cells[std::string(trim(line.substr(0, 25)))] = {std::string(trim(line.substr(25, 15))),
                                                      line.substr(40)};
  return cells;
}

}  // namespace

TEST_CASE("who carries out what is computed for each operation, on the host and on GPUs") {
  const std::string staged = "native through the host's";
  Cells cells = cells_of(asked(""));
  CHECK(cells.size() == 11);
  CHECK(cells["allreduce"] ==
        std::pair<std::string, std::string>("native", "nccl, else " + staged));
  for (const char* row : {"by Adasum", "of sparse tensors", "HVRUN_DETERMINISTIC=1"}) {
    CAPTURE(std::string(row));
    CHECK(cells[row] == std::pair<std::string, std::string>("native", staged));
  }
  CHECK(cells["of int16 or bool"].second == staged);
  CHECK(cells["send, receive"] == std::pair<std::string, std::string>("native", staged));
}

TEST_CASE("what MPI alone does not carry out nobody does, and native where it is named") {
  Cells alone = cells_of(asked("mpi")), both = cells_of(asked("mpi,native"));
  for (Cells* const cells : {&alone, &both})
    CHECK((*cells)["send, receive"] ==
          std::pair<std::string, std::string>("mpi", "mpi through the host's"));
  for (const char* row : {"by Adasum", "of sparse tensors", "HVRUN_DETERMINISTIC=1"}) {
    CAPTURE(std::string(row));
    CHECK(alone[row] == std::pair<std::string, std::string>("nobody", "nobody"));
    CHECK(both[row] == std::pair<std::string, std::string>("native", "native through the host's"));
  }
  CHECK(alone["allreduce"] == std::pair<std::string, std::string>("mpi", "mpi through the host's"));
  CHECK(alone["allreduce"] == both["allreduce"]);
}

TEST_CASE("an MPI's addresses and NCCL stand in the list's order") {
  CarrierQuestion question = asked("mpi,nccl,native");
  CHECK(cells_of(question)["broadcast"].second ==
        "mpi by address if aware of CUDA, else nccl, else mpi through the host's");
  question.of_gpus = CarrierQuestion::Addresses::kAlways;
  CHECK(cells_of(question)["broadcast"].second == "mpi by address");
  CHECK(cells_of(question)["allreduce"].second == "nccl, else mpi through the host's");
  question.of_gpus = CarrierQuestion::Addresses::kNever;
  CHECK(cells_of(question)["broadcast"].second == "nccl, else mpi through the host's");
  CHECK(cells_of(asked("nccl,mpi,native"))["broadcast"].second ==
        "nccl, else mpi by address if aware of CUDA, else mpi through the host's");
  question = asked("native,nccl");
  CHECK(cells_of(question)["allreduce"].second == "native through the host's");
  CHECK(carrier_table(question).find("\nNCCL is never asked: native, which") != std::string::npos);
  CHECK(carrier_table(asked("")).find("never asked") == std::string::npos);
}

TEST_CASE("a table knows of HVRUN_DETERMINISTIC, and of hvrun's part for NCCL that is not there") {
  CarrierQuestion question = asked("nccl");
  CHECK(cells_of(question)["allreduce"] == std::pair<std::string, std::string>("nobody", "nccl"));
  question.deterministic = true;
  CHECK(cells_of(question)["allreduce"].second == "nobody");
  CHECK(cells_of(question)["allgather"].second == "nobody");
  question = asked("");
  question.nccl = nullptr;
  CHECK(cells_of(question)["allreduce"].second == "native through the host's");
}

// carrier_order() leaves out what stands behind it.
TEST_CASE("native carries out whatever MPI does") {
  for (const ElementType type : all_types()) {
    for (const Reduction reduction : all_reductions()) {
      for (const double scale : {1.0, 2.0}) {
        CollectiveRequest request = allreduce_of(type, reduction);
        request.prescale = scale;
        CAPTURE(element_type_name(type));
        if (mpi_carries(request, true)) CHECK(NativeBackend::carries(request));
      }
    }
  }
}

}  // namespace hv::runtime
