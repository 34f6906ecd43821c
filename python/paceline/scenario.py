# SPDX-License-Identifier: MIT OR Apache-2.0
"""Scenarios as objects: loaded by id or file, changed in code, saved as TOML."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import _paceline
from .controllers import with_registered

__all__ = ["Scenario", "scenarios"]


@dataclass(frozen=True)
class _Request:
    """A scenario and its changes, as the extension reads them."""

    name: str
    text: str | None
    settings: list[str]
    case: str | None
    call: str | None
    """The call that repeats a run, without its last arguments and without the closing parenthesis."""


class Scenario:
    """A scenario, given by its id (`mmsys16/table1`) or its file.

    Items are the dotted keys of the option `--set`. Elements of lists are named by id or number:

    >>> s = Scenario("mmsys16/table1")
    >>> s["flow.video.controller"]
    'gcc-2016'
    >>> s["path.forward.capacity"] = "2Mbps"
    """

    def __init__(self, name: str | Path) -> None:
        self.name = str(name)
        """Id or file."""
        self._text: str | None = None
        self._edits: dict[str, Any] = {}
        _paceline.find(self.name)

    @classmethod
    def from_toml(cls, text: str, name: str = "scenario.toml") -> Scenario:
        """Creates a scenario from text. Files that it names are relative to the working directory. Error messages use
        `name`."""
        made = cls._of(name, text, {})
        _paceline.edited(made._request())
        return made

    @classmethod
    def from_dict(cls, keys: Mapping[str, Any], name: str = "scenario.toml") -> Scenario:
        """Creates a scenario from the keys of a scenario file:
        `Scenario.from_dict({"id": "mine", "duration": "20s", "path": {"forward": {"capacity": "1Mbps"}}, "flow": [{…}]})`."""
        return cls.from_toml("".join(f"{_key(key)} = {toml(value)}\n" for key, value in keys.items()), name)

    @classmethod
    def _of(cls, name: str, text: str | None, edits: dict[str, Any]) -> Scenario:
        made = cls.__new__(cls)
        made.name, made._text, made._edits = name, text, edits
        return made

    def edit(self, changes: Mapping[str, Any]) -> Scenario:
        """Returns a copy with these changes."""
        copy = self._of(self.name, self._text, {**self._edits})
        for key, value in changes.items():
            copy[key] = value
        return copy

    def __setitem__(self, key: str, value: Any) -> None:
        before, self._edits = self._edits, {**self._edits, key: value}
        try:
            _paceline.edited(self._request())
        except BaseException:
            self._edits = before
            raise

    def __getitem__(self, key: str) -> Any:
        found: Any = tomllib.loads(self.to_toml())
        for part in key.split("."):
            if isinstance(found, list):
                ids = {e.get("id", str(i)): e for i, e in enumerate(found) if isinstance(e, dict)}
                ids |= {str(i): e for i, e in enumerate(found)}
                found = ids
            if not isinstance(found, dict) or part not in found:
                raise KeyError(f"{self.name} does not set {key!r}: the default applies, or the key is wrong")
            found = found[part]
        return found

    def __contains__(self, key: str) -> bool:
        try:
            self[key]
        except KeyError:
            return False
        return True

    @property
    def cases(self) -> list[str]:
        """Cases of the experiment, as the argument `case` accepts them."""
        return _paceline.cases(self._request(), with_registered())

    def to_toml(self) -> str:
        """Returns the text, with changes and comments."""
        return _paceline.edited(self._request())

    def save(self, path: str | Path) -> Path:
        """Writes the text. Files that it names, its constants included, are then relative to the new file."""
        path = Path(path)
        path.write_text(self.to_toml(), encoding="utf-8")
        return path

    def _request(self, set: Mapping[str, Any] | None = None, case: str | None = None) -> _Request:
        """Returns the scenario with more changes, as the extension reads it."""
        changes = {**self._edits, **(set or {})}
        settings = [f"{key}={toml(value)}" for key, value in changes.items()]
        first = repr(self.name) if self._text is None else repr(Scenario._of(self.name, self._text, {}))
        call = f"paceline.run({first}" + (f", set={changes!r}" if changes else "")
        return _Request(self.name, self._text, settings, case, call)

    def __repr__(self) -> str:
        changed = f".edit({self._edits!r})" if self._edits else ""
        if self._text is None:
            return f"paceline.Scenario({self.name!r}){changed}"
        return f"paceline.Scenario.from_toml({self._text!r}, {self.name!r}){changed}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


def as_scenario(scenario: Scenario | str | Path) -> Scenario:
    """Returns the scenario with this id or file, or the scenario itself."""
    return scenario if isinstance(scenario, Scenario) else Scenario(scenario)


def scenarios() -> list[str]:
    """Returns the ids of the scenarios in the package."""
    listed: list[str] = json.loads(_paceline.catalogue([]))["scenarios"]
    return listed


def _key(key: Any) -> str:
    """Formats a key as TOML."""
    text = str(key)
    is_bare = text.isascii() and text.replace("-", "").replace("_", "").isalnum()
    return text if is_bare else json.dumps(text, ensure_ascii=False)


def toml(value: Any) -> str:
    """Formats a value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml(v) for v in value) + "]"
    if hasattr(value, "item"):  # a numpy scalar
        return toml(value.item())
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    raise TypeError(f"{value!r} is not a TOML value: use text, numbers, booleans, lists or dicts")
