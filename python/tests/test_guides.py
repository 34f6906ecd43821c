"""Runs the `python` blocks of the pages from top to bottom, each page in an empty folder. A `text` block after one is its
output, with `…` for parts that may differ."""

import contextlib
import importlib.util
import io
import re
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*/python-*.md")), ROOT / "docs/tutorials/gym.md"]
OPTIONAL = ("distributed", "ray", "gymnasium", "matplotlib", "pandas", "polars", "stable_baselines3")


def blocks(page):
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    next_blocks = [*found[1:], ("", "")]
    return [
        (code, then[1] if then[0] == "text" else None)
        for (kind, code), then in zip(found, next_blocks)
        if kind == "python"
    ]


def matches(shown, printed):
    lines = "".join(".*" if part == "…" else re.escape(part) for part in re.split("(…)", shown.strip()))
    return re.fullmatch(lines, printed.strip()) is not None


def test_blocks_are_found():
    assert [page.name for page in PAGES if not blocks(page)] == [] and len(PAGES) >= 5
    assert matches("a … c\n", "a b c\n") and not matches("a … c\n", "a b d\n") and not matches("a", "a\nb")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_print_their_output(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for number, (code, shown) in enumerate(blocks(page)):
        missing = [
            m for m in OPTIONAL if re.search(rf"^import {m}\b", code, re.MULTILINE) and not importlib.util.find_spec(m)
        ]
        if missing:
            warnings.warn(f"{page.name}: block {number + 1} was not run: {missing[0]} is not installed", stacklevel=1)
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, f"{page.name}, block {number + 1}", "exec"), names)  # noqa: S102
        if shown is not None:
            assert matches(shown, out.getvalue()), f"{page.name}, block {number + 1} printed\n{out.getvalue()}"
