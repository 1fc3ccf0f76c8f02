# SPDX-License-Identifier: Apache-2.0
"""What is drawn: the same for the same seed, everything that there is, and nothing that could not be done."""

import pytest

from chaos import plan

MANY = [plan.draw("a", index) for index in range(1500)]
FAULTS = [(drawn, fault) for drawn in MANY for fault in drawn.faults]


def test_the_same_seed_and_number_draw_the_same_plan():
    assert [plan.draw("a", index) for index in range(100)] == MANY[:100]
    assert plan.draw(7, 3) == plan.draw("7", 3)  # as the command line has it


def test_another_seed_or_number_draws_another_plan():
    assert len({drawn.as_json() for drawn in MANY}) == len(MANY)
    assert plan.draw("b", 0).faults != MANY[0].faults


def test_every_kind_target_moment_and_program_is_drawn():
    hit = {(fault.kind, fault.target) for _, fault in FAULTS}
    assert hit == {(kind, target) for kind, targets in plan.TARGETS.items() for target in targets}
    assert {fault.moment for _, fault in FAULTS} == {*plan.MOMENTS, plan.WITH}
    assert {drawn.program for drawn in MANY} == {"lines", "sum", "children", "catch"}
    assert {len(drawn.faults) for drawn in MANY} == {1, 2}
    assert {(len(drawn.nodes), drawn.size) for drawn in MANY} == {(1, 2), (1, 3), (1, 4), (2, 2), (2, 3), (2, 4), (3, 3), (3, 4)}


def test_a_fault_hits_what_its_job_has():
    for drawn, fault in FAULTS:
        assert fault.host in (*drawn.nodes, plan.LOGIN) and 0 <= fault.rank < drawn.size, drawn
        assert fault.host == plan.LOGIN or fault.host == drawn.host_of(fault.rank), drawn
        assert fault.target != "ssh" or drawn.rsh, drawn
        assert fault.target != "child" or drawn.program == "children", drawn
        assert fault.kind != "disk" or drawn.output_dir, drawn


def test_ranks_fill_the_hosts_in_their_order():
    drawn = next(drawn for drawn in MANY if drawn.ranks_on == (1, 2, 1))
    assert [drawn.host_of(rank) for rank in range(4)] == ["node1", "node2", "node2", "node3"]


def test_every_job_ends():
    """A rank that is stopped for good is missed by ranks that sum; else the user ends the job. Only hvrun's stop has an end always."""
    for drawn, fault in FAULTS:
        if fault.kind == "stop" and fault.target == "rank" and fault.seconds is None and drawn.program != "sum":
            assert drawn.faults[1].kind == "term" and drawn.faults[1].target == "hvrun", drawn
        assert fault.target != "hvrun" or fault.kind != "stop" or fault.seconds is not None, drawn


@pytest.mark.parametrize("kind", ["stop", "flap"])
def test_a_silence_is_well_below_or_above_what_counts_as_a_loss(kind):
    lengths = [(fault.seconds / drawn.lost_after, plan.is_short(fault, drawn.lost_after)) for drawn, fault in FAULTS
               if fault.kind == kind and fault.seconds is not None]
    assert all(length <= plan.SHORT if is_short else length > 1 for length, is_short in lengths)
    assert {is_short for _, is_short in lengths} == {True, False}


def test_a_plan_in_words_names_all_that_is_done():
    fault = plan.Fault("flap", "link", "node2", "middle", rank=2, line=7, seconds=0.5)
    drawn = plan.Plan("a", 3, (2, 1), "catch", "exit7", 80, 10, 2.0, 0.5, "ssh", True, True, 0.1, (fault,))
    assert str(drawn) == ("run 3: catch (exit7) on node1:2,node2:1 with cgroups --lost-after 2.0 --grace 0.5 --rsh ssh --output-dir: "
                          "flap link on node2 for 0.5 s, middle (line 7 of rank 2) + 0.0 s")
