"""Suites: every engine gives the same document, which is that of the command."""

import importlib
import json
import pickle
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
    return paceline.suite(own, controllers=CONTROLLERS, threads=2)


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
    made = paceline.suite(own, controllers=CONTROLLERS, engine=engine)
    assert made.document == local.document and made._repr_html_() == local._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"engine": "slurm"}, "no engine 'slurm'; known: threads, dask, ray"),
        ({"controllers": ["googc"]}, "googcc"),
        ({"controllers": ["googcc", "googcc"]}, "named twice"),
        ({"controllers": "googcc"}, 'controllers=["googcc"]'),
        ({"repeats": 0}, "repeats must be 1 to 1000"),
        ({"threads": 0}, "threads must be 1 to 1024"),
    ],
)
def test_bad_arguments_state_what_is_allowed(own, arguments, text):
    with pytest.raises(paceline.ArgumentError, match="(?s)" + text.replace("[", r"\[")):
        paceline.suite(own, **arguments)


def test_unknown_suite_names_the_known_ones():
    with pytest.raises(paceline.ScenarioError, match="l4s"):
        paceline.suite("l4z")
