"""Explanations and fitted paths: the documents and the texts of the command."""

import json
import pickle
import subprocess
import sys

import pytest

import paceline

HALF = 20


def statistics(tmp_path):
    """A call of 40 s. From the middle on, 30 % of the rate is left. A queue stands around the middle."""
    lines, sent = [], 0
    for second in range(2 * HALF):
        is_slow = second >= HALF
        sent += 75_000 if is_slow else 250_000
        at = 1_700_000_000_000 + 1000 * second
        rtt = 0.4 if abs(second - HALF) <= 2 else 0.04
        objects = [
            {"id": "O", "type": "outbound-rtp", "timestamp": at, "bytesSent": sent, "packetsSent": sent // 1000},
            {"id": "R", "type": "remote-inbound-rtp", "timestamp": at, "packetsLost": 0, "roundTripTime": rtt},
        ]
        lines.append(json.dumps(objects))
    file = tmp_path / "stats.jsonl"
    file.write_text("\n".join(lines))
    return file


def command(*words):
    done = subprocess.run(
        [sys.executable, "-m", "paceline", *map(str, words)], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_an_explanation_is_that_of_the_command(tmp_path):
    file = statistics(tmp_path)
    found = paceline.explain(file)
    assert found.document == json.loads(command("explain", file, "--json"))
    assert found.text.strip() == command("explain", file).strip()
    (fall,) = [cause for cause in found.causes if cause["kind"] == "drop"]
    assert HALF - 3 < fall["start_s"] < HALF + 3
    assert 1e6 < fall["cost_bps"] < 1.6e6 and fall["from_bps"] - fall["to_bps"] == fall["cost_bps"]
    assert fall["cause"] == "own-queue" and fall["confidence"] in ("weak", "strong")
    assert found.verdict.startswith("Media sent by this end was poor for ") and "own-queue" in found.verdict
    assert " ".join(found.text.split()).startswith(found.verdict)
    frame = found.to_pandas()
    assert list(frame.cause) == [cause["cause"] for cause in found.causes] and "cost_bps" in frame
    assert pickle.loads(pickle.dumps(found)).verdict == found.verdict


def test_controllers_run_on_the_observed_path(tmp_path):
    what_if = paceline.explain(statistics(tmp_path), what_if="nada")["inputs"][0]["what_if"]
    assert {(run["controller"], run["unknown"]) for run in what_if} == {("nada", "as-carried"), ("nada", "free")}


def test_a_fitted_path_runs(tmp_path):
    file = statistics(tmp_path)
    path = paceline.fit(file, controller="nada")
    assert path.to_toml() + "\n" == command("fit", file, "--controller", "nada")
    run = paceline.run(path, set={"duration": "10 s"})
    assert run["flows"][0]["controller"] == "nada" and 1e6 < run["links"][0]["capacity_bps"] < 3e6


def test_the_path_of_a_stored_run_is_fitted(tmp_path):
    paceline.run("mmsys16/table1", out=tmp_path / "out", set={"duration": "10 s"})
    path = paceline.fit(tmp_path / "out")
    assert path.to_toml() + "\n" == command("fit", tmp_path / "out")
    assert path["flow.0.controller"] == "gcc-2016"


def test_wrong_input(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("hello")
    for function in (paceline.explain, paceline.fit):
        with pytest.raises(
            paceline.InputError, match=r"text\.txt: unknown format: it begins with `hello`; readable are"
        ):
            function(text)
        with pytest.raises(paceline.InputError, match="nothing"):
            function(tmp_path / "nothing")
    with pytest.raises(paceline.ArgumentError, match="did you mean `nada"):
        paceline.fit(statistics(tmp_path), controller="nadda")
    with pytest.raises(paceline.InputError, match="leave `run=` out"):
        paceline.fit(statistics(tmp_path), run="a")
    with pytest.raises(paceline.ArgumentError, match="to_pandas"):
        _ = paceline.explain(statistics(tmp_path)).rows
