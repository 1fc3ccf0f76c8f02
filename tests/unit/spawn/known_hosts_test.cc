// known_hosts: which lines are about a host, and what they say of its key.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/ssh/known_hosts.h"

#include <thread>

#include "tests/unit/spawn/ssh_world.h"

using namespace hv::launcher;
using namespace hv::launcher::trial;
using Kind = HostKeyVerdict::Kind;

namespace {

const std::string kKey =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFEm3zCk0Xf4l9Xl5T2rlQk2fD0lq3x0m1m1mZrC0m1m";
const std::string kBlob = "AAAAC3NzaC1lZDI1NTE5AAAAIFEm3zCk0Xf4l9Xl5T2rlQk2fD0lq3x0m1m1mZrC0m1m";

bool matches(const std::string& hosts, const std::string& name) {
  return keys_in(hosts + " " + kKey + "\n", name, "f").size() == 1;
}

HostKeyVerdict judge(const std::string& text, const std::string& base64, std::uint16_t port = 22) {
  const TemporaryFolder folder;
  write_file(folder / "known_hosts", text);
  return judge_host_key(find_known_keys({folder / "known_hosts", folder / "missing"}, "b", port),
                        base64);
}

}  // namespace

TEST_CASE("host patterns match as ssh's do") {
  CHECK(matches("b", "b"));
  CHECK(matches("a,B,c", "b"));
  CHECK(matches("*.example", "b.example"));
  CHECK(matches("node?", "node7"));
  CHECK(matches("n*d*7", "node-17"));
  CHECK(matches("[b]:2222", "[b]:2222"));
  CHECK_FALSE(matches("b", "bb"));
  CHECK_FALSE(matches("node?", "node17"));
  CHECK_FALSE(matches("*.example,!bad.example", "bad.example"));
  CHECK_FALSE(matches("!b", "b"));
  CHECK_FALSE(matches("[b]:2222", "b"));
}

TEST_CASE("hashed names match") {
  const TemporaryFolder folder;
  must_run("ssh-keygen -q -t ed25519 -N '' -f " + folder / "key");
  write_file(folder / "known_hosts", "hidden.example " + file_content(folder / "key.pub") +
                                         "[b]:2222 " + file_content(folder / "key.pub"));
  must_run("ssh-keygen -q -H -f " + folder / "known_hosts");
  const std::string text = file_content(folder / "known_hosts");
  REQUIRE(text[0] == '|');
  CHECK(keys_in(text, "hidden.example", "f").size() == 1);
  CHECK(keys_in(text, "[b]:2222", "f").size() == 1);
  CHECK(keys_in(text, "other.example", "f").empty());
}

TEST_CASE("lines that make no sense are passed over") {
  const std::string text = "\n# comment\nb\nb ssh-ed25519\n@unknown b " + kKey +
                           "\n@\n|1|x|y b c\n|\n" + std::string(100000, 'b') + "\n\tb\t" + kKey +
                           "\r\n";
  const auto keys = keys_in(text, "b", "f");
  REQUIRE(keys.size() == 1);
  CHECK(keys[0].base64 == kBlob);
  CHECK(keys[0].line == 10);
}

TEST_CASE("a key is known, unknown, changed or revoked") {
  CHECK(judge("", kBlob).kind == Kind::kUnknown);
  CHECK(judge("other " + kKey + "\n", kBlob).kind == Kind::kUnknown);
  CHECK(judge("b " + kKey + "\n", kBlob).kind == Kind::kKnown);
  CHECK(judge("b ssh-rsa AAAA\nb " + kKey + "\n", kBlob).kind == Kind::kKnown);
  CHECK(judge("b " + kKey + "\n", "BBBB").kind == Kind::kChanged);
  CHECK(judge("# x\nb ssh-rsa AAAA\n", kBlob).line == 2);
  CHECK(judge("b " + kKey + "\n@revoked * " + kKey + "\n", kBlob).kind == Kind::kRevoked);
  CHECK(judge("@revoked b " + kKey + "\n", "BBBB").kind == Kind::kUnknown);
  CHECK(judge("@cert-authority b " + kKey + "\n", "BBBB").kind == Kind::kUnknown);
}

TEST_CASE("at another port a line without port confirms a key and never contradicts one") {
  CHECK(judge("[b]:2222 " + kKey + "\n", kBlob, 2222).kind == Kind::kKnown);
  CHECK(judge("b " + kKey + "\n", kBlob, 2222).kind == Kind::kKnown);
  CHECK(judge("b " + kKey + "\n", "BBBB", 2222).kind == Kind::kUnknown);
  CHECK(judge("[b]:2222 " + kKey + "\n", "BBBB", 2222).kind == Kind::kChanged);
  CHECK(judge("[b]:2222 " + kKey + "\n", kBlob, 22).kind == Kind::kUnknown);
}

TEST_CASE("key types come in order, once each, and authorities are seen") {
  KnownKeys known;
  known.keys = keys_in("b " + kKey + "\nb ssh-rsa AAAA\nb " + kKey + "\n", "b", "f");
  CHECK(known.types() == std::vector<std::string>{"ssh-ed25519", "ssh-rsa"});
  CHECK_FALSE(known.has_authority());
  known.keys = keys_in("@cert-authority *.example " + kKey + "\n", "b.example", "f");
  CHECK(known.has_authority());
  CHECK(known.types().empty());
}

TEST_CASE("many writers at once add whole lines") {
  const TemporaryFolder folder;
  const std::string file = folder / "made/known_hosts";
  std::vector<std::thread> writers;
  for (int i = 0; i < 8; ++i) {
    writers.emplace_back([&file, i] {
      for (int j = 0; j < 20; ++j)
        append_known_host(file, "host" + std::to_string(i) + "-" + std::to_string(j), "ssh-ed25519",
                          kBlob);
    });
  }
  for (std::thread& writer : writers) writer.join();
  const std::string text = file_content(file);
  for (int i = 0; i < 8; ++i)
    CHECK(keys_in(text, "host" + std::to_string(i) + "-19", file).size() == 1);
  CHECK(std::count(text.begin(), text.end(), '\n') == 160);
  struct stat info {};
  REQUIRE(::stat((folder / "made").c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0700);
}

TEST_CASE("a known_hosts file that is a device is written to, never replaced") {
  append_known_host("/dev/null", "b", "ssh-ed25519", kBlob);
  CHECK(std::filesystem::is_character_file("/dev/null"));
  const TemporaryFolder folder;
  write_file(folder / "file", "");
  CHECK_THROWS_AS(append_known_host(folder / "file/known_hosts", "b", "ssh-ed25519", kBlob),
                  hv::Error);
}

TEST_CASE("known hosts are read whole, or not at all where there are too many") {
  const TemporaryFolder folder;
  const std::string last = "host ssh-ed25519 QUJD\n";
  const std::string file = folder / "known_hosts";
  write_file(file, std::string((16 << 20) - last.size() - 1, '#') + "\n" + last);
  CHECK(find_known_keys({file, folder / "none"}, "host", 22).keys.size() == 1);
  write_file(file, std::string((16 << 20) - last.size(), '#') + "\n" + last);
  CHECK_THROWS_WITH_AS(find_known_keys({file}, "host", 22), doctest::Contains("16"), hv::Error);
}
