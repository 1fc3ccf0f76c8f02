"""Which rows there are, how they are named and chosen, and the lists that they read. SPDX-License-Identifier: Apache-2.0"""

import os
import pathlib
import subprocess
import sys
import types

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

import collective  # noqa: E402
import engine  # noqa: E402
import mpi  # noqa: E402
import plot  # noqa: E402
import recorded  # noqa: E402
import table  # noqa: E402
from table import KIB, MIB  # noqa: E402


def test_a_reader_of_the_list_may_leave_early():
    reader, writer = os.pipe()
    os.close(reader)
    script = pathlib.Path(table.__file__).with_name("run.py")
    result = subprocess.run([sys.executable, "-B", str(script), "--list"], stdout=writer, stderr=subprocess.PIPE, timeout=60)
    os.close(writer)
    assert (result.returncode, result.stderr) == (0, b"")


def test_every_row_has_a_name_of_its_own_and_a_group():
    names = [row.name for row in table.ROWS]
    assert len(set(names)) == len(names)
    assert all(row.group and row.what and (row.sweep is None) == (row.point is None) for row in table.ROWS)


@pytest.mark.parametrize("words, names", [
    (["engine-4"], ["engine-4"]),  # and not engine-4-4
    (["resnet50", "launch-2"], ["launch-2", "resnet50"]),
    (["resnet50-"], ["resnet50-flat", "resnet50-shared", "resnet50-4-ranks", "resnet50-deterministic"])])
def test_a_whole_name_is_one_row_and_a_beginning_several(words, names):
    assert {row.name for row in table.chosen(words)} == set(names)


def test_a_groups_name_is_the_whole_group_and_no_rows_own():
    assert {row.name for row in table.chosen(["launch"])} == {row.name for row in table.ROWS if row.group == "launch"}
    assert not {row.name for row in table.ROWS} & {row.group for row in table.ROWS}


def test_a_group_stands_for_its_rows_and_nonsense_for_none():
    assert {row.group for row in table.chosen(["net-1g"])} == {"net-1g-3x1", "net-1g-2x2"}
    assert {row.group for row in table.chosen(["collective"])} == {"collective-2", "collective-4"}
    with pytest.raises(ValueError, match="nonsense"):
        table.chosen(["launch", "nonsense"])


def test_what_takes_hours_is_measured_when_it_is_named():
    everything, large = table.chosen([]), table.chosen(["large"])
    assert len(everything) + len(large) == len(table.ROWS) and not set(everything) & set(large)
    assert {row.point[1] for row in large if "-1g-" in row.group} == {64 * MIB}
    assert {row.point[1] for row in large if "-100m-" in row.group} == {16 * MIB, 64 * MIB}


@pytest.mark.parametrize("operation, size, ranks, ours, peer, holds", [
    ("allreduce", 4, 2, 3.2, 0.3, True), ("allreduce", 4, 2, 3.4, 0.3, False),
    ("allreduce", 64 * KIB, 2, 1.1, 1, True), ("allreduce", 64 * KIB, 2, 1.2, 1, False),
    ("allreduce", MIB, 2, 1, 2, True), ("allreduce", MIB, 2, 1, 1.9, False),
    ("allreduce", 64 * MIB, 2, 1, 2.5, True), ("allreduce", 64 * MIB, 2, 1, 2.4, False),
    ("allreduce", 64 * KIB, 4, 1.3, 1, True), ("allreduce", MIB, 4, 1.01, 1, False),
    ("allgather", 4, 4, 13, 10, True), ("allgather", 4, 4, 13.1, 10, False), ("allgather", 4, 2, 3.5, 0.5, True),
    ("broadcast", 64 * KIB, 2, 1.2, 1, False), ("broadcast", 64 * MIB, 4, 1.3, 1, True), ("broadcast", 64 * MIB, 4, 1.4, 1, False)])
def test_limits_beside_openmpi_are_those_of_the_budget(monkeypatch, operation, size, ranks, ours, peer, holds):
    monkeypatch.setattr(collective.programs, "usable_cores", lambda: 2)
    rule = table.layer_rule(operation, size, ranks)
    assert rule.holds(rule.figure(ours, peer)) is holds


def test_four_ranks_with_cores_of_their_own_have_the_narrow_limit(monkeypatch):
    monkeypatch.setattr(collective.programs, "usable_cores", lambda: 4)
    rule = table.layer_rule("broadcast", 64 * MIB, 4)
    assert rule.holds(rule.figure(1.1, 1)) and not rule.holds(rule.figure(1.2, 1))


@pytest.mark.parametrize("model, tensors, elements", [
    ("resnet50", 161, 25_557_032), ("bert-large", 391, 335_141_888), ("gpt2", 148, 124_439_808)])
def test_lists_of_gradients_have_their_models_published_sizes(model, tensors, elements):
    lines = [line.split() for line in (engine.GRADIENTS / f"{model}.txt").read_text().splitlines() if not line.startswith("#")]
    assert len(lines) == tensors == len({words[0] for words in lines})
    assert engine.bytes_of(model) == 4 * elements


@pytest.mark.parametrize("row, carrier", [("mpi-mpich-exchange-4", "mpi"), ("mpi-native-exchange-4", "native"), ("mpi-openmpi-4", "mpi")])
def test_the_command_of_a_row_by_mpi_says_who_carries(monkeypatch, row, carrier):
    monkeypatch.setattr(mpi.programs, "need_program", lambda name: name)
    [one] = table.chosen([row])
    [(ours, bare)] = one.sweep._candidates(types.SimpleNamespace(program=str))
    assert ours.command([one.point]).startswith(f"env HVRUN_BACKEND={carrier} mpirun.")
    assert bare.command([one.point]).startswith("mpirun.") and f"--op {one.point[0]} " in bare.command([one.point])


def test_horovods_figures_are_told_where_there_are_any():
    assert recorded.allreduce(4, 4) == "recorded: Horovod 84 us (tuned)"
    assert recorded.allreduce(2, KIB) == "" and "49 ms (tuned)" in recorded.step("resnet50", 2)


def result(operation, size, ours, peer):
    return {"row": "r", "series": f"collective layer, {operation}, 2 ranks", "peer_name": "OpenMPI", "op": operation, "bytes": size,
            "measured": 1, "ours": ours, "peer": peer}


def test_a_picture_has_all_operations_of_a_series_by_size():
    results = [result("allreduce", MIB, 40, 80), result("allreduce", 4, 1, 2), result("broadcast", 4, 3, 4), {"row": "launch"},
               {**result("allreduce", 64, 1, 1), "verdict": "NOT RUN"}]
    del results[-1]["measured"]
    results.append({**result("allreduce", 4, 1, 2), "series": "of one size, allreduce"})
    assert plot.series_of(results) == {"collective layer, 2 ranks": ("OpenMPI", {
        "allreduce": [(4, 1, 2), (MIB, 40, 80)], "broadcast": [(4, 3, 4)]})}
    assert plot.file_name("collective layer, 2 ranks", "OpenMPI") == "collective-layer-2-ranks-openmpi.png"
    assert plot.gigabytes_per_second(10**9, 1e6) == 1


def test_pictures_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    paths = plot.draw([result("allreduce", 4, 1, 2), result("allreduce", MIB, 40, 80)], tmp_path / "figures")
    assert [path.read_bytes()[1:4] for path in paths] == [b"PNG"]
