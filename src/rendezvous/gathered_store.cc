// SPDX-License-Identifier: Apache-2.0
#include "src/rendezvous/gathered_store.h"

#include <utility>

#include "src/base/text.h"
#include "src/wire/codec.h"
#include "src/wire/wipe.h"

namespace hv {
namespace {

constexpr std::size_t kMostHostName = 1024;

// What each says first. Only rank 0's key, name and epoch count.
struct BirthCard {
  static constexpr bool kIsSecret = true;
  std::string host;
  std::string job_id;
  JobKey key;
  std::uint32_t epoch = 0;
  void fields(auto& a) { a(host, job_id, key, epoch); }
};

struct Puts {
  std::vector<std::pair<std::string, std::string>> entries;
  void fields(auto& a) { a(entries); }
};

Status not_ours(int rank) {
  return {StatusCode::kContract, "join the job: rank " + std::to_string(rank) +
                                     " says what this libhvrun does not understand; does every "
                                     "host have the same one?"};
}

}  // namespace

Status GatheredStore::meet(std::shared_ptr<Exchange> exchange, const std::string& host,
                           const WaitLimits& limits, int epoch, std::unique_ptr<Store>* store,
                           Meeting* meeting) {
  BirthCard mine;
  mine.host = host;
  mine.epoch = static_cast<std::uint32_t>(epoch);
  if (exchange->rank() == 0) {
    mine.job_id = random_hex(12);
    mine.key = random_key();
  }
  std::string bytes = encode(mine);
  std::vector<std::string> all;
  const Status met = exchange->gather(bytes, limits, &all);
  wipe(&bytes);
  if (!met.ok()) return met;
  BirthCard first;
  meeting->hosts.clear();
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    BirthCard card;
    const bool is_card = decode(all[rank], &card) && card.host.size() <= kMostHostName;
    wipe(&all[rank]);
    if (!is_card) return not_ours(static_cast<int>(rank));
    meeting->hosts.push_back(card.host);
    if (rank == 0) first = std::move(card);
  }
  meeting->job_id = first.job_id;
  meeting->epoch = static_cast<int>(first.epoch & INT32_MAX);
  store->reset(new GatheredStore(std::move(exchange), std::move(first.key), limits.stall));
  return Status::success();
}

Status GatheredStore::put(const std::string& key, const std::string& value) {
  unfenced_[key] = value;
  return Status::success();
}

Status GatheredStore::fence(std::chrono::milliseconds timeout) {
  Puts mine;
  mine.entries.assign(unfenced_.begin(), unfenced_.end());
  unfenced_.clear();
  std::vector<std::string> all;
  const Status met = exchange_->gather(encode(mine), {timeout, stall_}, &all);
  if (!met.ok()) return met;
  tables_.resize(all.size());
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    Puts puts;
    if (!decode(all[rank], &puts)) return not_ours(static_cast<int>(rank));
    for (auto& [key, value] : puts.entries) tables_[rank][key] = std::move(value);
  }
  return Status::success();
}

Status GatheredStore::get(int rank, const std::string& key, std::string* value) {
  const auto index = static_cast<std::size_t>(rank);
  const auto found = index < tables_.size() ? tables_[index].find(key) : Table::const_iterator{};
  if (index >= tables_.size() || found == tables_[index].end())
    return {StatusCode::kPeerLost, "rank " + std::to_string(rank) + " has not said " + key};
  *value = found->second;
  return Status::success();
}

Status GatheredStore::job_key(JobKey* key) {
  *key = key_;
  return Status::success();
}

}  // namespace hv
