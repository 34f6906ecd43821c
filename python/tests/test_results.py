"""Results as objects: frames, plots, pickles, notebooks, stored results, worlds."""

import json
import os
import pickle
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import paceline

TABLE1 = "mmsys16/table1"
SHORT = {"duration": "20s"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of a comparison, and the comparison."""
    out = tmp_path_factory.mktemp("results") / "out"
    return out, paceline.compare(TABLE1, ["gcc-2016", "scream"], seeds=2, set=SHORT, out=out, record="packets")


@pytest.fixture(scope="module")
def swept():
    axis = {"key": "path.rtt", "values": [20, 80]}
    measure = {"name": "used", "scenario": TABLE1, "metric": "utilization", "set": SHORT}
    keys = {"id": "test/rtt", "title": "Round-trip time", "repeats": 2, "measure": [measure]}
    del axis["values"]
    axis["values"] = ["20 ms", "80 ms"]
    return paceline.sweep(paceline.SweepFile(keys | {"axis": [axis]}))


def numbers(key, values, **more):
    axis = {"key": key, "values": values}
    measure = {"name": "waited", "scenario": TABLE1, "metric": "queue_p95_ms", "set": SHORT}
    return paceline.SweepFile({"id": "test/n", "title": "N", "repeats": 2, "axis": [axis], "measure": [measure]} | more)


def test_packets_in_memory_are_those_of_the_table(folder):
    out, found = folder
    run = found.controllers["gcc-2016"].runs[0]
    packets = run.packets
    assert packets.rows == len(packets["time_ns"]) > 3000 and np.all(np.diff(packets["time_ns"]) >= -1_000_000)
    arrived = packets["event"] == "arrived"
    media = arrived & (packets["class"] == "media")
    # After the start-up probe, padding fills what the encoder leaves of the target.
    assert 0.5 < media.sum() / arrived.sum() < 0.95 and set(packets["flow"]) == {"video"}
    forward = arrived & (packets["class"] != "receiver_control")
    delays = packets["delay_ns"][forward]
    np.testing.assert_allclose(delays / 1e6, run.series["video.one_way_ms"].value)
    waited = packets["waited_ns"]
    assert waited.mask.sum() == (packets["event"] != "crossed").sum() > 0 and waited.min() == 0
    assert packets["marked"].dtype == bool and set(packets["hop"]) == {"forward", "reverse", None}
    stored = paceline.load(out).runs[0].packets
    assert list(stored) == list(packets)
    for name in packets:
        assert np.array_equal(np.ma.filled(stored[name], -1), np.ma.filled(packets[name], -1)), name
    with pytest.raises(paceline.SeriesError, match="did you mean 'delay_ns'"):
        packets["delay"]


def test_frames_of_packets_equal_the_stored_table(folder):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    out, found = folder
    run = found.controllers["gcc-2016"].runs[0]
    stored = polars.read_parquet(next(out.glob("runs/*gcc-2016-seed1/packets.parquet")))
    made = run.packets.to_polars()
    assert made.columns == stored.columns and made.height == stored.height > 3000
    for name in stored.columns:
        assert made[name].cast(stored[name].dtype).equals(stored[name]), name
    frame = run.packets.to_pandas()
    assert len(frame) == made.height and frame["delay_ns"].isna().sum() == made["delay_ns"].null_count() > 0
    assert (frame["reason"].isna() == pandas.Series(made["reason"].is_null().to_list())).all()


def test_frames_of_results(folder, swept):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    out, found = folder
    by_run = found.to_pandas()
    assert by_run.shape[0] == 4 and list(by_run["seed"]) == [1, 2, 1, 2]
    assert by_run.groupby("controller")["utilization"].mean()["scream"] == pytest.approx(
        found.summary["scream"]["utilization"]["mean"]
    )
    assert found.to_polars().shape == by_run.shape
    table = found.table.to_pandas()
    rate = table[(table["label"] == "rate") & (table["controller"] == "scream") & table["stream"].isna()].iloc[0]
    assert rate["unit"] == "bit/s" and 1e5 < rate["mean"] < 3e6 and rate["n"] == 2
    runs = found.controllers["gcc-2016"]
    assert runs.to_polars()["trace_hash"].to_list() == [run.trace_hash for run in runs.runs]
    values = runs.runs[0].to_polars()
    assert values.filter(polars.col("series") == "video.target_bps").height == len(
        runs.runs[0].series["video.target_bps"]
    )
    series = runs.runs[0].series["video.target_bps"].to_pandas()
    assert series.attrs["unit"] == "bit/s" and series.index.name == "time_s"
    points = swept.to_pandas()
    assert list(points["path.rtt"]) == ["20 ms", "80 ms"] and points["used_n"].tolist() == [2, 2]
    assert swept.to_polars().columns == list(points.columns) == ["path.rtt", "used", "used_ci95", "used_n"]
    stored = paceline.load(out).to_pandas()
    assert list(stored["controllers"]) == ["gcc-2016"] * 2 + ["scream"] * 2 and len(stored.columns) > 20
    assert isinstance(stored, pandas.DataFrame)


def lines(rows, *without):
    return sorted(map(repr, zip(*(rows[c].tolist() for c in rows if c not in without), strict=True)))


def test_rows_in_memory_are_those_of_the_folder(folder):
    out, found = folder
    rows, stored = found.rows, paceline.load(out)
    assert list(rows)[0] == "controller" and list(rows)[1:] == list(stored.rows)
    assert lines(rows, "controller") == lines(stored.rows) and found.table.rows is rows
    of = (rows["controller"] == "scream") & (rows["metric"] == "utilization") & (rows["flow"] == "")
    assert dict(zip(rows["seed"][of], rows["value"][of], strict=True)) == {
        run.seed: run.metrics["utilization"] for run in found.controllers["scream"].runs
    }
    assert set(rows["changes"]) == {'duration="20s"'} and set(rows["window_to_s"]) == {20.0}
    # Each run has its own rows, in memory and in the folder.
    runs = found.controllers["scream"]
    for one, other in ((runs.runs[1], stored.groups[1].runs[1]), (runs, stored.groups[1])):
        assert lines(one.rows) == lines(other.rows) and set(one.rows["controllers"]) == {"scream"}
    assert set(runs.runs[1].rows["seed"]) == {2} and set(runs.rows["seed"]) == {1, 2}
    # And the database has no others.
    with closing(sqlite3.connect(out / "results.sqlite")) as database:
        columns = "scenario_hash, seed, flow, stream, metric, value"
        kept = database.execute(f"SELECT {columns} FROM results").fetchall()
    made = zip(*(rows[name].tolist() for name in columns.split(", ")), strict=True)
    assert sorted(map(repr, kept)) == sorted(map(repr, made))


def test_rows_of_a_sweep(swept, tmp_path):
    rows = swept.rows
    assert len(rows["value"]) == 4 and set(rows["metric"]) == {"utilization"}
    mean = rows["value"][rows["changes"] == 'duration="20s", path.rtt="80 ms"'].mean()
    assert mean == pytest.approx(swept.points[1]["values"][0]["mean"])
    stored = paceline.sweep(numbers("path.rtt", ["20 ms"]), out=tmp_path / "s")
    assert lines(stored.rows) == lines(paceline.load(tmp_path / "s").sweep.rows)
    assert lines(stored.rows) == lines(paceline.sweep(numbers("path.rtt", ["20 ms"])).rows)
    assert stored.rows.to_polars().height == len(stored.rows.to_pandas()) == 2


def test_seeds_are_a_number_or_a_list():
    arguments = {"set": SHORT, "record": "nothing"}
    assert [run.seed for run in paceline.repeat(TABLE1, seeds=range(2, 4), **arguments).runs] == [2, 3]
    assert paceline.sweep(numbers("path.rtt", ["20 ms"]), seeds=[1, 2])["repeats"] == 2
    for call in (lambda: paceline.sweep(numbers("path.rtt", ["20 ms"]), seeds=[2]), lambda: paceline.reproduce(TABLE1, seeds=[2])):
        with pytest.raises(paceline.ArgumentError, match="are 1 to N: write seeds=N"):
            call()


def test_progress_is_a_function_or_a_bar(capfd):
    shown = []
    paceline.repeat(TABLE1, seeds=2, set=SHORT, record="nothing", progress=lambda *now: shown.append(now))
    assert shown[-1] == (40, 40) and all(done <= total == 40 for done, total in shown)
    assert capfd.readouterr().err == ""
    shown.clear()
    names = ["gcc-2016", "scream"]
    paceline.compare(TABLE1, names, seeds=1, set=SHORT, record="nothing", progress=lambda *now: shown.append(now))
    assert shown[-1] == (40, 40) and {total for _, total in shown} == {40}
    paceline.sweep(numbers("path.rtt", ["20 ms"]), progress=True)
    assert "2/2\n" in capfd.readouterr().err

    def interrupt(done, total):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        paceline.repeat(TABLE1, seeds=2, set=SHORT, progress=interrupt)


def test_an_unknown_series_names_those_of_its_flow(folder):
    series = folder[1].controllers["gcc-2016"].runs[0].series
    for name, hint in {
        "video.rate": r"those of 'video' are: .*video\.target_bps",
        "video.target": "did you mean 'video.target_bps'?",
        "vide.target_bps": "did you mean 'video.target_bps'?",
    }.items():
        with pytest.raises(paceline.SeriesError, match=hint) as raised:
            series[name]
        assert "forward" not in str(raised.value)


def test_a_missing_package_is_named(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(paceline.PackageMissing, match=r"pip install 'paceline\[pandas\]'"):
        folder[1].to_pandas()
    with pytest.raises(ImportError, match=r"paceline\[plot\]"):
        folder[1].plot()
    assert "rows of time_ns" in folder[1].controllers["gcc-2016"].runs[0].packets._repr_html_()


def test_results_can_be_pickled(folder, swept):
    found = folder[1]
    copy = pickle.loads(pickle.dumps(found))
    assert copy == found and copy.text == found.text and copy._repr_html_() == found._repr_html_()
    run, again = found.controllers["scream"].runs[1], copy.controllers["scream"].runs[1]
    np.testing.assert_array_equal(run.series["video.rtt_ms"].value, again.series["video.rtt_ms"].value)
    assert again.svg() == run.svg() and again.packets.rows == run.packets.rows
    again = pickle.loads(pickle.dumps(swept))
    assert again == swept and again.run(1).trace_hash == swept.run(1).trace_hash
    stored = pickle.loads(pickle.dumps(paceline.load(folder[0])))
    assert stored.runs[0].series["video.rtt_ms"].unit == "ms"


def test_repeat_and_compare_have_series(folder):
    found = folder[1]
    assert list(found.series) == ["gcc-2016", "scream"]
    targets = found.controllers["scream"].series["video.target_bps"]
    assert [s.unit for s in targets] == ["bit/s"] * 2 and targets[0].value.mean() != targets[1].value.mean()
    alone = paceline.run(TABLE1, "scream", seed=2, set=SHORT)
    np.testing.assert_array_equal(alone.series["video.target_bps"].value, targets[1].value)
    assert found.controllers["scream"].runs[1].all["runs"][0]["trace_hash"] == alone.trace_hash
    without = paceline.repeat(TABLE1, seeds=1, set=SHORT, record="nothing").runs[0]
    for name, sentence in (("series", "record='series'"), ("packets", "record='packets'")):
        with pytest.raises(paceline.SeriesError, match=re.escape(sentence)):
            getattr(without, name)
    assert "<svg" not in without._repr_html_()


def test_the_notebook_shows_what_the_command_prints(folder, swept):
    found = folder[1]
    run = found.controllers["gcc-2016"].runs[0]
    for result in (run, found.controllers["gcc-2016"], found, found.table, swept):
        html = re.sub(r"<style>.*?</style>|<svg.*?</svg>", "", result._repr_html_(), flags=re.DOTALL)
        text = re.sub(r"<[^>]+>", " ", html).replace("&quot;", '"').replace("&gt;", ">").replace("&lt;", "<")
        shown = set(re.findall(r"[\w.%/-]+", text))
        bars = re.compile(r"[▁-█]|1 char = ")
        for line in result.text.splitlines():
            if bars.search(line):
                continue  # notebooks have a plot in its place
            missing = set(re.findall(r"[\w.%/-]+", line)) - shown
            assert not missing, f"{missing} of {line!r}"
        assert "<script" not in html and html.count("<table>") == html.count("</table>") > 0
    assert "79" not in run.text.splitlines()[0] and run._repr_html_().count("<svg") == 1
    assert found["table"]["verdict"] == found.table["verdict"] and found.verdict.replace("\n", " ") in " ".join(
        found.text.split()
    )


def test_the_table_has_the_verdict_of_the_command(folder):
    rows = folder[1].table["rows"]
    differences = [row["differences"][1] or {} for row in rows]
    marked = [one for one in differences if one.get("verdict") == "holds" and one["better"] is not None]
    assert folder[1].text.count(" +") + folder[1].text.count(" -") >= len(marked)
    assert folder[1]["differences"][0]["baseline"] == "gcc-2016"
    with pytest.raises(paceline.ArgumentError, match="no difference of 'nada'"):
        folder[1].differences("nada")


def test_plots_have_units(folder, swept):
    pytest.importorskip("matplotlib")
    found = folder[1]
    rate, queue = found.plot().axes
    assert (rate.get_ylabel(), queue.get_ylabel(), queue.get_xlabel()) == (
        "rate (Mbit/s)",
        "queuing delay (ms)",
        "time (s)",
    )
    assert {line.get_label() for line in rate.lines} == {
        "capacity of forward",
        "gcc-2016: video received",
        "scream: video received",
    }
    highest = max(line.get_ydata().max() for line in rate.lines[1:])
    assert 0.5 < highest < 3
    titles = [axes.get_title() for axes in found.table.plot().axes]
    assert "video: rate (Mbit/s)" in titles and "forward bottleneck: utilization (%)" in titles
    assert len(found.controllers["scream"].plot().axes) == 2
    (axes,) = swept.plot().axes
    assert axes.get_ylabel() == "utilization (%)" and axes.get_xlabel() == "path.rtt"
    assert 20 < axes.lines[0].get_ydata()[0] <= 100
    grid = paceline.sweep(
        numbers(
            "flow.video.config.k_u",
            [0.01, 0.1],
            axis=[
                {"key": "flow.video.config.k_u", "values": [0.01, 0.1]},
                {"key": "path.rtt", "values": ["20 ms", "40 ms"]},
            ],
        )
    )
    image, bar = grid.plot().axes
    assert image.get_title() == "waited" and bar.get_ylabel() == "queue_p95_ms (ms)"


def test_a_sweep_has_series_and_runs(swept):
    result = paceline.sweep(numbers("flow.video.config.k_u", [0.001, 0.01, 0.1]))
    waited = result.series["waited"]
    assert (waited.unit, list(waited.time_s)) == ("ms", [0.001, 0.01, 0.1]) and np.all(waited.value > 0)
    means = [p["values"][0]["mean"] for p in result.points]
    np.testing.assert_array_equal(waited.value, means)
    runs = [result.run(1, "waited", seed=seed) for seed in (1, 2)]
    assert np.mean([run.metrics["queue_p95_ms"] for run in runs]) == pytest.approx(means[1])
    assert runs[0].packets.rows > 0 and runs[0].trace_hash == paceline.run(TABLE1, set=SHORT).trace_hash
    with pytest.raises(paceline.ArgumentError, match="whose values are numbers"):
        _ = swept.series
    for arguments, sentence in [
        ((9,), "point must be 0 to 2"),
        ((0, "nothing"), "no measure 'nothing'"),
        ((0, 4), "0 to 0"),
    ]:
        with pytest.raises(paceline.ArgumentError, match=sentence):
            result.run(*arguments)


def test_load_gives_what_was_stored(folder, tmp_path):
    out, found = folder
    results = paceline.load(out)
    assert repr(results) == f"<{out}: 4 runs, 2 groups, 1 comparison>"
    assert (
        results.comparisons[0] == found.table
        and results.comparisons[0].text.splitlines()[:4] == found.text.splitlines()[:4]
    )
    group, made = results.groups[0], found.controllers["gcc-2016"]
    assert group.summary == made.summary and [r.trace_hash for r in group.runs] == [r.trace_hash for r in made.runs]
    stored, run = group.runs[1], made.runs[1]
    assert stored.metrics == run.metrics and stored.document == run.document and stored.title == run.title
    assert list(stored.series) == list(run.series) and stored.capacity == run.capacity
    for name, series in run.series.items():
        np.testing.assert_array_equal(stored.series[name].time_s, series.time_s)
        np.testing.assert_array_equal(stored.series[name].value, series.value)
        assert stored.series[name].unit == series.unit
    assert stored.svg() == run.svg() and stored._repr_html_().count("<svg") == 1
    assert "79" not in results._repr_html_()[:20] and results._repr_html_().count("<hr>") == 2
    with pytest.raises(paceline.ResultsError, match="nowhere"):
        paceline.load(tmp_path / "nowhere")
    (tmp_path / "other").mkdir()
    with pytest.raises(paceline.ResultsError):
        paceline.load(tmp_path / "other")


def test_load_reads_sweeps_and_folders_of_the_command(tmp_path):
    swept = paceline.sweep(numbers("flow.video.config.k_u", [0.01, 0.1]), out=tmp_path / "sweep")
    stored = paceline.load(tmp_path / "sweep").sweep
    assert stored == swept and len(stored.points) == 2 and stored.text == swept.text
    paceline.repeat(TABLE1, seeds=2, set=SHORT, out=tmp_path / "runs", record="nothing")
    run = paceline.load(tmp_path / "runs").groups[0].runs[0]
    assert run.trace_hash == paceline.run(TABLE1, set=SHORT).trace_hash and len(run.series) > 5


def test_a_reproduction_has_rows_frames_and_a_plot():
    found = paceline.reproduce(TABLE1, seeds=2)
    rows, frame = found.rows, found.to_pandas()
    of = (rows["metric"] == "utilization") & (rows["changes"] == rows["changes"][0])
    assert set(rows["seed"]) == {1, 2} and of.sum() >= 2
    cells = [cell for experiment in found["experiments"] for cell in experiment["cells"]]
    assert list(frame["measured"]) == [cell["measured"] for cell in cells] and set(frame["experiment"]) == {TABLE1}
    (mean,) = {cell["measured"] for cell in cells[:1]}
    means = {float(rows["value"][(rows["metric"] == m) & (rows["changes"] == c)].mean()) for m in rows["metric"] for c in rows["changes"]}
    assert any(value == pytest.approx(mean) for value in means)
    assert len(found.plot().axes[0].get_yticks()) == sum(1 for cell in cells if cell["published"])
    assert str(found) in found._repr_html_() or "&" in found._repr_html_()
    assert TABLE1 in str(found) and found.to_polars().height == len(cells)


def test_published_values_are_judged_as_by_the_command():
    written = paceline.run(TABLE1, record="nothing")
    own = paceline.run(TABLE1, "gcc-2016", record="nothing")
    assert len(written.expectations) == len(own.expectations) == 6 and "84.0 ± 5.0 %" in own.text
    for run, reason in [
        (paceline.run(TABLE1, "scream", record="nothing"), "not under scream"),
        (paceline.run(TABLE1, set={"path.rtt": "60ms"}, record="nothing"), "not with path.rtt="),
    ]:
        assert run.expectations == [] and "published  " not in run.text
        assert any(reason in note for note in run.notes) and run.assertions
    found = paceline.compare(TABLE1, ["gcc-2016", "scream"], seeds=1, record="nothing")
    assert [len(runs["expectations"]) for runs in found.controllers.values()] == [6, 0]


def test_other_worlds():
    with pytest.raises(paceline.ArgumentError, match="no world `tesbed`; did you mean `testbed`"):
        paceline.run(TABLE1, world="tesbed")
    with pytest.raises(paceline.ArgumentError, match="simulates"):
        paceline.sweep(numbers("flow.video.config.k_u", [0.01]), out="never", engine="dask", world="testbed")
    with pytest.raises(paceline.WorldUnavailable) as raised:
        paceline.run(TABLE1, world="browser", set={"duration": "1s"})
    assert "browser" in str(raised.value) and len(raised.value.hint) > 10
    try:
        run = paceline.run(TABLE1, world="testbed", set={"duration": "4s"})
    except paceline.WorldUnavailable as missing:
        if "track" in os.environ.get("PACELINE_REQUIRE", ""):
            raise
        pytest.skip(f"no testbed: {missing}")
    assert run.world == "testbed" and 3.9 < run["wall_s"] < 60 and run["machine"]["attempts"] >= 1
    assert run.packets.rows > 100 and len(run.series["video.target_bps"]) > 1

    class Broken(paceline.SendHalf):
        def handle_report(self, now_s, report):
            raise LookupError("in real time")

        def decision(self):
            return 300_000

    broken = paceline.Controller("broken", send=Broken, feedback="transport-wide")
    with pytest.raises(LookupError, match="in real time") as failed:
        paceline.run(TABLE1, broken, world="testbed", set={"duration": "4s"})
    assert "the controller `broken` of flow `video`" in failed.value.__notes__[0]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: paceline.run(TABLE1, seed=-1), r"a seed must be 0 to 2\*\*64 - 1, not -1"),
        (lambda: paceline.run(TABLE1, seed=1.5), "a seed must be a whole number, not 1.5"),
        (lambda: paceline.run(TABLE1, seed=2**64), "a seed must be 0 to"),
        (lambda: paceline.repeat(TABLE1, seeds=0), "the number of seeds must be 1 to 10000, not 0"),
        (lambda: paceline.repeat(TABLE1, seeds=[]), "at least one seed"),
        (lambda: paceline.repeat(TABLE1, seeds=[1, 1]), "seeds must be different"),
        (lambda: paceline.repeat(TABLE1, seeds="12"), "a number or a list of numbers"),
        (lambda: paceline.compare(TABLE1, "gcc-tfb"), r"controllers must be a list, such as \['gcc-tfb'"),
        (lambda: paceline.compare(TABLE1, []), "at least one controller"),
        (lambda: paceline.run(TABLE1, record="everything"), "record must be 'packets', 'series' or 'nothing'"),
        (
            lambda: paceline.run(TABLE1, set={"duration": "1s"}).series["video.taget_bps"],
            "did you mean 'video.target_bps'",
        ),
        (lambda: paceline.run(TABLE1, "gcc-2061"), "did you mean `gcc-2016`"),
        (lambda: paceline.run(TABLE1, case="a"), "."),
        (lambda: paceline.sweep(numbers("path.rtt", ["1 ms"]), jobs=0), "jobs must be 1 to 1024"),
    ],
)
def test_edge_cases_have_a_sentence(call, sentence):
    with pytest.raises(paceline.PacelineError, match=sentence) as raised:
        call()
    assert not str(raised.value).startswith(("'", '"')) and len(str(raised.value)) > 15


def test_numpy_seeds_and_blanks_in_names():
    run = paceline.run(TABLE1, seed=np.int64(3), set=SHORT)
    assert run.seed == 3 and run.series["video.A_r_received"].name == "video.A_r received"
    assert "video.A_r_received" in run.series and "video.nothing" not in run.series
    assert np.isnan(run.series["video.rtt_ms"].mean(1e6))


def test_a_scenario_from_a_dict():
    scenario = paceline.Scenario.from_dict(
        {
            "id": "mine",
            "title": "One call",
            "duration": "5s",
            "path": {"forward": {"capacity": "1Mbps", "queue": {"limit": "200 ms"}}},
            "flow": [{"id": "video", "controller": "gcc-2016"}],
        }
    )
    run = paceline.run(scenario)
    assert (
        run["duration_s"] == 5
        and run.capacity["forward"] == [(0.0, 1e6)]
        and scenario["flow.video.controller"] == "gcc-2016"
    )
    with pytest.raises(paceline.ScenarioError, match="duratio"):
        paceline.Scenario.from_dict({"id": "mine", "duratio": "5s"})


def test_a_recorded_capacity_is_drawn():
    run = paceline.run("real/lte", set={"duration": "10s"})
    assert len(run.capacity["forward"]) > 10 and "capacity of forward (cut at " in run.svg()
    constant = paceline.run(TABLE1, set=SHORT).svg()
    assert "capacity of forward" in constant and "cut at" not in constant


def test_documents_are_those_of_the_command(folder):
    run = folder[1].controllers["scream"].runs[0]
    place = Path(run.folder or next(folder[0].glob("runs/*scream-seed1")))
    with closing(sqlite3.connect(folder[0] / "results.sqlite")) as database:
        (text,) = database.execute("SELECT document FROM run WHERE directory = ?", [place.name]).fetchone()
    assert json.loads(text) == run.document
