"""Scenarios as objects: found by id or file, changed in code, saved as TOML."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import _paceline
from .controllers import with_known

__all__ = ["Scenario", "scenarios"]


@dataclass(frozen=True)
class Ask:
    """A scenario and changes, as the extension reads them."""

    name: str
    text: str | None
    settings: list[str]
    case: str | None
    again: str | None


class Scenario:
    """A scenario, by its id (`mmsys16/table1`) or its file.

    Items are the dotted keys of the command's `--set`, elements of lists by id or number:

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
        """From text; files that it names are looked up from the working directory. `name` is what complaints call it."""
        made = cls._of(name, text, {})
        _paceline.edited(made.ask())
        return made

    @classmethod
    def _of(cls, name: str, text: str | None, edits: dict[str, Any]) -> Scenario:
        made = cls.__new__(cls)
        made.name, made._text, made._edits = name, text, edits
        return made

    def edit(self, changes: Mapping[str, Any]) -> Scenario:
        """A copy with these changes made."""
        copy = self._of(self.name, self._text, {**self._edits})
        for key, value in changes.items():
            copy[key] = value
        return copy

    def __setitem__(self, key: str, value: Any) -> None:
        before, self._edits = self._edits, {**self._edits, key: value}
        try:
            _paceline.edited(self.ask())
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
                raise KeyError(f"{self.name} does not write {key!r}: it has its default, or the key is wrong")
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
        """Variants of the experiment, as `case=` takes them."""
        return _paceline.cases(self.ask(), with_known())

    def to_toml(self) -> str:
        """Its text, changes and comments included."""
        return _paceline.edited(self.ask())

    def save(self, path: str | Path) -> Path:
        """Writes the text. Files that it names, its constants too, are looked up beside the new file from then on."""
        path = Path(path)
        path.write_text(self.to_toml(), encoding="utf-8")
        return path

    def ask(self, set: Mapping[str, Any] | None = None, case: str | None = None) -> Ask:
        """What the extension is asked for: this, under more changes."""
        changes = {**self._edits, **(set or {})}
        settings = [f"{key}={toml(value)}" for key, value in changes.items()]
        what = repr(self.name) if self._text is None else repr(Scenario._of(self.name, self._text, {}))
        again = f"paceline.run({what}" + (f", set={changes!r}" if changes else "")
        return Ask(self.name, self._text, settings, case, again)

    def __repr__(self) -> str:
        changed = f".edit({self._edits!r})" if self._edits else ""
        if self._text is None:
            return f"paceline.Scenario({self.name!r}){changed}"
        return f"paceline.Scenario.from_toml({self._text!r}, {self.name!r}){changed}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


def of(scenario: Scenario | str | Path) -> Scenario:
    """A scenario, whichever way it is named."""
    return scenario if isinstance(scenario, Scenario) else Scenario(scenario)


def scenarios() -> list[str]:
    """Ids of the scenarios that come with Paceline."""
    listed: list[str] = json.loads(_paceline.catalogue([]))["scenarios"]
    return listed


def toml(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(str(k))} = {toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml(v) for v in value) + "]"
    if hasattr(value, "item"):  # a number of numpy's
        return toml(value.item())
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    raise TypeError(f"{value!r} cannot stand in a scenario: text, numbers, booleans, lists and dicts can")
