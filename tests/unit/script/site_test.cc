// Tests of site files: what is read, and how a mistake is told.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/script/site.h"

#include <doctest/doctest.h>

#include "launcher/script/site_catalogue.h"
#include "src/base/error.h"

using namespace hv::launcher;
using namespace std::chrono_literals;

namespace {

std::string site_error(const std::string& text) {
  try {
    parse_site(text, "f.json");
  } catch (const hv::Error& error) {
    CHECK(error.kind() == hv::ErrorKind::kUsage);
    return std::string(error.what()) + " | " + error.hint();
  }
  return "no error";
}

// A site with these further members of its own and of its only partition.
std::string site_with(const std::string& member, const std::string& of_partition = "") {
  return R"({"name": "s", "scheduler": "slurm", )" + (member.empty() ? "" : member + ", ") +
         R"("partitions": [{"name": "p")" + (of_partition.empty() ? "" : ", " + of_partition) +
         "}]}";
}

std::string many_objects() {
  std::string text = "[{}";
  for (int i = 0; i < 5000; ++i) text += ",{}";
  return text + "]";
}

}  // namespace

TEST_CASE("every shipped site is read, and has the name of its file") {
  CHECK(shipped_sites().size() == 4);
  for (const ShippedSite& shipped : shipped_sites()) {
    CAPTURE(shipped.name);
    const Site site = parse_site(shipped.text, "shipped");
    CHECK(site.name == shipped.name);
    CHECK(!site.description.empty());
    CHECK(site.documentation.find("http") == 0);
  }
}

TEST_CASE("a site's members are read") {
  const Site site = parse_site(
      R"({"name": "s", "scheduler": "slurm", "default_time": "10m", "account_required": true,
          "qos": [{"name": "q", "max_time": "2h", "max_nodes": 3, "max_gpus": 4, "max_cores": 5}],
          "partitions": [{"name": "a", "queue": "b"}, {"name": "b", "queue": "c", "cores": 40,
            "threads_per_core": 2, "gpus": 0, "memory_gb": 192, "max_nodes": 8, "max_time": "1d",
            "qos": ["q"], "account_suffix": "@b", "options": ["--mem=1G"], "exclusive": true}]})",
      "f");
  CHECK(site.default_time == 10min);
  CHECK(site.needs_account);
  CHECK(site.gpu_request == "gpu:{gpus}");
  CHECK(site.qos[0].max_time == 2h);
  CHECK(site.qos[0].max_nodes + site.qos[0].max_gpus + site.qos[0].max_cores == 12);
  CHECK(!site.partitions[0].gpus);
  const Partition& b = site.partitions[1];
  CHECK(b.gpus == 0);
  CHECK(b.cores == 40);
  CHECK(b.threads_per_core == 2);
  CHECK(b.max_time == 24h);
  CHECK(b.is_exclusive);
  CHECK(site.find_partition("b") == &b);  // a name before a queue of that name
  CHECK(site.find_partition("c") == &b);
  CHECK(site.find_partition("d") == nullptr);
}

TEST_CASE("a mistake in a site file is told with its place and what was expected") {
  const std::pair<std::string, const char*> cases[] = {
      {"", "f.json: parse error at line 1, column 1: syntax error"},
      {"[]", "f.json: / is array | expected an object"},
      {"{}", "/name is missing | expected a name"},
      {R"({"name": "s"})", "/scheduler is missing | expected slurm, pbs or lsf"},
      {R"({"name": "s", "scheduler": "sge"})", "/scheduler is 'sge' | expected slurm"},
      {R"({"name": "s", "scheduler": "pbs"})", "/partitions has no element | expected"},
      {R"({"name": "s", "name": "t"})", "'name' stands twice in one object"},
      {site_with(R"("hint": 3)"), "/hint is number | expected a word"},
      {site_with(R"("hint": "")"), "/hint is empty"},
      {site_with(R"("hint": "a\nb")"), "/hint is 'a\\x0ab'"},
      {site_with(R"~("hint": "$(x)")~"), "/hint is '$(x)'"},
      {site_with(R"("options": ["mem"])"), "/options/0 is 'mem' | expected one line"},
      {site_with(R"("options": "--mem")"), "/options is string | expected an array"},
      {site_with(R"("default_time": "02:00")"), "/default_time is '02:00' | expected 2h"},
      {site_with(R"("gpu_request": "gpu:4")"), "/gpu_request is 'gpu:4' | expected a word with {"},
      {site_with(R"("account_required": 1)"), "/account_required is number | expected true"},
      {site_with(R"("qos": [{"name": "q"}, {"name": "q"}])"), "/qos/1/name stands twice"},
      {site_with(R"("qos": [3])"), "/qos/0 is number | expected an object"},
      {site_with(R"("hints": "x")"), "/hints is unknown | expected hint? The names are $schema"},
      {site_with("", R"("core": 4)"), "/partitions/0/core is unknown | expected cores?"},
      {site_with("", R"("cores": 0)"), "/partitions/0/cores is 0 | expected a whole number from 1"},
      {site_with("", R"("cores": 4.5)"), "/partitions/0/cores is number | expected a whole"},
      {site_with("", R"("cores": 18446744073709551615)"), "is 18446744073709551615 | expected a"},
      {site_with("", R"("gpus": -1)"), "/partitions/0/gpus is -1"},
      {site_with("", R"("qos": ["q"])"), "/partitions/0/qos/0 is none of /qos"},
      {R"({"name": "../s", "scheduler": "lsf"})", "/name is '../s' | expected a name"},
      {R"({"name": "s", "scheduler": "lsf", "partitions": [{"name": "p"}, {"name": "p"}]})",
       "/partitions/0/name stands twice"},
      {R"({"name": "s", "scheduler": "pbs", "hint": "h", "partitions": [{"name": "p"}]})",
       "/hint of a site with pbs says nothing"},
      {R"({"name": "s", "scheduler": "lsf", "qos": [{"name": "q"}], "partitions": [{"name":"p"}]})",
       "/qos of a site with lsf says nothing"},
      {std::string(kMostSiteBytes + 1, ' '), "it is larger than 256 KiB"},
      {std::string(5000, '['), "it is nested deeper than 16"},
      {many_objects(), "it has more than 4096 objects"},
      {"{\"name\": \"\xff\"}", "f.json: "},
  };
  for (const auto& [text, words] : cases) {
    CAPTURE(text.substr(0, 200));
    CHECK_MESSAGE(site_error(text).find(words) != std::string::npos, site_error(text));
  }
}
