"""Executes the notebooks of docs/notebooks and stores their output. Needs nbclient and ipykernel.

python python/tools/notebooks.py
"""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[2] / "docs/notebooks"


def main() -> None:
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        NotebookClient(notebook, timeout=600).execute()
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)
            for output in cell.get("outputs", []):
                data = output.get("data", {})
                if "text/plain" in data:
                    # Objects have another address in each process.
                    data["text/plain"] = re.sub(r" at 0x[0-9a-f]+", "", data["text/plain"])
        nbformat.write(notebook, path)
        print(path.name)


if __name__ == "__main__":
    main()
