# SPDX-License-Identifier: Apache-2.0
"""Shows a page in a headless Chromium, and tells what is there and what it looks like."""

import html
import json
import re
import shutil
import subprocess

DEADLINE = 120  # seconds; the largest page takes 2 on a free machine
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

# Every text is within its box's frame, and every box within that around it; those of one kind are apart.
MEASURE = """
<script>
//<![CDATA[
const place = (element) => element.getBoundingClientRect();
const slack = 1;
const holds = (outer, inner) => inner.left >= outer.left - slack && inner.right <= outer.right + slack &&
    inner.top >= outer.top - slack && inner.bottom <= outer.bottom + slack;
const touch = (a, b) => a.left < b.right - slack && b.left < a.right - slack && a.top < b.bottom - slack && b.top < a.bottom - slack;
const frame = (group) => place(group ? group.querySelector('rect') : document.querySelector('svg'));
const words = (element) => element.textContent.slice(0, 80);
const all = (selector) => [...document.querySelectorAll(selector)];
const outside = [...all('svg text').filter((text) => !holds(frame(text.closest('g.box')), place(text))),
    ...all('g.box').filter((box) => !holds(frame(box.parentElement.closest('g.box')), frame(box)))].map(words);
const overlapping = [];
for (const group of all('g.box'))
  for (const kind of [':scope > text', ':scope > g.box']) {
    const items = [...group.querySelectorAll(kind)];
    items.forEach((one, i) => items.slice(i + 1).forEach((other) => {
      const [a, b] = [one, other].map((item) => item.tagName === 'g' ? frame(item) : place(item));
      if (touch(a, b)) overlapping.push(words(one) + ' | ' + words(other));
    }));
  }
const beyond = all('h1, p, td, th').filter((text) => text.scrollWidth > text.clientWidth + slack && text.clientWidth > 0).map(words);
const measured = document.createElement('pre');
measured.id = 'measured';
measured.textContent = JSON.stringify({outside, overlapping, beyond, texts: all('svg text').map(words), scripts: all('script').length,
    titles: all('svg title').map((title) => title.textContent), page: document.body.innerText});
document.body.append(measured);
//]]>
</script>
"""


def find():
    """The path of a browser, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


def _run(folder, *words):
    browser = find()
    assert browser, "no Chromium is here: packaging/test.list names its package"
    result = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                             f"--user-data-dir={folder}/browser", *map(str, words)], capture_output=True, timeout=DEADLINE, check=False)
    assert result.returncode == 0, result
    return result.stdout.decode()


def measure(page, folder):
    """What a browser makes of that file: the texts, and which of them leave their boxes or lie over each other."""
    text = page.read_text(encoding="utf-8")
    # It is the page itself that forbids scripts.
    allowed, found = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    assert found == 1
    copy = folder / f"measured-{page.name}"
    copy.write_text(allowed.replace("</body>", MEASURE + "</body>"), encoding="utf-8")
    dom = _run(folder, "--dump-dom", copy.as_uri())
    found = re.search(r'<pre id="measured">(.*?)</pre>', dom, re.DOTALL)
    assert found, dom[:2000]
    return json.loads(html.unescape(found[1]))


def screenshot(page, picture, folder, *, is_dark=False, size="1600,1000"):
    """Writes a PNG of that file."""
    _run(folder, f"--blink-settings=preferredColorScheme={0 if is_dark else 1}", f"--window-size={size}", f"--screenshot={picture}",
         page.as_uri())
