// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/tcp/link_local.h"

#include <algorithm>

namespace hv::runtime {
namespace {

std::vector<std::string> scopes_of(const std::vector<InterfaceAddress>& own) {
  std::vector<std::string> scopes;
  for (const InterfaceAddress& address : own) {
    const bool has_scope =
        address.kind == AddressKind::kLinkLocal && address.ip.find(':') != std::string::npos;
    if (has_scope && std::find(scopes.begin(), scopes.end(), address.interface) == scopes.end())
      scopes.push_back(address.interface);
  }
  return scopes;
}

}  // namespace

std::vector<std::string> link_local_pairs(const std::vector<InterfaceAddress>& theirs,
                                          const std::vector<InterfaceAddress>& own,
                                          std::size_t most) {
  const std::vector<std::string> scopes = scopes_of(own);
  std::vector<std::string> pairs;
  for (const bool is_alike : {true, false})
    for (const InterfaceAddress& address : theirs)
      for (const std::string& scope : scopes)
        if ((address.interface == scope) == is_alike && pairs.size() < most)
          pairs.push_back(address.ip + "%" + scope);
  return pairs;
}

}  // namespace hv::runtime
