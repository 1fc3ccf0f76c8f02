// A list of PMIx's infos, with all that they point to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "launcher/pmix/pmix_server_abi.h"

namespace hv::launcher {

class InfoList {
 public:
  InfoList() = default;
  InfoList(InfoList&&) = default;
  InfoList& operator=(InfoList&&) = default;

  void add_text(const char* key, const std::string& text);
  void add_flag(const char* key, bool flag);
  void add_uint16(const char* key, std::uint16_t number);
  void add_uint32(const char* key, std::uint32_t number);
  void add_rank(const char* key, std::uint32_t rank);
  void add_list(const char* key, InfoList list);

  // Good until the next add.
  pmix::Info* data() { return infos_.data(); }
  std::size_t size() const { return infos_.size(); }

 private:
  pmix::Value& add(const char* key, std::uint16_t type);

  std::vector<pmix::Info> infos_;
  // Their elements stay where they are.
  std::list<std::string> texts_;
  std::list<InfoList> lists_;
  std::list<pmix::DataArray> arrays_;
};

}  // namespace hv::launcher
