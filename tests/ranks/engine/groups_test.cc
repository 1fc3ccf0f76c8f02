// Groups in whole jobs. SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <thread>

#include "tests/ranks/engine/job.h"

using namespace hv;
using namespace hv::runtime;

namespace {

const std::int64_t kOneGroup = 1;

hvrun_request in_group(const char* name, std::int32_t* value, std::uint64_t group,
                       std::uint32_t size) {
  hvrun_request request = allreduce_request(name, &kOneGroup, value, value, HVRUN_INT32);
  request.group = group;
  request.group_size = size;
  return request;
}

}  // namespace

TEST_CASE("no tensor of a group starts before the last of them is ready on every rank") {
  for (const JobShape& shape : {JobShape{1}, JobShape{3}, JobShape{2, 1}}) {
    CAPTURE(name_of(shape));
    run_job(in_shape(shape), [](Rank& rank) {
      for (int round = 0; round < 4; ++round) {  // fresh, then by numbers
        std::int32_t values[3] = {1, 2, 3}, alone = 4;
        std::uint64_t handles[3] = {};
        const char* const names[3] = {"a", "b", "c"};
        for (int i = 0; i < 2; ++i)
          expect(rank.enqueue(in_group(names[i], &values[i], 9, 3), &handles[i]).ok(), "enqueue");
        // Another tensor goes past them, on all ranks: what could have started has.
        expect(rank.run(allreduce_request("alone", &kOneGroup, &alone, &alone, HVRUN_INT32)).ok(),
               "run");
        expect(!rank.context.find(handles[0])->is_done, "a waits for its group");
        expect(values[0] == 1, "nothing of it has moved");
        // Nobody's last one until all have looked.
        expect(rank.run(allreduce_request("looked", &kOneGroup, &alone, &alone, HVRUN_INT32)).ok(),
               "run");
        expect(rank.enqueue(in_group(names[2], &values[2], 9, 3), &handles[2]).ok(), "enqueue");
        for (int i = 0; i < 3; ++i) {
          const Status status = rank.wait(handles[i]);
          expect(status.ok(), status.message);
          expect(values[i] == (i + 1) * rank.size, "sum");
          expect(rank.context.find(handles[2 - i])->is_done, "all of it is complete");
          if (i == 2)
            for (const std::uint64_t handle : handles) rank.context.release(handle);
        }
      }
    });
  }
}

TEST_CASE(
    "a disagreement on one tensor of a group is the outcome of all, on every rank, then it works") {
  run_job(in_shape({2, 1}), [](Rank& rank) {
    std::int32_t values[6] = {1, 2, 3, 4, 5, 6};
    std::uint64_t handles[3] = {};
    const char* const names[3] = {"a", "b", "c"};
    const std::int64_t wrong = rank.rank == 1 ? 2 : 1;
    for (int i = 0; i < 3; ++i) {
      hvrun_request request = in_group(names[i], &values[2 * i], 9, 3);
      if (i == 1) request.shape = &wrong;
      expect(rank.enqueue(request, &handles[i]).ok(), "enqueue");
    }
    for (int i = 0; i < 3; ++i) {
      const Status status = rank.wait(handles[i]);
      expect(status.code == StatusCode::kMismatch, "kMismatch, not: " + status.message);
      const std::string part = i == 1 ? "rank 1 has int32 [2]" : "its group 9 fails as one";
      expect(status.message.find(part) != std::string::npos, status.message);
      rank.context.release(handles[i]);
    }
    expect(values[0] == 1 && values[4] == 5, "nothing was changed");
    expect(rank.enqueue(in_group("a", &values[0], 9, 2), &handles[0]).ok(), "enqueue");
    expect(rank.enqueue(in_group("c", &values[4], 9, 2), &handles[1]).ok(), "enqueue");
    for (int i = 0; i < 2; ++i) expect(rank.wait(handles[i]).ok(), "the number can be used again");
    expect(values[0] == 3 && values[4] == 15, "sums");
  });
}

