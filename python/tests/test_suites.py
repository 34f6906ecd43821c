"""Suites: every engine gives the same document, which is that of the command."""

import importlib
import json
import pickle
import sqlite3
import subprocess
import sys

import pytest

import paceline

SCENARIO = """id = "own/rate"
title = "A constant rate"
duration = "5 s"

[path.forward]
capacity = "1 Mbps"
queue = { limit = "100 ms" }

[[flow]]
id = "call"
controller = "googcc"
encoder = { source = "ideal", max = "3 Mbps" }

[[assert]]
id = "no-queue"
metric = "queue_p95_ms"
bounds = [0, 50]
why = "half of the queue's limit"

[[assert]]
id = "use"
metric = "utilization"
bounds = [0.95, 1]
why = "only a sender that knows the path reaches this in 5 s"
"""
MANIFEST = 'id = "own"\ntitle = "Own"\nfamily = "wired"\nrepeats = 2\nscenarios = ["rate"]\n'
CONTROLLERS = ["googcc", "faulty-ignores-feedback", "ideal"]


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite")
    (folder / "own.suite.toml").write_text(MANIFEST)
    (folder / "rate.toml").write_text(SCENARIO)
    return str(folder / "own.suite.toml")


@pytest.fixture(scope="module")
def local(own):
    return paceline.suite(own, controllers=CONTROLLERS, jobs=2)


def test_document_is_that_of_the_command(own, local):
    command = [sys.executable, "-m", "paceline", "suite", own, "--controllers", ",".join(CONTROLLERS), "--json"]
    done = subprocess.run(command, capture_output=True, check=True)
    assert json.loads(done.stdout) == local.document


def test_a_bound_separates_the_oracle_from_a_faulty_controller(local):
    assert local.controllers == CONTROLLERS
    rows = {row["controller"]: row["results"][0]["bounds"] for row in local["suites"][0]["rows"]}
    assert [bound["pass"] for bound in rows["ideal"]] == [True, True]
    # It grows by 8 % per second, so that it is below the capacity after 5 s.
    assert [bound["pass"] for bound in rows["faulty-ignores-feedback"]] == [True, False]
    html = local._repr_html_()
    assert "Own" in html and "ideal" in html


def test_result_can_be_pickled(local):
    again = pickle.loads(pickle.dumps(local))
    assert again.document == local.document and again._repr_html_() == local._repr_html_()


@pytest.mark.parametrize(("engine", "package"), [("dask", "distributed"), ("ray", "ray")])
def test_engine_gives_the_same_document(own, local, engine, package):
    importlib.import_module(package) if importlib.util.find_spec(package) else pytest.skip(f"{package} is missing")
    # One scenario under three controllers on two seeds, the highest number: a job of a seed each.
    sizes = []
    made = paceline.suite(own, controllers=CONTROLLERS, engine=engine, batch=1, progress=lambda *done: sizes.append(done))
    assert made.document == local.document and made._repr_html_() == local._repr_html_()
    assert sizes == [(done, 6) for done in range(1, 7)]
    assert table(made.rows) == table(local.rows)


def table(rows, *without):
    return [tuple(str(value) for value in row) for row in zip(*(rows[c] for c in rows if c not in without), strict=True)]


def test_rows_have_the_values_of_each_seed(local):
    rows = local.rows.to_pandas()
    assert list(rows.columns[:3]) == ["suite", "controller", "scenario"]
    measured = rows[(rows.controller == "googcc") & (rows.metric == "queue_p95_ms")]
    assert list(measured.seed) == [1, 2] and measured.value.nunique() == 2
    bound = local["suites"][0]["rows"][0]["results"][0]["bounds"][0]
    assert measured.value.mean() == pytest.approx(bound["measured"])
    # The same value in the rows of a run.
    run = paceline.run(paceline.Scenario.from_toml(SCENARIO), "googcc", seed=2).rows.to_pandas()
    whole = run[(run.metric == "queue_p95_ms") & (run.flow == "")]
    assert list(whole.value) == [measured.value.iloc[1]] and set(run.scenario_hash) == set(measured.scenario_hash)


def test_frames_and_plots(local):
    frame = local.to_pandas()
    assert list(frame.controller.unique()) == CONTROLLERS and list(frame["id"].unique()) == ["no-queue", "use"]
    assert (frame.high[frame.id == "no-queue"] == 50).all() and len(frame) == 6
    assert local.to_polars()["measured"].to_list() == list(frame.measured)
    axes = local.plot().axes
    assert axes[0].get_title() == "own: Own" and [t.get_text() for t in axes[0].get_xticklabels()] == CONTROLLERS
    scores = [row["results"][0]["scores"] for row in local["suites"][0]["rows"]]
    assert axes[0].images[0].get_array()[0].tolist() == pytest.approx([sum(of) / len(of) for of in scores])
    assert str(local) == local.text and "own  Own" in local.text


