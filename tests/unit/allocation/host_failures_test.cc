// Tests of launcher/allocation/host_failures.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/host_failures.h"

#include <doctest/doctest.h>

using namespace hv;
using namespace hv::launcher;

namespace {

HostFailure failure(const std::string& host, const std::string& what,
                    ErrorKind kind = ErrorKind::kStart) {
  return {host, Error(kind, what, "look at " + host)};
}

std::vector<std::string> texts(const std::vector<HostFailure>& failures) {
  std::vector<std::string> result;
  for (const FoldedFailure& folded : fold_failures(failures))
    result.emplace_back(folded.error().what());
  return result;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("an error of one host stays as it is, with the host where it names none") {
  CHECK(texts({failure("n1", "connect to host n1: 10.0.0.1:22: Connection refused")}) ==
        Texts{"connect to host n1: 10.0.0.1:22: Connection refused"});
  CHECK(texts({failure("n1", "read the key file k: No such file")}) ==
        Texts{"on n1: read the key file k: No such file"});
}

TEST_CASE("errors that differ only in name and address are one") {
  std::vector<HostFailure> refused, late, wordless;
  for (int i = 1; i <= 10; ++i) {
    const std::string name = "n" + std::to_string(i), address = "10.0.0." + std::to_string(i);
    refused.push_back(failure(name, "connect to host " + name + ": " + address +
                                        ":22: Connection refused; [fd00::" + std::to_string(i) +
                                        "]:22: Network is unreachable"));
    late.push_back(failure(name, "connect to host " + name + " (" + address +
                                     ":22, [fd00::1]:22): not done within 30 s"));
    wordless.push_back(failure(name, "start the agent: ssh " + name + " said nothing"));
  }
  const std::string all = "n[1-10]";
  CHECK(texts(refused) ==
        Texts{"connect to hosts " + all + " (10): Connection refused; Network is unreachable"});
  CHECK(texts(late) == Texts{"connect to hosts " + all + " (10): not done within 30 s"});
  CHECK(texts(wordless) ==
        Texts{"on " + all + " (10 hosts): start the agent: ssh n1 said nothing"});
  CHECK(fold_failures(refused)[0].hint == "look at n1");
  CHECK(fold_failures(refused)[0].hosts.size() == 10);
}

TEST_CASE("equal errors that name no host, and different ones, keep the order of their hosts") {
  CHECK(texts({failure("a", "find the program x: not found"), failure("b", "no memory"),
               failure("c", "find the program x: not found")}) ==
        Texts{"on a,c: find the program x: not found", "on b: no memory"});
}

TEST_CASE("a part of a longer name is no host's name") {
  CHECK(texts({failure("n1", "log in to host n1: n10 is not n1.lab."),
               failure("n2", "log in to host n2: n10 is not n1.lab.")}) ==
        Texts{"log in to hosts n[1-2]: n10 is not n1.lab."});
  CHECK(texts({failure("n1", "host n1 fails"), failure("n2", "host n2 fails", ErrorKind::kTimeout)})
            .size() == 2);
}