TEST_CASE("groups of allgathers and of reducescatters fail as one, and change nothing") {
  for (const hvrun_operation operation : {HVRUN_ALLGATHER, HVRUN_REDUCESCATTER}) {
    CAPTURE(operation);
    run_job(in_shape({2, 1}), [operation](Rank& rank) {
      std::int32_t inputs[3] = {1, 2, 3}, outputs[3][3] = {};
      const std::int64_t three = 3;
      const auto request_of = [&](int i, const char* name) {
        hvrun_request request = in_group(name, &inputs[i], 9, 3);
        request.operation = operation;
        request.shape = operation == HVRUN_ALLGATHER ? &kOneGroup : &three;
        request.input = operation == HVRUN_ALLGATHER ? &inputs[i] : inputs;
        request.output = outputs[i];
        return request;
      };
      for (int round = 0; round < 2; ++round) {  // fresh, then by numbers
        std::uint64_t handles[3] = {};
        const char* const names[3] = {"a", "b", "c"};
        for (int i = 0; i < 3; ++i) {
          hvrun_request request = request_of(i, names[i]);
          if (i == 1 && rank.rank == 1) request.type = HVRUN_FLOAT32;
          const Status enqueued = rank.enqueue(request, &handles[i]);
          expect(enqueued.ok(), enqueued.message);
        }
        for (int i = 0; i < 3; ++i) {
          const Status status = rank.wait(handles[i]);
          expect(status.code == StatusCode::kMismatch, "kMismatch, not: " + status.message);
          const std::string part = i == 1 ? "rank 1 has float32" : "its group 9 fails as one";
          expect(status.message.find(part) != std::string::npos, status.message);
          rank.context.release(handles[i]);
          for (const std::int32_t value : outputs[i]) expect(value == 0, "a result was written");
        }
      }
      std::uint64_t handles[2] = {};
      for (int i = 0; i < 2; ++i) {
        hvrun_request request = request_of(i, i == 0 ? "a" : "c");
        request.group_size = 2;
        expect(rank.enqueue(request, &handles[i]).ok(), "enqueue");
      }
      for (const std::uint64_t handle : handles) {
        const Status status = rank.wait(handle);
        expect(status.ok(), "the number can be used again: " + status.message);
      }
      expect(outputs[0][0] == (operation == HVRUN_ALLGATHER ? 1 : 3 * (rank.rank + 1)), "a");
      expect(outputs[1][0] == (operation == HVRUN_ALLGATHER ? 2 : 3 * (rank.rank + 1)), "c");
    });
  }
}

TEST_CASE("a group of scaled reducescatters may have tensors without elements") {
  run_job(in_shape({2}), [](Rank& rank) {
    const std::int32_t input[2] = {rank.rank + 1, rank.rank + 3};
    std::int32_t output = 0, nothing[2] = {};
    const std::int64_t shapes[3][2] = {{2, 1}, {0, 1}, {2, 0}};
    const char* const names[3] = {"full", "no rows", "empty rows"};
    std::uint64_t handles[3] = {};
    for (int i = 0; i < 3; ++i) {
      hvrun_request request = in_group(names[i], nullptr, 9, 3);
      request.operation = HVRUN_REDUCESCATTER;
      request.ndim = 2;
      request.shape = shapes[i];
      request.input = i == 0 ? input : nothing;
      request.output = i == 0 ? &output : nothing;
      request.prescale = 2;
      const Status enqueued = rank.enqueue(request, &handles[i]);
      expect(enqueued.ok(), enqueued.message);
    }
    for (const std::uint64_t handle : handles) {
      const Status status = rank.wait(handle);
      expect(status.ok(), status.message);
    }
    expect(output == (rank.rank == 0 ? 6 : 14), "twice the sum of the rank's row");
  });
}

