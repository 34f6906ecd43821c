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


def test_a_constant_is_pinned_if_the_best_trials_agree():
    of = constant("0.0", "1.0", "0.5")
    spread = [(n / 40, 1.0) for n in range(40)]
    assert not _is_pinned(of, spread) and not _is_pinned(of, spread[:10])
    assert _is_pinned(of, [(value, -abs(value - 0.6)) for value, _ in spread])


def test_a_search_is_judged_on_the_other_half_and_continues(tmp_path, monkeypatch):
    """Two seeds in place of as many as the verdicts need."""
    trial, lines = _paceline.trial, []
    monkeypatch.setattr(_paceline, "trial", lambda requests, name, _, *rest: trial(requests, name, 2, *rest))
    first = calibrate("med16", folder=tmp_path, trials=2, seeds=1, wrong=(), log=lines.append)
    assert not set(first.searched) & set(first.judged) and len(lines) == 2
    cells = first.as_read[0].cells + first.as_read[1].cells
    assert cells == first.best.own.cells + first.best.other.cells > 20
    assert all(0 <= score.reproduced <= score.cells for score in (*first.as_read, first.best.own, first.best.other))
    assert set(first.best.constants) == {constant.id for constant in first.constants}
    stored = json.loads((tmp_path / "med16-first.json").read_text())
    assert stored["best"]["trials"] == 2
    # The assumed values are the first trial.
    assert [profile[0][0] for profile in first.profiles.values()] == [c.assumed() for c in first.constants]
    lines.clear()
    then = calibrate("med16", folder=tmp_path, trials=3, seeds=1, wrong=(), log=lines.append)
    assert len(lines) == 1 and "trial 3 of 3" in lines[0] and then.best.trials == 3
    assert first.table().count("\n") == 3 and "as read" in first.table()


def test_wrong_arguments_have_a_hint(tmp_path):
    for arguments in ({"trials": 0}, {"seeds": 0}, {"half": "third"}):
        with pytest.raises(ArgumentError):
            calibrate("med16", folder=tmp_path, **arguments)
    with pytest.raises(ArgumentError, match="fewer than two"):
        calibrate("nosuch", folder=tmp_path)
