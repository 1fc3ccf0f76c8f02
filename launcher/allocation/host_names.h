// Many names of hosts in few words, for messages. Pure.
// SPDX-License-Identifier: Apache-2.0
//
// Names that differ only in their last number before the first dot are folded as Slurm does:
// n1, n2, n3 and login are "n[1-3],login", which -H and --exclude accept. Addresses are not folded.
#pragma once

#include <string>
#include <vector>

namespace hv::launcher {

// All of them: "gpu[01-03,07],login".
std::string fold_host_names(const std::vector<std::string>& names);
// The same in its parts: "gpu[01-03,07]", "login".
std::vector<std::string> fold_each(const std::vector<std::string>& names);

// For messages: of more than eight names also their number, and of very many unlike ones the first:
// "n[01-64] (64 hosts)", "a,b,n[1,3,5] and 40 more (45 hosts)".
std::string hosts_text(const std::vector<std::string>& names);
// The same behind the word: "host n1", "hosts n[1-3]", "hosts n[01-64] (64)".
std::string named_hosts_text(const std::vector<std::string>& names);

}  // namespace hv::launcher
