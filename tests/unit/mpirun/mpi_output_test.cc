// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/mpi_output.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <vector>

#include "launcher/mpirank/carried_output.h"

namespace hv::launcher {
namespace {

struct Heard {
  std::map<int, std::string> by_rank;  // kMpirunItself: mpirun's own
  std::string of(int rank) { return by_rank[rank]; }
};

const Mpirun kHydra_mpi_output{MpiKind::kHydra, 0, "mpiexec", "", ""};
const Mpirun kOpenMpi{MpiKind::kOpenMpi, 4, "mpirun", "", ""};
const Mpirun kOpenMpi5{MpiKind::kOpenMpi, 5, "mpirun", "", ""};

Heard hear(const Mpirun& mpirun, const std::vector<std::string>& pieces, int stream = 1) {
  Heard heard;
  const auto sink = [&](const MpiPiece& piece) {
    CHECK(piece.stream == stream);
    heard.by_rank[piece.rank] += piece.bytes;
  };
  const auto output = make_mpi_output(mpirun, stream, "abc123");
  for (const std::string& piece : pieces) output->feed(piece, sink);
  output->end(sink);
  return heard;
}

std::string carried(const std::string& bytes) {
  std::string text;
  encode_carried(bytes, &text);
  return text;
}

// As mpirun does: a tag before each piece and behind each newline but the last.
std::string tagged(const std::string& tag, const std::string& piece) {
  std::string text = tag;
  for (std::size_t i = 0; i < piece.size(); ++i) {
    text += piece[i];
    if (piece[i] == '\n' && i + 1 < piece.size()) text += tag;
  }
  return text;
}

std::vector<std::string> single_bytes(const std::string& text) {
  std::vector<std::string> pieces;
  for (const char c : text) pieces.emplace_back(1, c);
  return pieces;
}

TEST_CASE("mpi_output tells the ranks of Hydra's tags apart, wherever pieces end") {
  const std::string text =
      "<abc123 0>one <abc123\n<abc123 12>two\n<abc123 12>half<abc123 0>three\n<abc123 12> a\n";
  for (const auto& pieces : {std::vector<std::string>{text}, single_bytes(text)}) {
    Heard heard = hear(kHydra_mpi_output, pieces);
    CHECK(heard.of(0) == "one <abc123\nthree\n");
    CHECK(heard.of(12) == "two\nhalf a\n");
    CHECK(heard.by_rank.size() == 2);
  }
}

TEST_CASE("mpi_output keeps lines without a tag for mpirun's own") {
  Heard heard = hear(kHydra_mpi_output, {"<abc123 1>x\n===\n= BAD <b> [1,0]\n<abc123 1>y"});
  CHECK(heard.of(1) == "x\ny");
  CHECK(heard.of(kMpirunItself) == "===\n= BAD <b> [1,0]\n");
  heard = hear(kOpenMpi, {"[vm:1] words [1,0\n\n[1,2]<stdout>:" + carried("x\n") + "bye\n"});
  CHECK(heard.of(2) == "x\n");
  CHECK(heard.of(kMpirunItself) == "[vm:1] words [1,0\n\nbye\n");
}

TEST_CASE("mpi_output gives what may have become a tag once nothing more comes") {
  CHECK(hear(kHydra_mpi_output, {"<abc123 7>x <abc"}).of(7) == "x <abc");
  CHECK(hear(kHydra_mpi_output, {"<abc123 99999999999>x"}).of(kMpirunItself) ==
        "<abc123 99999999999>x");
  CHECK(hear(kOpenMpi, {"[1,7"}, 2).of(kMpirunItself) == "[1,7");
}

TEST_CASE("mpi_output takes no number of ten digits") {
  CHECK(hear(kOpenMpi, {"[1,4294967295]<stdout>:x\n"}).of(kMpirunItself) ==
        "[1,4294967295]<stdout>:x\n");
  CHECK(hear(kOpenMpi, {"[1,999999999]<stdout>:x\n"}).of(999999999) == "x");
}

TEST_CASE("mpi_output knows the blank that Open MPI has behind its tags from 5 on") {
  const std::string text = tagged("[1,2]<stdout>: ", carried(" x\n y"));
  for (const auto& pieces : {std::vector<std::string>{text}, single_bytes(text)})
    CHECK(hear(kOpenMpi5, pieces).of(2) == " x\n y");
  CHECK(hear(kOpenMpi, {"[1,2]<stdout>: x\n"}).of(2) == " x");
}

TEST_CASE("mpi_output keeps the lines of processes that Open MPI's ranks have spawned") {
  const std::string text =
      "[2,0]<stdout>:one\n[2,0]<stdout>:two\x10n\n[1,0]<stdout>:" + carried("mine\n") +
      "[2,1]<stdout>:three\n";
  for (const auto& pieces : {std::vector<std::string>{text}, single_bytes(text)}) {
    Heard heard = hear(kOpenMpi, pieces);
    CHECK(heard.of(0) == "one\ntwo\x10n\nmine\n");
    CHECK(heard.of(1) == "three\n");
  }
}

TEST_CASE("mpi_output takes no text of a rank for a tag of Open MPI's") {
  const std::string said = "[1,0]<stdout>:no\n[1,0]<stdout>:\x10n\r\n";
  const std::string text = tagged("[1,3]<stdout>:", carried(said));
  for (const auto& pieces : {std::vector<std::string>{text}, single_bytes(text)})
    CHECK(hear(kOpenMpi, pieces).of(3) == said);
}

TEST_CASE("mpi_output gives each rank's bytes back, however mpirun mixes them") {
  std::mt19937 chance(20261125);
  for (int round = 0; round < 200; ++round) {
    const bool is_open_mpi = round % 2 == 0;
    std::map<int, std::string> said, on_the_way;
    for (int rank = 0; rank < 3; ++rank) {
      for (std::size_t i = chance() % 3000; i > 0; --i)
        said[rank] += chance() % 4 == 0 ? '\n' : "[<\x10\r1,0]>:x\xc3"[chance() % 11];
      on_the_way[rank] = is_open_mpi ? carried(said[rank]) : said[rank];
    }
    std::string text;
    while (!on_the_way.empty()) {
      auto next = on_the_way.begin();
      std::advance(next, chance() % on_the_way.size());
      const std::string piece = next->second.substr(0, 1 + chance() % 400);
      const std::string rank = std::to_string(next->first);
      text += tagged(is_open_mpi ? "[1," + rank + "]<stdout>:" : "<abc123 " + rank + ">", piece);
      next->second.erase(0, piece.size());
      if (next->second.empty()) on_the_way.erase(next);
    }
    std::vector<std::string> pieces;
    for (std::size_t at = 0, size = 0; at < text.size(); at += size)
      pieces.push_back(text.substr(at, size = 1 + chance() % 100));
    Heard heard = hear(is_open_mpi ? kOpenMpi : kHydra_mpi_output, pieces);
    for (int rank = 0; rank < 3; ++rank) CHECK(heard.of(rank) == said[rank]);
    CHECK(heard.of(kMpirunItself).empty());
  }
}

}  // namespace
}  // namespace hv::launcher
