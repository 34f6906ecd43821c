"""Runs, scenarios as objects, errors."""

import copy
import multiprocessing
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import paceline

TABLE1 = "mmsys16/table1"
HASH = "61a09179e95360fe"  # as the README prints it


@pytest.fixture(scope="module")
def run():
    return paceline.run(TABLE1, controller="gcc-2016", seed=1)


def test_a_run_is_the_same_as_with_the_command(run):
    assert run.trace_hash == HASH
    assert run.metrics["utilization"] == pytest.approx(0.825, abs=0.0005)
    assert run["flows"][0]["controller"] == "gcc-2016" and run["duration_s"] == 200.0
    assert [a["holds"] for a in run.assertions] == [True] * 6
    assert paceline.run(TABLE1, seed=2).trace_hash != HASH
    assert "seed 1" in repr(run) and HASH in repr(run)


def test_series_are_not_copied_and_agree_with_the_metrics(run):
    received = run.series["video.received_bytes"]
    assert received.time_s.dtype == received.value.dtype == np.float64
    assert received.time_s.flags.c_contiguous and not received.time_s.flags.owndata  # the run's memory, not a copy
    assert type(received.time_s.base).__name__ == "PySliceContainer"
    assert received.value.sum() * 8 / 200 == pytest.approx(run.metrics["throughput_bps"], rel=0.001)
    queue = run.series["forward.queue_ms"]
    assert np.all(np.diff(queue.time_s) >= 0) and 0 <= queue.value.min()
    assert queue.value.max() == pytest.approx(run["link"]["queue_ms"]["max"], rel=0.002)
    assert run.series["video.A_s"].unit == "bit/s" and set(np.unique(run.series["video.usage"].value)) <= {0, 1, 2}
    mean = run.received_bps("video").value.mean()
    assert 0.98 < mean / run.metrics["throughput_bps"] < 1.02
    assert 20 < run.series["video.one_way_ms"].mean(100, 150) < 400


def test_notebook_output(run):
    shown = run._repr_html_()
    assert shown.count("<svg") == 1 and "utilization" in shown and "queuing delay" in shown
    assert "<script" not in shown
    figure = pytest.importorskip("matplotlib") and run.plot()
    assert len(figure.axes) == 3 and figure.axes[0].lines
    assert "utilization" in paceline.repeat(TABLE1, seeds=2, set={"duration": "20s"})._repr_html_()


def test_repeat_gives_the_same_runs_as_run():
    several = paceline.repeat(TABLE1, "gcc-2016", seeds=[3, 1], set={"duration": "30s"})
    alone = [paceline.run(TABLE1, "gcc-2016", seed=s, set={"duration": "30s"}).trace_hash for s in (3, 1)]
    assert [r["trace_hash"] for r in several.runs] == alone and alone[0] != alone[1]
    assert several.summary["utilization"]["n"] == 2


def test_compare_pairs_seeds():
    found = paceline.compare(TABLE1, ["gcc-2016", "fixed"], seeds=2, set={"duration": "30s"})
    assert list(found.summary) == ["gcc-2016", "fixed"]
    assert found.differences("fixed")["loss_ratio"]["mean"] > 0.1
    first, scale = found.ranking
    assert [first[key] for key in ("place", "controller", "tied", "difference")] == [1, "gcc-2016", True, None]
    assert first["score"] == found.summary["gcc-2016"]["score"] and found.verdict.startswith("`gcc-2016` ")
    assert [scale[key] for key in ("place", "controller", "kind")] == [None, "fixed", "faulty"]
    same = paceline.compare(TABLE1, ["gcc-2016", "gcc-2016-static"], seeds=1, set={"duration": "1s"})
    assert same["differences"][0]["seeds"] == 1
    with pytest.raises(ValueError, match="named twice"):
        paceline.compare(TABLE1, ["fixed", "fixed"])
    assert "±" in found._repr_html_()


def test_reproduce_gives_verdicts():
    found = paceline.reproduce("mmsys16/table1", seeds=1)
    cells = found["experiments"][0]["cells"]
    assert {c["metric"] for c in cells} >= {"utilization", "queue_p95_ms"}
    assert {c["verdict"] for c in cells} <= {"reproduced", "direction", "not"}
    assert found["papers"][0]["paper"] == "mmsys16"
    under = paceline.reproduce("mmsys16/table1", "fixed", seeds=1)["experiments"][0]["cells"]
    assert [c["measured"] for c in under] != [c["measured"] for c in cells]


def test_reproduce_accepts_formula_tables():
    (table,) = paceline.reproduce("uottawa15/table2")["experiments"]
    verdicts = [cell["verdict"] for cell in table["cells"]]
    assert len(verdicts) == 10 and 2 < verdicts.count("reproduced") < 8


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_can_run():
    def trace_hash():
        return paceline.run("mmsys16/table1", set={"duration": "2s"}).trace_hash

    here = trace_hash()
    fork = multiprocessing.get_context("fork")
    mine, its = fork.Pipe()
    child = fork.Process(target=lambda: its.send(trace_hash()))
    child.start()
    its.close()
    try:
        assert mine.poll(60), "the child needs its own threads"
        assert mine.recv() == here
    finally:
        child.kill()
        child.join()
    assert trace_hash() == here


