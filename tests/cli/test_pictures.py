"""The picture and the page of a dry run: written whole or not at all, well-formed, and right in a browser.

SPDX-License-Identifier: Apache-2.0
"""
import re
import subprocess
import xml.etree.ElementTree as xml

import matplotlib.image
import pytest

from harness import browser, programs
from launching import run, two_hosts

SVG = "{http://www.w3.org/2000/svg}"
PAGE = "{http://www.w3.org/1999/xhtml}"
MADE_UP = {"small": 2, "unbound": 6, "cut_up": 4, "pairs": 16, "cores": 80, "eight": 32, "many": 512, "hostile": 12}  # and how many ranks
HOSTILE = "<script>alert('1')</script>\"&]]>\\x1b[31m\\xff\ufffd\u4e3b"


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    """A folder with NAME.html and NAME.svg of hosts that nobody has."""
    folder = tmp_path_factory.mktemp("pictures")
    subprocess.run([programs.hvrun_folder() / "tests" / "made_up_pictures", folder], check=True, timeout=60)
    return folder


def parsed(path):
    return xml.fromstring(path.read_bytes())


def words(tree, name):
    return ["".join(each.itertext()) for each in tree.iter(name)]


def test_a_dry_run_writes_its_page_and_its_picture(hvrun, tmp_path):
    (tmp_path / "a.svg").write_text("old")
    result = run(hvrun, *two_hosts(tmp_path, 2), "--dry-run", "--topology-svg", "a.svg", "--topology-html=a.html", "true", cwd=tmp_path)
    assert result.returncode == 0 and b"ranks 0-3, 2 on each" in result.stdout, result
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "a.svg", "rsh"]
    picture, page = parsed(tmp_path / "a.svg"), parsed(tmp_path / "a.html")
    for tree in (picture, page):
        texts = words(tree, f"{SVG}text")
        assert {"a", "b", *(f"rank {rank}" for rank in range(4))} <= set(texts), texts
    assert picture.tag == f"{SVG}svg" and words(page, f"{PAGE}h1") == ["4 ranks on 2 hosts, each runs: true"]
    made = re.compile(r"hvrun \d+\.\d+\.\d+, 20\d\d-\d\d-\d\d \d\d:\d\d UTC")
    assert [text for text in words(picture, f"{SVG}text") if made.fullmatch(text)] and made.fullmatch(words(page, f"{PAGE}p")[-1])
    assert not picture.findall(f".//{PAGE}table")


def test_a_check_draws_hosts_that_do_not_answer(hvrun, tmp_path):
    result = run(hvrun, "check", "--rsh", "false", "-H", "gone", "--topology-html", "a.html", cwd=tmp_path)
    assert result.returncode == 3 and b"could not start" in result.stdout, result
    page = parsed(tmp_path / "a.html")
    assert {"gone", "does not answer"} <= set(words(page, f"{SVG}text"))
    assert "cannot start" in words(page, f"{PAGE}td")


@pytest.mark.parametrize("option", ["--topology-html", "--topology-svg"])
def test_a_file_that_cannot_be_is_told_before_any_host_is_asked(hvrun, tmp_path, option):
    rsh = tmp_path / "rsh"
    rsh.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\nexit 1\n")
    rsh.chmod(0o755)
    for path, told in [("no/a", b"No such file or directory"), (".", b"no plain file"), ("/dev/null", b"no plain file"), ("-", b"./-")]:
        result = run(hvrun, "check", "--rsh", str(rsh), "-H", "a,b", option, path, cwd=tmp_path)
        assert result.returncode == 2 and told in result.stderr and option.encode() in result.stderr, result
        assert b"try: " in result.stderr and result.stdout == b""
    assert [path.name for path in tmp_path.iterdir()] == ["rsh"]


def test_a_picture_does_not_replace_where_standard_output_goes(hvrun, tmp_path):
    with open(tmp_path / "out", "wb") as out:
        result = subprocess.run([hvrun, "check", "--topology-svg", "out"], cwd=tmp_path, stdout=out, stderr=subprocess.PIPE, timeout=60,
                                check=False)
    assert result.returncode == 2 and b"standard output" in result.stderr, result


def test_pictures_are_of_a_dry_run_alone(hvrun, tmp_path):
    for wrong in (["true"], ["--dry-run=offline", "true"]):
        result = run(hvrun, "--topology-svg", "a.svg", *wrong, cwd=tmp_path)
        assert result.returncode == 2 and b"--topology-svg shows what hosts tell in a dry run" in result.stderr, result
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", MADE_UP)
def test_pages_and_pictures_are_well_formed(made_up, name):
    picture, page = parsed(made_up / f"{name}.svg"), parsed(made_up / f"{name}.html")
    assert words(picture, f"{SVG}text") == words(page, f"{SVG}text")
    for tree in (picture, page):
        tags = {element.tag.rpartition("}")[2] for element in tree.iter()}
        assert not tags & {"script", "link", "img", "image", "use", "foreignObject", "iframe"}, tags
        names = {attribute for element in tree.iter() for attribute in element.attrib}
        assert not {each for each in names if each.startswith("on") or each in ("src", "style", "{http://www.w3.org/1999/xlink}href")}


def test_what_hosts_say_of_themselves_is_text(made_up):
    page = parsed(made_up / "hostile.html")
    cells = words(page, f"{PAGE}td")
    assert cells.count(HOSTILE) >= 4 and f"n1{HOSTILE}" in cells
    assert any(HOSTILE in title for title in words(page, f"{SVG}title"))
    assert words(page, f"{PAGE}code")[0] == HOSTILE


@pytest.mark.parametrize("name", MADE_UP)
def test_in_a_browser_every_text_is_in_its_box(made_up, tmp_path, name):
    seen = browser.measure(made_up / f"{name}.html", tmp_path)
    assert (seen["outside"], seen["overlapping"], seen["beyond"]) == ([], [], []), seen
    assert seen["scripts"] == 1  # the one that measures
    texts, titles = set(seen["texts"]), seen["titles"]
    if name == "many":
        assert {f"node{host:03}" for host in range(1, 65)} <= texts and {str(rank) for rank in range(512)} <= texts
    elif name == "hostile":
        assert {f"rank {rank}" for rank in range(8)} <= texts and any(text.startswith("n3<script>") for text in texts)
    elif name != "cores":
        assert {f"rank {rank}" for rank in range(MADE_UP[name])} <= texts, texts
    assert f"{MADE_UP[name]} rank" in seen["page"] and "Findings" in seen["page"]
    assert name != "eight" or any("NVLink x18" in title for title in titles)


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_a_page_is_in_the_viewers_colours(made_up, tmp_path, is_dark):
    for name, colours in [("eight", 4), ("small", 2)]:
        browser.screenshot(made_up / f"{name}.html", tmp_path / "a.png", tmp_path, is_dark=is_dark)
        pixels = matplotlib.image.imread(tmp_path / "a.png")[:, :, :3]
        assert (pixels[2, 2].mean() < 0.2) == is_dark
        # Of the ranks' colours each fills a box at least.
        for colour in [(0x8d, 0xd3, 0xc7), (0xff, 0xd1, 0x66), (0xbe, 0xba, 0xda), (0xfb, 0x80, 0x72)][:colours]:
            near = abs(pixels - [part / 255 for part in colour]).max(axis=2) < 0.01
            assert near.sum() > 500, (name, colour, near.sum())