// Only the ranks' rows tell that there is too little: by then the group is under way everywhere.
TEST_CASE("too little room is the outcome of the whole group, on that rank alone") {
  for (const JobShape& shape : {JobShape{3}, JobShape{2, 1}}) {
    CAPTURE(name_of(shape));
    run_job(in_shape(shape), [](Rank& rank) {
      for (int round = 0; round < 2; ++round) {  // fresh, then by numbers
        std::int32_t sum = 1, row = rank.rank, rows[3] = {-1, -1, -1}, other[3] = {-1, -1, -1};
        hvrun_request requests[3] = {in_group("sum", &sum, 9, 3), in_group("rows", &row, 9, 3),
                                     in_group("other rows", &row, 9, 3)};
        for (int i = 1; i < 3; ++i) requests[i].operation = HVRUN_ALLGATHER;
        requests[1].output = rows;
        requests[1].output_bytes = rank.rank == 1 ? 2 * sizeof row : sizeof rows;
        requests[2].output = other;
        requests[2].output_bytes = sizeof other;
        std::uint64_t handles[3] = {};
        for (int i = 0; i < 3; ++i) expect(rank.enqueue(requests[i], &handles[i]).ok(), "enqueue");
        for (int i = 0; i < 3; ++i) {
          const Status status = rank.wait(handles[i]);
          expect(status.code == (rank.rank == 1 ? StatusCode::kArgument : StatusCode::kOk),
                 std::to_string(i) + ": " + status.message);
          for (const char* words : {"output_bytes is 8", i == 1 ? "12 bytes" : "fails as one"})
            expect(status.ok() || status.message.find(words) != std::string::npos, status.message);
          rank.context.release(handles[i]);
        }
        for (int from = 0; from < 3; ++from) {
          expect(rows[from] == (rank.rank == 1 ? -1 : from), "nothing was written where none fits");
          expect(rank.rank == 1 || other[from] == from, "the group's other rows");
        }
        expect(rank.rank == 1 || sum == 3, "the group's sum");
      }
    });
  }
}

TEST_CASE("a refused member of a group is waited for until one comes in its place") {
  run_job(in_shape({2, 1}), [](Rank& rank) {
    std::int32_t values[2] = {1, 2};
    std::uint64_t handles[2] = {};
    expect(rank.enqueue(in_group("a", &values[0], 9, 2), &handles[0]).ok(), "enqueue");
    hvrun_request request = in_group("b", &values[1], 9, 2);
    request.output_bytes = 1;  // of an allreduce, which its own enqueue can tell
    if (rank.rank == 1)
      expect(rank.enqueue(request, &handles[1]).code == StatusCode::kArgument, "too small");
    std::int32_t alone = 4;
    expect(rank.run(allreduce_request("alone", &kOneGroup, &alone, &alone, HVRUN_INT32)).ok(),
           "run");
    expect(!rank.context.find(handles[0])->is_done, "a waits for its group");
    expect(rank.run(allreduce_request("looked", &kOneGroup, &alone, &alone, HVRUN_INT32)).ok(),
           "run");
    request.output_bytes = sizeof values[1];
    expect(rank.enqueue(request, &handles[1]).ok(), "in its place");
    for (const std::uint64_t handle : handles) expect(rank.wait(handle).ok(), "wait");
    expect(values[0] == 3 && values[1] == 6, "sums");
  });
}