def test_ranking_is_of_the_possible():
    found = paceline.suite("5g", controllers=["googcc", "scream-v2"], seeds=1)
    assert [row["place"] for row in found.ranking] == [1, 2]
    assert {row["controller"] for row in found.ranking} == {"googcc", "scream-v2"}
    first, second = found.ranking
    assert 100 > first["points"] > second["points"] > 0 and first["interval"] > 0 and first["tests"] == 4
    assert second["difference"]["points"] == pytest.approx(second["points"] - first["points"])


def test_folder_has_the_same_rows_and_is_continued(own, local, tmp_path):
    out = tmp_path / "out"
    first = paceline.suite(own, controllers=["googcc"], seeds=1, out=out)
    assert first["suites"][0]["repeats"] == 1 and (out / "suites.html").is_file()
    with pytest.raises(paceline.ArgumentError, match="holds 1 finished runs; resume=True uses them"):
        paceline.suite(own, controllers=CONTROLLERS, out=out)
    done = []
    again = paceline.suite(own, controllers=CONTROLLERS, out=out, resume=True, progress=lambda *now: done.append(now))
    assert again.document == local.document and json.loads((out / "suites.json").read_text()) == local.document
    # Six runs of 5 s, of which one was stored.
    assert done[-1] == (25, 25)
    loaded = paceline.load(out)
    assert loaded.suites.document == local.document and len(loaded.to_pandas()) == 6
    stored = loaded.rows
    own_columns = ("suite", "controller")
    assert sorted(table(stored)) == sorted(table(again.rows, *own_columns))
    with sqlite3.connect(out / "results.sqlite") as database:
        (count, total) = database.execute("SELECT count(*), sum(value) FROM results").fetchone()
    # A run without TCP and cross traffic has no value of `others_keep`.
    known = [value for value in stored["value"] if value == value]
    assert (count, len(known), total) == (len(stored["value"]), 36, pytest.approx(sum(known)))


def test_seeds_may_be_a_list(own, local):
    made = paceline.suite(own, controllers=["googcc"], seeds=[2, 7])
    assert made["suites"][0]["seeds"] == [2, 7] and "seeds" not in local["suites"][0]
    seeds = made.rows["seed"]
    assert set(seeds) == {2, 7}
    of_two = lambda rows: rows["value"][(rows["seed"] == 2) & (rows["controller"] == "googcc")].tolist()  # noqa: E731
    known = lambda rows: [value for value in of_two(rows) if value == value]  # noqa: E731
    assert known(made.rows) == known(local.rows) and len(known(made.rows)) == 6


class Steady(paceline.SendHalf):
    rate_bps = 600e3

    def __init__(self, setup):
        pass

    def decision(self):
        return self.rate_bps


def test_controllers_may_be_objects(own, tmp_path):
    steady = paceline.Controller("steady", send=Steady)
    arguments = {"controllers": [steady, "googcc"], "seeds": 1, "out": tmp_path}
    made = paceline.suite(own, **arguments)
    assert made.controllers == ["steady", "googcc"]
    assert 0.5 < made["suites"][0]["rows"][0]["results"][0]["utilization"] < 0.7
    assert paceline.suite(own, **arguments, resume=True).document == made.document
    other = paceline.Controller("steady", send=type("Other", (Steady,), {"rate_bps": 300e3}))
    with pytest.raises(paceline.ArgumentError, match="runs of other code of the controller `steady`"):
        paceline.suite(own, **{**arguments, "controllers": [other]}, resume=True)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"engine": "slurm"}, "no engine 'slurm'; known: threads, dask, ray"),
        ({"controllers": ["googc"]}, "googcc"),
        ({"controllers": ["googcc", "googcc"]}, "named twice"),
        ({"controllers": "googcc"}, 'controllers=["googcc"]'),
        ({"repeats": 0}, "the number of seeds must be 1 to 10000"),
        ({"seeds": 2, "repeats": 2}, "give one of them"),
        ({"seeds": [1, 1]}, "seeds must be different"),
        ({"jobs": 0}, "jobs must be 1 to 1024"),
    ],
)
def test_bad_arguments_state_what_is_allowed(own, arguments, text):
    with pytest.raises(paceline.ArgumentError, match="(?s)" + text.replace("[", r"\[")):
        paceline.suite(own, **arguments)


def test_unknown_suite_names_the_known_ones():
    with pytest.raises(paceline.ScenarioError, match="l4s"):
        paceline.suite("l4z")
