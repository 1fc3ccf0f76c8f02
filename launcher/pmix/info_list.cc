// SPDX-License-Identifier: Apache-2.0
#include "launcher/pmix/info_list.h"

#include <cstring>
#include <utility>

namespace hv::launcher {

pmix::Value& InfoList::add(const char* key, std::uint16_t type) {
  pmix::Info& info = infos_.emplace_back();
  std::strncpy(info.key, key, sizeof info.key - 1);
  info.value.type = type;
  return info.value;
}

void InfoList::add_text(const char* key, const std::string& text) {
  add(key, pmix::kText).data.text = texts_.emplace_back(text).data();
}

void InfoList::add_flag(const char* key, bool flag) { add(key, pmix::kBool).data.flag = flag; }

void InfoList::add_uint16(const char* key, std::uint16_t number) {
  add(key, pmix::kUint16).data.uint16 = number;
}

void InfoList::add_uint32(const char* key, std::uint32_t number) {
  add(key, pmix::kUint32).data.uint32 = number;
}

void InfoList::add_rank(const char* key, std::uint32_t rank) {
  add(key, pmix::kRank).data.uint32 = rank;
}

void InfoList::add_list(const char* key, InfoList list) {
  InfoList& kept = lists_.emplace_back(std::move(list));
  add(key, pmix::kDataArray).data.pointer =
      &arrays_.emplace_back(pmix::DataArray{pmix::kInfo, kept.size(), kept.data()});
}

}  // namespace hv::launcher
