# SPDX-License-Identifier: MIT OR Apache-2.0
"""The base of every result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _paceline
from .tables import Table, frame_of

if TYPE_CHECKING:
    import pandas
    import polars
    from matplotlib.figure import Figure

__all__ = ["Result"]


class _Frames:
    """Something with a table of results, which becomes a frame and a plot."""

    _rows: Table | Callable[[], Table]

    @property
    def rows(self) -> Table:
        """The table of results: a row for each value of each run, with scenario, changes, controllers, world, seed, window, flow,
        stream, metric, program and trace hash, as in the view `results` of `results.sqlite`."""
        if not isinstance(self._rows, Table):
            self._rows = self._rows()
        return self._rows

    def _columns(self) -> Mapping[str, Any]:
        """Returns the columns of the frame."""
        raise NotImplementedError

    def to_pandas(self) -> pandas.DataFrame:
        """Returns the result as a pandas frame."""
        frame: pandas.DataFrame = frame_of("pandas", self._columns())
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Returns the result as a polars frame with the columns of `to_pandas`."""
        frame: polars.DataFrame = frame_of("polars", self._columns())
        return frame

    def plot(self) -> Figure:
        """Draws the result with matplotlib."""
        raise NotImplementedError


class Result(_Frames, Mapping[str, Any]):
    """A result: the JSON document of a command as a mapping, its text, its table of results, frames and a plot. Can be pickled."""

    def __init__(self, document: dict[str, Any], text: str, html: str, rows: Table | Callable[[], Table]) -> None:
        self.document = document
        """The document."""
        self.text = text
        """The result as the command prints it, in lines of 80 columns; also that of `str()`."""
        self._html, self._rows = html, rows

    def __getitem__(self, key: str) -> Any:
        return self.document[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.document)

    def __len__(self) -> int:
        return len(self.document)

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self._html


def stored_rows(folder: Path, directories: list[str] | None = None) -> Table:
    """Returns the table of results of a folder: of every run, or of the runs with these folders."""
    return Table._of_columns(_paceline.rows(folder, directories))