def test_a_scenario_can_be_changed_and_saved(tmp_path):
    scenario = paceline.Scenario(TABLE1)
    assert scenario["flow.video.controller"] == "gcc-2016" and "path.forward.jitter" not in scenario
    before = scenario.to_toml()
    scenario["path.forward.capacity"] = "2Mbps"
    scenario["duration"] = "10s"
    comments = [line for line in before.splitlines() if line.startswith("#")]
    assert all(line in scenario.to_toml() for line in comments)
    assert scenario["path.forward.capacity"] == "2Mbps"
    run = paceline.run(scenario)
    assert run["duration_s"] == 10.0 and run.capacity["forward"] == [(0.0, 2e6)]
    assert run.trace_hash == paceline.run(TABLE1, set={"path.forward.capacity": "2Mbps", "duration": "10s"}).trace_hash
    edited = paceline.Scenario(TABLE1).edit({"path.forward.capacity": "2Mbps", "duration": "10s"})
    assert edited == scenario and copy.copy(edited) == scenario and edited != paceline.Scenario(TABLE1)
    assert eval(repr(edited)) == edited

    text = '# mine\nid = "mine"\ntitle = "One call"\nduration = "5s"\n[path.forward]\ncapacity = "1Mbps"\n'
    text += '[[flow]]\nid = "video"\ncontroller = "gcc-2016"\n'
    mine = paceline.Scenario.from_toml(text)
    mine["flow.video.config.k_u"] = np.float64(0.02)
    saved = mine.save(tmp_path / "mine.toml")
    assert saved.read_text().startswith("# mine\n") and "k_u = 0.02" in saved.read_text()
    assert paceline.run(saved).trace_hash == paceline.run(mine).trace_hash
    assert paceline.Scenario("mmsys16/fig7").cases


def test_errors_state_place_and_hint():
    with pytest.raises(paceline.ScenarioError, match="did you mean `mmsys16/table1`") as raised:
        paceline.Scenario("mmsys16/tabel1")
    assert raised.value.line is None and "no scenario" in raised.value.message
    scenario = paceline.Scenario(TABLE1)
    with pytest.raises(paceline.ScenarioError) as raised:
        scenario["path.forward.capacty"] = "1Mbps"
    error = raised.value
    assert (error.message, error.snippet) == ("unknown key `capacty`", "capacty")
    assert error.hint.startswith("did you mean `capacity`?") and error.column == 1
    assert scenario.to_toml().splitlines() == paceline.Scenario(TABLE1).to_toml().splitlines(), (
        "an invalid change is not kept"
    )
    shown = str(error).splitlines()
    at = next(line for line in shown if line.startswith(f" {error.line} │"))
    assert at.endswith('capacty = "1Mbps"') and "───┬───" in shown[shown.index(at) + 1]
    with pytest.raises(paceline.ScenarioError, match="negative|below|rate"):
        paceline.run(TABLE1, set={"path.forward.capacity": "-1Mbps"})
    with pytest.raises(ValueError, match="did you mean `gcc-2016`"):
        paceline.run(TABLE1, "gcc-2061")
    with pytest.raises(TypeError):
        paceline.Scenario(TABLE1)["duration"] = object()


def test_events_can_be_read_with_dataframe_libraries(tmp_path):
    run = paceline.run(TABLE1, out=tmp_path / "out", set={"duration": "10s"})
    assert run.trace_hash == paceline.run(TABLE1, set={"duration": "10s"}).trace_hash
    packets = next(Path(tmp_path).rglob("packets.parquet"))
    arrived = len(run.series["video.received_bytes"])
    read = 0
    for module, rows in [
        ("pandas", lambda m: m.read_parquet(packets)),
        ("polars", lambda m: m.read_parquet(packets).to_pandas()),
        ("duckdb", lambda m: m.sql(f"select * from '{packets}'").df()),
    ]:
        try:
            table = rows(__import__(module))
        except ImportError:
            continue
        read += 1
        arrivals = table[(table["event"] == "arrived") & (table["class"] == "media")]
        assert 0 < len(arrivals) <= arrived
    if not read:
        pytest.skip("neither pandas (with pyarrow) nor polars nor duckdb is installed")


def test_a_run_releases_the_gil():
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.wait(0.001):
            ticks.append(0)

    thread = threading.Thread(target=tick)
    thread.start()
    paceline.run(TABLE1)
    count = len(ticks)
    stop.set()
    thread.join()
    assert count >= 5, "the run kept the GIL"


def test_ctrl_c_ends_a_long_run():
    program = (
        "import paceline, signal, sys\n"
        # A shell ignores the signal in its background jobs, and their children inherit this.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\nprint('started', flush=True)\n"
        "try: paceline.run('mmsys16/table1', set={'duration': '160h', 'path.forward.capacity': '1Mbps'})\n"
        "except KeyboardInterrupt: print('interrupted'); sys.exit(7)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "started\n"
        time.sleep(1)
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=60)
        assert (child.returncode, out) == (7, "interrupted\n")
    finally:
        child.kill()


def test_catalogue():
    names = [c["name"] for c in paceline.controllers()]
    assert "gcc-2016" in names and "fixed" in names
    k_u = next(p for p in paceline.controllers()[0]["parameters"] if p["name"] == "k_u")
    assert k_u["default"] == 0.01
    assert TABLE1 in paceline.scenarios() and "mmsys16/fig8" in paceline.sweeps()
