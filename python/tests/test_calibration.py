"""Calibration: values within their ranges, one half searched and the other judged, and a search that continues."""

import json

import pytest

from paceline import ArgumentError, _paceline
from paceline.calibration import Constant, _is_pinned, _near, _number, calibrate

pytest.importorskip("optuna", reason="optuna is not installed")


def constant(low, high, value):
    return Constant("c", "media.start_rate", value, low, high, ("a/b",))


def test_values_keep_their_unit_and_their_range():
    class Trial:
        def suggest_int(self, name, low, high, log):
            return (low, high, log)[self.pick]

        def suggest_float(self, name, low, high, log):
            return (low, high)[self.pick]

        def suggest_categorical(self, name, choices):
            return choices[self.pick]

    def ends(of):
        trial = Trial()
        found = []
        for trial.pick in (0, 1):
            found.append(of.suggest(trial))
        return found

    assert ends(constant('"300 kbps"', '"1.8 Mbps"', '"900 kbps"')) == ["300000 bps", "1800000 bps"]
    assert ends(constant('"0 ms"', '"1 s"', '"200 ms"')) == ["0 us", "1000000 us"]
    assert ends(constant("0.05", "0.2", "0.12")) == ["0.05", "0.2"]
    assert ends(constant("6", "25", "12.5")) == ["6", "25"] and constant("6", "25", "12.5").assumed() == 12.5
    assert constant("1", "100", "50").assumed() == 50 and isinstance(constant("1", "100", "50").assumed(), int)
    assert ends(constant('"new-reno"', '"cubic"', '"cubic"')) == ['"new-reno"', '"cubic"']
    assert ends(constant("false", "true", "true")) == ["false", "true"]
    assert [_number('"50 packets"'), _number("-1.5"), _number('"linux"')] == [(50, "packets", True), (-1.5, "", False), None]


def test_closeness_is_one_within_the_tolerance_or_the_bounds():
    def near(measured, published=None, tolerance=None, bounds=None):
        return _near({"measured": measured, "published": published, "tolerance": tolerance, "bounds": bounds})

    assert [near(0.89, 0.84, 0.05), near(0.94, 0.84, 0.05), near(None, 0.84, 0.05)] == [1, pytest.approx(0.5), 0]
    assert [near(0.5, bounds=[0.4, 0.6]), near(0.75, bounds=[0.4, 0.6]), near(0.3, bounds=[None, 0.2])] == [
        1,
        pytest.approx(0.5),
        pytest.approx(1 / 3),
    ]


def test_a_constant_is_pinned_if_an_end_of_its_range_costs_two_cells():
    assert [_is_pinned(cells) for cells in ([5, 5, 5], [5, 6, 5], [3, 5, 5], [5, 4, 3], [5, 2, 5])] == [
        False,
        False,
        True,
        True,
        False,
    ]


def test_profiles_cover_the_range():
    assert [text for _, text in constant('"100 ms"', '"1 s"', '"1 s"').points()] == [
        "100000 us",
        "178000 us",
        "316000 us",
        "562000 us",
        "1000000 us",
    ]
    assert constant("0", "200", "50").points() == [(0, "0"), (50, "50"), (100, "100"), (150, "150"), (200, "200")]
    assert constant("false", "true", "true").points() == [("false", "false"), ("true", "true")]


def test_a_search_is_judged_on_the_other_half_and_continues(tmp_path, monkeypatch):
    """Two seeds in place of as many as the verdicts need."""
    trial, lines = _paceline.trial, []
    monkeypatch.setattr(_paceline, "trial", lambda requests, name, _, *rest: trial(requests, name, 2, *rest))
    first = calibrate("med16", folder=tmp_path, trials=2, seeds=1, wrong=(), log=lines.append)
    assert not set(first.searched) & set(first.judged) 
    cells = first.as_read[0].cells + first.as_read[1].cells
    assert cells == first.best.own.cells + first.best.other.cells > 20
    assert all(0 <= score.reproduced <= score.cells for score in (*first.as_read, first.best.own, first.best.other))
    assert set(first.best.constants) == {constant.id for constant in first.constants}
    stored = json.loads((tmp_path / "med16-first.json").read_text())
    assert stored["best"]["trials"] == 2
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    assert len([axis for axis in first.plot().axes if axis.get_visible()]) == len(first.constants)
    assert all(len(first.profiles[c.id]) == len(c.points()) for c in first.constants)
    assert any("trial 1 of 2" in line for line in lines) and sum("trial" in line for line in lines) == 2
    lines.clear()
    then = calibrate("med16", folder=tmp_path, trials=3, seeds=1, wrong=(), log=lines.append)
    assert [line for line in lines if "trial" in line] == [lines[0]] and "trial 3 of 3" in lines[0]
    assert then.best.trials == 3
    assert first.table().count("\n") == 3 and "as read" in first.table()


def test_constants_that_contradict_each_other_are_left_out(tmp_path, monkeypatch):
    """A lowest rate above the start rate is an error of the scenario, and another trial takes its place."""
    trial, lines, calls = _paceline.trial, [], []

    def contradicts(requests, name, _, constants, null_sender):
        calls.append(constants)
        if sum(bool(call) for call in calls) == 2:
            constants = [("start-rate", "1 bps")]
        return trial(requests, name, 1, constants, null_sender)

    monkeypatch.setattr(_paceline, "trial", contradicts)
    result = calibrate("med16", folder=tmp_path, trials=3, seeds=1, wrong=(), log=lines.append)
    assert result.best.trials == 3
    assert sum("left out" in line for line in lines) == 1
    assert sum("of 3, " in line for line in lines) == 3


def test_wrong_arguments_have_a_hint(tmp_path):
    for arguments in ({"trials": 0}, {"seeds": 0}, {"half": "third"}):
        with pytest.raises(ArgumentError):
            calibrate("med16", folder=tmp_path, **arguments)
    with pytest.raises(ArgumentError, match="no controller 'gcc-2061'"):
        calibrate("med16", folder=tmp_path, wrong=("gcc-2061",))
    with pytest.raises(ArgumentError, match="fewer than two"):
        calibrate("nosuch", folder=tmp_path)
