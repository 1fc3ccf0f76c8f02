"""Draws sweeps: time and algorithm bandwidth against size, hvrun beside its peer. SPDX-License-Identifier: Apache-2.0"""

import re


def series_of(results):
    """{title: (peer's name, {operation: [(bytes, our us, peer's us), ...]})} of what was measured in sweeps over sizes.

    One size alone is no curve, and must not take the place of a picture of many.
    """
    series = {}
    for result in results:
        if "series" not in result or "measured" not in result or not result["bytes"]:
            continue
        title = re.sub(rf", {result['op']}\b", "", result["series"])  # one picture for all operations
        peer, operations = series.setdefault(title, (result["peer_name"], {}))
        operations.setdefault(result["op"], []).append((result["bytes"], result["ours"], result["peer"]))
    return {title: (peer, {name: sorted(points) for name, points in operations.items()})
            for title, (peer, operations) in series.items() if any(len(points) > 1 for points in operations.values())}


def file_name(title, peer):
    return re.sub(r"[^a-z0-9]+", "-", f"{title} {peer}".lower()).strip("-") + ".png"


def gigabytes_per_second(size, microseconds):
    return size / microseconds / 1e3


def draw(results, folder):
    """One PNG a series; the paths."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    is_trial = any(result.get("verdict", "").startswith("TRIAL") for result in results)
    paths = []
    for title, (peer, operations) in series_of(results).items():
        figure, rows = pyplot.subplots(2, len(operations), figsize=(3.6 * len(operations), 6), squeeze=False, sharex=True)
        for column, (name, points) in enumerate(operations.items()):
            sizes = [size for size, _, _ in points]
            for who, index in (("hvrun", 1), (peer, 2)):
                times = [point[index] for point in points]
                rows[0][column].loglog(sizes, times, marker="o", label=who)
                rows[1][column].semilogx(sizes, [gigabytes_per_second(size, time) for size, time in zip(sizes, times)],
                                         marker="o", label=who)
            rows[0][column].set_title(name)
            rows[1][column].set_xlabel("bytes")
            for axes in (rows[0][column], rows[1][column]):
                axes.set_xscale("log", base=2)
                axes.grid(True, alpha=0.3)
        rows[0][0].set_ylabel("time (us)")
        rows[1][0].set_ylabel("algorithm bandwidth (GB/s)")
        rows[0][0].legend()
        figure.suptitle(f"{title}, beside {peer}" + (" (a trial)" if is_trial else ""))
        figure.tight_layout()
        path = folder / file_name(title, peer)
        figure.savefig(path, dpi=80)
        pyplot.close(figure)
        paths.append(path)
    return paths
