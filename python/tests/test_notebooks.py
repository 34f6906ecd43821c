"""Executes the notebooks of docs/notebooks. What their cells print is what the notebooks show."""

import ast
import contextlib
import io
import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs/notebooks").glob("*.ipynb"))


def test_notebooks_are_found():
    assert len(NOTEBOOKS) >= 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_print_their_output(path, tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    printed, shown = 0, 0
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            value = execute("".join(cell["source"]), names)
        stored = "".join("".join(o["text"]) for o in cell["outputs"] if o["output_type"] == "stream")
        assert out.getvalue() == stored, "run python python/tools/notebooks.py"
        printed += bool(stored)
        for output in cell["outputs"]:
            if output["output_type"] == "execute_result":
                assert set(output["data"]) - {"text/plain"}, "the cell shows nothing but a name"
                shown += 1
                is_drawn = "image/png" in output["data"]
                rendered = value._repr_png_() if is_drawn else value._repr_html_()
                assert len(rendered) > 200
    assert printed >= 2 and shown >= 1


def execute(code, names):
    """Executes a cell and returns the value of its last expression."""
    module = ast.parse(code)
    last = module.body.pop() if module.body and isinstance(module.body[-1], ast.Expr) else None
    exec(compile(module, "cell", "exec"), names)  # noqa: S102
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)