TEST_CASE("a group that needs a rank which has joined fails as one, its allreduces too") {
  for (const JobShape& shape : {JobShape{3}, JobShape{2, 1}}) {
    CAPTURE(name_of(shape));
    run_job(in_shape(shape), [](Rank& rank) {
      for (int round = 0; round < 2; ++round) {
        hvrun_request join = HVRUN_REQUEST_INIT;
        join.operation = HVRUN_JOIN;
        std::uint64_t joined = 0, handles[3] = {};
        if (rank.rank == 1) expect(rank.enqueue(join, &joined).ok(), "join");
        std::int32_t values[3] = {1, 2, 3}, rows[3] = {-1, -1, -1};
        const char* const names[3] = {"a", "rows", "c"};
        for (int i = 0; rank.rank != 1 && i < 3; ++i) {
          hvrun_request request = in_group(names[i], &values[i], 9, 3);
          if (i == 1) request.operation = HVRUN_ALLGATHER;
          if (i == 1) request.output = rows;
          expect(rank.enqueue(request, &handles[i]).ok(), "enqueue");
        }
        for (int i = 0; rank.rank != 1 && i < 3; ++i) {
          const Status status = rank.wait(handles[i]);
          expect(status.code == StatusCode::kUnsupported, "kUnsupported, not: " + status.message);
          expect(status.message.find("rank 1 has joined") != std::string::npos, status.message);
          rank.context.release(handles[i]);
        }
        expect(values[0] == 1 && values[2] == 3 && rows[0] == -1, "nothing was changed");
        // The group's number works beside a joined rank when all of it does.
        for (int i = 0; rank.rank != 1 && i < 3; i += 2) {
          const Status status = rank.enqueue(in_group(names[i], &values[i], 9, 2), &handles[i]);
          expect(status.ok(), status.message);
        }
        for (int i = 0; rank.rank != 1 && i < 3; i += 2)
          expect(rank.wait(handles[i]).ok() && values[i] == 2 * (i + 1), "a sum of two ranks");
        if (rank.rank != 1) expect(rank.enqueue(join, &joined).ok(), "join");
        const Status status = rank.wait(joined);
        expect(status.ok(), "all have joined: " + status.message);
      }
    });
  }
}

TEST_CASE("ranks that count a tensor among different groups are told") {
  run_job(in_shape({2}), [](Rank& rank) {
    std::int32_t value = 1;
    const Status status = rank.run(in_group("a", &value, rank.rank == 0 ? 4 : 5, 1));
    expect(status.code == StatusCode::kMismatch, status.message);
    expect(status.message.find(
               "rank 0 has int32 [1] in group 4 of 1, rank 1 has int32 [1] in group 5 of 1") !=
               std::string::npos,
           status.message);
  });
}

TEST_CASE(
    "groups of all kinds of operations, in a cache that evicts all the time, yield what they "
    "should") {
  JobOptions options;
  options.shape = {2, 2};
  options.environment.set("HVRUN_CACHE_CAPACITY", "3");
  run_job(options, [](Rank& rank) {
    for (int round = 0; round < 20; ++round) {
      std::int64_t sum = 1, rows[4] = {0, 1, 2, 3}, row = rank.rank;
      const std::int64_t four = 4;
      hvrun_request requests[3];
      requests[0] = allreduce_request("sum", &kOneGroup, &sum, &sum, HVRUN_INT64);
      requests[1] = allreduce_request("share", &four, rows, nullptr, HVRUN_INT64);
      requests[1].operation = HVRUN_REDUCESCATTER;
      requests[2] = allreduce_request("rows", &kOneGroup, &row, nullptr, HVRUN_INT64);
      requests[2].operation = HVRUN_ALLGATHER;
      std::uint64_t handles[3] = {};
      for (int i = 0; i < 3; ++i) {
        const int which = (i + rank.rank) % 3;
        requests[which].group = 11;
        requests[which].group_size = 3;
        std::int64_t filler = 1;
        if (i == 1)
          expect(rank.run(allreduce_request(("filler" + std::to_string(round % 7)).c_str(),
                                            &kOneGroup, &filler, &filler, HVRUN_INT64))
                     .ok(),
                 "filler");
        expect(rank.enqueue(requests[which], &handles[which]).ok(), "enqueue");
      }
      for (const std::uint64_t handle : handles) {
        const Status status = rank.wait(handle);
        expect(status.ok(), status.message);
      }
      expect(sum == 4, "sum");
      const OperationPtr share = rank.context.find(handles[1]), all = rank.context.find(handles[2]);
      expect(*reinterpret_cast<std::int64_t*>(share->output) == 4 * rank.rank, "share");
      for (int from = 0; from < 4; ++from)
        expect(reinterpret_cast<std::int64_t*>(all->output)[from] == from, "rows");
      for (const std::uint64_t handle : handles) rank.context.release(handle);
    }
  });
}
