# SPDX-License-Identifier: MIT OR Apache-2.0
"""Columns in memory, and their conversion to pandas and polars, which are imported at the first conversion."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from .errors import PackageMissing, SeriesError

if TYPE_CHECKING:
    import pandas
    import polars

__all__ = ["Series", "Table"]

_T = TypeVar("_T")


class Series(NamedTuple):
    """Values over time. The arrays own the memory that the run filled; nothing was copied."""

    name: str
    unit: str
    time_s: npt.NDArray[np.float64]
    value: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.time_s)

    def mean(self, from_s: float = -np.inf, to_s: float = np.inf) -> float:
        """Returns the mean of the values from `from_s` to `to_s`; NaN if there is none."""
        first, last = np.searchsorted(self.time_s, [from_s, to_s])
        return float(self.value[first:last].mean()) if last > first else float("nan")

    def to_pandas(self) -> pandas.Series[float]:
        """Returns a pandas series with the time in s as its index. Its attribute `attrs` has the unit."""
        pd = imported("pandas")
        series: pandas.Series[float] = pd.Series(self.value, pd.Index(self.time_s, name="time_s"), name=self.name)
        series.attrs["unit"] = self.unit
        return series

    def to_polars(self) -> polars.DataFrame:
        """Returns a polars frame with the columns `time_s` and the name of the series."""
        frame: polars.DataFrame = imported("polars").DataFrame({"time_s": self.time_s, self.name: self.value})
        return frame


class _Column(NamedTuple):
    """Values of a column. With `names` they are indices of names. -1 is a missing value where there may be any."""

    values: npt.NDArray[Any]
    names: tuple[str, ...] | None = None
    may_lack: bool = False
    is_bool: bool = False


class Table(Mapping[str, npt.NDArray[Any]]):
    """Columns of equal length. As a mapping it returns a column as a numpy array: names as text, and numbers that may be
    missing as a masked array."""

    def __init__(self, columns: Mapping[str, _Column]) -> None:
        self._columns = dict(columns)

    @classmethod
    def _of_columns(
        cls, columns: Iterable[tuple[str, npt.NDArray[Any], list[str] | None]], optional: Iterable[str] = ()
    ) -> Table:
        return cls(
            {
                name: _Column(values, None if names is None else tuple(names), name in optional, name == "marked")
                for name, values, names in columns
            }
        )

    @classmethod
    def _of_packets(cls, columns: Iterable[tuple[str, npt.NDArray[Any], list[str] | None]]) -> Table:
        return cls._of_columns(columns, {"hop", "waited_ns", "left_ns", "delay_ns", "reason", "marked", "ecn"})

    def _where(self, name: str, value: Any) -> Table:
        """Returns the rows with this value."""
        chosen = self[name] == value
        return Table({name: column._replace(values=column.values[chosen]) for name, column in self._columns.items()})

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self._columns.values())).values) if self._columns else 0

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        column = found(self._columns, name, "column")
        missing = column.values < 0 if column.may_lack else None
        if column.names is not None:
            names = np.array([*column.names, None], dtype=object)
            return np.asarray(names[column.values])
        values = column.values.astype(bool) if column.is_bool else column.values
        if missing is None:
            return values
        masked: npt.NDArray[Any] = np.ma.masked_array(values, missing)
        return masked

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def to_pandas(self) -> pandas.DataFrame:
        """Returns a pandas frame. Names are categories; missing values are `NA`."""
        pd = imported("pandas")

        def series(column: _Column) -> Any:
            values, missing = column.values, column.values < 0 if column.may_lack else None
            if column.names is not None:
                return pd.Categorical.from_codes(values, list(column.names))
            if missing is None:
                return values
            if column.is_bool:
                return pd.arrays.BooleanArray(values > 0, missing)
            return pd.arrays.IntegerArray(values, missing)

        frame: pandas.DataFrame = pd.DataFrame({name: series(column) for name, column in self._columns.items()})
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Returns a polars frame. Names are of the type `Enum`; missing values are null."""
        pl = imported("polars")

        def series(name: str, column: _Column) -> Any:
            values = pl.Series(name, column.values)
            if column.may_lack:
                values = values.set(values < 0, None)
            if column.names is not None:
                names = pl.Series(name, list(column.names), dtype=pl.Enum(column.names))
                return names.gather(values.cast(pl.UInt32))
            return values.cast(pl.Boolean) if column.is_bool else values

        frame: polars.DataFrame = pl.DataFrame([series(name, column) for name, column in self._columns.items()])
        return frame

    def __repr__(self) -> str:
        return f"<{self.rows} rows of {', '.join(self)}>"

    def _repr_html_(self) -> str:
        try:
            shown: str = self.to_pandas()._repr_html_()  # type: ignore[operator]
        except PackageMissing:
            return f"<pre>{self!r}</pre>"
        return shown


class SeriesMap(Mapping[str, Any]):
    """Series by name. A blank in a name may be written as `_`."""

    def __init__(self, series: Mapping[str, Any]) -> None:
        self._series = dict(series)

    def __getitem__(self, name: str) -> Any:
        spaced = [known for known in self._series if known.replace(" ", "_") == name]
        return found(self._series, spaced[0] if spaced else name, "series")

    def __contains__(self, name: object) -> bool:
        try:
            self[name]  # type: ignore[index]
        except SeriesError:
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self._series)

    def __len__(self) -> int:
        return len(self._series)

    def __repr__(self) -> str:
        return f"<{len(self)} series: {', '.join(self)}>"


def found(of: Mapping[str, _T], name: str, kind: str) -> _T:
    """Returns an entry, or raises an exception that names those that exist."""
    if name in of:
        return of[name]
    # Of `video.rate`, the names of `video` alone.
    prefix, dot, rest = str(name).rpartition(".")
    own = {known.removeprefix(prefix + dot): known for known in of if known.startswith(prefix + dot)}
    near = difflib.get_close_matches(rest, own, n=1, cutoff=0.6)
    if own and near:
        hint = f"did you mean {own[near[0]]!r}?"
    elif dot and own:
        hint = f"those of {prefix!r} are: {', '.join(own.values())}"
    else:
        near = difflib.get_close_matches(str(name), of, n=1, cutoff=0.6)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(of) or 'none'}"
    raise SeriesError(f"no {kind} {name!r}; {hint}")


def frame_of(module: str, columns: Mapping[str, Sequence[Any] | npt.NDArray[Any]]) -> Any:
    """Returns a frame of pandas or polars with these columns."""
    return imported(module).DataFrame(dict(columns))


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Returns rows as columns. A field that a row does not have is `None`."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def imported(name: str) -> ModuleType:
    """Returns an optional package."""
    try:
        return __import__(name)
    except ImportError as missing:
        raise PackageMissing(f"this needs {name}: pip install 'paceline[{name}]'") from missing
