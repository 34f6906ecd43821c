"""The pages: `python` blocks are run from top to bottom, each page in an empty folder; a `text` block after one is what it
prints, with `…` for what may differ."""

import contextlib
import importlib.util
import io
import re
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/guides").glob("python-*.md")), ROOT / "docs/guides/gym.md"]
OPTIONAL = ("distributed", "ray", "gymnasium", "matplotlib")


def blocks(page):
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    followers = [*found[1:], ("", "")]
    return [
        (code, then[1] if then[0] == "text" else None)
        for (kind, code), then in zip(found, followers)
        if kind == "python"
    ]


def prints(shown, printed):
    lines = "".join(".*" if part == "…" else re.escape(part) for part in re.split("(…)", shown.strip()))
    return re.fullmatch(lines, printed.strip()) is not None


def test_blocks_are_found():
    assert [page.name for page in PAGES if not blocks(page)] == [] and len(PAGES) >= 5
    assert prints("a … c\n", "a b c\n") and not prints("a … c\n", "a b d\n") and not prints("a", "a\nb")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_does_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known = {"__name__": "__main__"}
    for number, (code, shown) in enumerate(blocks(page)):
        lacks = [
            m for m in OPTIONAL if re.search(rf"^import {m}\b", code, re.MULTILINE) and not importlib.util.find_spec(m)
        ]
        if lacks:
            warnings.warn(f"{page.name}: block {number + 1} was not run, for want of {lacks[0]}", stacklevel=1)
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, f"{page.name}, block {number + 1}", "exec"), known)  # noqa: S102
        if shown is not None:
            assert prints(shown, out.getvalue()), f"{page.name}, block {number + 1} printed\n{out.getvalue()}"
