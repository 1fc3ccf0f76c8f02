// SPDX-License-Identifier: Apache-2.0
#include "launcher/script/site.h"

#include <algorithm>

#include "launcher/script/directive.h"
#include "launcher/script/object_reader.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostSiteNameBytes = 64;

// As a name it is part of a file's name, and typed at a prompt.
bool is_name(std::string_view text) {
  return text.size() <= kMostSiteNameBytes && text[0] != '.' && text[0] != '-' &&
         text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
             "0123456789._-") == std::string_view::npos;
}

bool is_scheduler(std::string_view text) {
  return text == "slurm" || text == "pbs" || text == "lsf";
}

bool is_gpu_request(std::string_view text) {
  return is_directive_word(text) && text.find("{gpus}") != std::string_view::npos;
}

const TextRule kName{is_name, "a name of letters, digits, '.', '_' and '-'"};
const TextRule kProse{is_one_line, "one line of text"};
const TextRule kWord{is_directive_word, kDirectiveWordForm};
const TextRule kLine{is_directive_line, kDirectiveLineForm};
const TextRule kScheduler{is_scheduler, "slurm, pbs or lsf"};
const TextRule kGpuRequest{is_gpu_request, "a word with {gpus} in it, such as gpu:{gpus}"};

BatchScheduler scheduler_of(const std::string& name) {
  if (name == "pbs") return BatchScheduler::kPbs;
  return name == "lsf" ? BatchScheduler::kLsf : BatchScheduler::kSlurm;
}

const char* default_gpu_request(BatchScheduler scheduler) {
  if (scheduler == BatchScheduler::kPbs) return "ngpus={gpus}";
  return scheduler == BatchScheduler::kLsf ? "num={gpus}" : "gpu:{gpus}";
}

Qos read_qos(ObjectReader& reader) {
  Qos qos;
  qos.name = reader.required_text("name", kWord);
  qos.max_time = reader.time("max_time");
  qos.max_nodes = reader.number("max_nodes", 1, kMostNodes).value_or(0);
  qos.max_gpus = reader.number("max_gpus", 1, 1 << 20).value_or(0);
  qos.max_cores = reader.number("max_cores", 1, 1 << 30).value_or(0);
  return qos;
}

Partition read_partition(ObjectReader& reader) {
  Partition partition;
  partition.name = reader.required_text("name", kName);
  partition.description = reader.text("description", kProse);
  partition.queue = reader.text("queue", kWord);
  partition.constraint = reader.text("constraint", kWord);
  partition.account_suffix = reader.text("account_suffix", kWord);
  partition.options = reader.texts("options", kLine);
  partition.modules = reader.texts("modules", kProse);
  partition.qos = reader.texts("qos", kWord);
  partition.cores = reader.number("cores", 1, kMostCoresPerNode).value_or(0);
  partition.threads_per_core = reader.number("threads_per_core", 1, 64).value_or(1);
  partition.gpus = reader.number("gpus", 0, 1024);
  partition.gpu_model = reader.text("gpu_model", kProse);
  partition.memory_gb = reader.number("memory_gb", 1, 1 << 20).value_or(0);
  partition.max_nodes = reader.number("max_nodes", 1, kMostNodes).value_or(0);
  partition.max_time = reader.time("max_time");
  partition.is_exclusive = reader.flag("exclusive");
  return partition;
}

void check_scheduler_words(const Site& site, const ObjectReader& reader) {
  if (site.scheduler == BatchScheduler::kSlurm) return;
  const std::string of = "of a site with " + name_of(site.scheduler) + " says nothing";
  if (!site.qos.empty()) reader.mistake("qos", of, "limits in its queues: /partitions");
  if (!site.hint.empty()) reader.mistake("hint", of, "no such member");
}

// Names once, and each QoS that a partition takes is one of those.
void check_names(const Site& site, const ObjectReader& reader) {
  if (site.partitions.empty())
    reader.mistake("partitions", "has no element", "the kinds of nodes, the default first");
  std::vector<std::string> qos;
  for (const Qos& each : site.qos) {
    const std::string place = "qos/" + std::to_string(qos.size()) + "/name";
    if (site.find_qos(each.name) != &each) reader.mistake(place, "stands twice", "each name once");
    qos.push_back(each.name);
  }
  for (std::size_t i = 0; i < site.partitions.size(); ++i) {
    const Partition& partition = site.partitions[i];
    const std::string place = "partitions/" + std::to_string(i);
    const auto same = [&](const Partition& other) { return other.name == partition.name; };
    if (std::count_if(site.partitions.begin(), site.partitions.end(), same) > 1)
      reader.mistake(place + "/name", "stands twice", "each name once");
    for (std::size_t j = 0; j < partition.qos.size(); ++j) {
      if (!site.find_qos(partition.qos[j]))
        reader.mistake(place + "/qos/" + std::to_string(j), "is none of /qos",
                       "the name of one that is described there");
    }
  }
}

}  // namespace

std::string name_of(BatchScheduler scheduler) {
  if (scheduler == BatchScheduler::kPbs) return "pbs";
  return scheduler == BatchScheduler::kLsf ? "lsf" : "slurm";
}

const Qos* Site::find_qos(std::string_view wanted) const {
  const auto found =
      std::find_if(qos.begin(), qos.end(), [&](const Qos& each) { return each.name == wanted; });
  return found == qos.end() ? nullptr : &*found;
}

const Partition* Site::find_partition(std::string_view wanted) const {
  for (const auto member : {&Partition::name, &Partition::queue}) {
    for (const Partition& partition : partitions)
      if (partition.*member == wanted) return &partition;
  }
  return nullptr;
}

Site parse_site(std::string_view text, const std::string& source) {
  const nlohmann::json document = parse_json(text, source, kMostSiteBytes);
  ObjectReader reader(document, source, "");
  Site site;
  (void)reader.text("$schema", kProse);  // for editors
  site.name = reader.required_text("name", kName);
  site.scheduler = scheduler_of(reader.required_text("scheduler", kScheduler));
  site.description = reader.text("description", kProse);
  site.documentation = reader.text("documentation", kProse);
  site.hint = reader.text("hint", kWord);
  site.gpu_request = reader.text("gpu_request", kGpuRequest);
  if (site.gpu_request.empty()) site.gpu_request = default_gpu_request(site.scheduler);
  site.needs_account = reader.flag("account_required");
  site.takes_any_partition = reader.flag("any_partition");
  site.default_time = reader.time("default_time");
  site.options = reader.texts("options", kLine);
  site.modules = reader.texts("modules", kProse);
  reader.each_object("qos", [&](ObjectReader& each) { site.qos.push_back(read_qos(each)); });
  reader.each_object("partitions",
                     [&](ObjectReader& each) { site.partitions.push_back(read_partition(each)); });
  reader.finish();
  check_names(site, reader);
  check_scheduler_words(site, reader);
  return site;
}

}  // namespace hv::launcher
