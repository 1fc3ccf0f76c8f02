# SPDX-License-Identifier: Apache-2.0
"""hvrun check and --dry-run of a cluster, and what their reports are to hold."""

import json

from harness.jobs import START

ALL = ("node1", "node2", "node3")


def check(cluster, *words, hosts=ALL, **options):
    """(report, result) of hvrun check of these hosts."""
    return report_of(cluster.run(["hvrun", "check", "--format", "json", "-H", ",".join(hosts), *words], timeout=60, **options))


def dry_run(cluster, *words, hosts=ALL, **options):
    return report_of(cluster.run(["hvrun", "--dry-run", "--format", "json", "-H", ",".join(hosts), *words], timeout=60, **options))


def report_of(result):
    assert result.code in (0, START), str(result)
    report = json.loads(result.out)
    assert report["can_start"] == (result.code == 0), str(result)
    return report, result


def expect(found, verdict, *hosts, mend=""):
    """Just this verdict, of these hosts."""
    report, result = found
    told = [(finding["id"], tuple(finding["hosts"])) for finding in report["findings"]]
    assert told == [(verdict, hosts)], str(result)
    finding = report["findings"][0]
    assert mend in finding["fix"] and finding["why"] and all(host in finding["fact"] for host in hosts[:1]), str(result)
    return finding


def expect_healthy(found):
    """Everything was looked at, and nothing was found."""
    report, result = found
    assert report["findings"] == report["not_checked"] == [], str(result)
