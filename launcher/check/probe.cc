// SPDX-License-Identifier: Apache-2.0
#include "launcher/check/probe.h"

#include <algorithm>

#include "launcher/check/groups.h"
#include "launcher/check/probe_list.h"
#include "src/base/check.h"

namespace hv::launcher {

bool CheckReport::can_start() const {
  return std::none_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.severity == Severity::kCannotStart;
  });
}

std::string fill(const std::string& words, const Fill& values) {
  std::string text;
  for (std::size_t at = 0; at < words.size();) {
    std::size_t end = at + 1;
    if (words[at] == '$')
      while (end < words.size() && words[end] >= 'A' && words[end] <= 'Z') ++end;
    const std::string piece = words.substr(at, end - at);
    const auto value = std::find_if(values.begin(), values.end(),
                                    [&piece](const auto& one) { return piece == "$" + one.first; });
    text += value == values.end() ? piece : value->second;
    at = end;
  }
  return text;
}

namespace {

std::string with_login(std::string fix, const std::string& login) {
  constexpr std::string_view kLogin = "ssh $HOST ";
  for (std::size_t at = fix.find(kLogin); at != std::string::npos;
       at = fix.find(kLogin, at + login.size()))
    fix.replace(at, kLogin.size(), login);
  return fix;
}

}  // namespace

void Judgement::add(const std::string& verdict, std::vector<std::string> hosts, std::string fact,
                    Fill values) {
  const auto its =
      std::find_if(probe_.verdicts.begin(), probe_.verdicts.end(),
                   [&verdict](const PossibleFinding& one) { return one.id == verdict; });
  HV_CHECK(its != probe_.verdicts.end(), probe_.name + (": " + verdict));
  const bool is_here = !hosts.empty() && hosts.front() == "localhost";
  std::string fix = its->fix;
  if (is_here) {  // no login is needed
    fix = with_login(fix, "");
  } else if (!remote_shell_.empty()) {
    fix = with_login(fix, remote_shell_ + " $HOST ");
  }
  const bool is_of_first = fill("$HOST", values) == "$HOST" &&
                           std::string_view(its->fix).find("$HOST") != std::string::npos;
  if (!hosts.empty()) values.emplace_back("HOST", hosts.front());
  const std::string advice = fill("$ADVICE", values);
  const bool is_advised = !advice.empty() && advice != "$ADVICE";
  fix = is_advised ? advice : fill(fix, values);
  if (!is_advised && is_of_first) fix += likewise(hosts);
  findings_.push_back({probe_.name, verdict, its->severity, std::move(hosts), std::move(fact),
                       fill(its->why, values), std::move(fix)});
}

void Judgement::not_probed(std::vector<std::string> hosts, std::string reason) {
  gaps_.push_back({probe_.name, std::move(hosts), std::move(reason)});
}

const PossibleFinding& verdict_named(const std::string& id) {
  const PossibleFinding* its = nullptr;
  for (const Probe* probe : all_probes())
    for (const PossibleFinding& verdict : probe->verdicts)
      if (verdict.id == id) its = &verdict;
  HV_CHECK(its, "no probe has a verdict " + id);
  return *its;
}

CheckReport judge(const CheckInput& input, const std::set<std::string>& names) {
  CheckReport report;
  for (const Probe* probe : all_probes()) {
    if (!names.empty() && names.count(probe->name) == 0) continue;
    Judgement judgement(*probe, input.spec.access.remote_shell);
    probe->judge(input, &judgement);
    const auto& findings = judgement.findings();
    report.findings.insert(report.findings.end(), findings.begin(), findings.end());
    const auto& gaps = judgement.gaps();
    report.not_probed.insert(report.not_probed.end(), gaps.begin(), gaps.end());
  }
  std::stable_sort(report.findings.begin(), report.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity < b.severity; });
  return report;
}

}  // namespace hv::launcher
