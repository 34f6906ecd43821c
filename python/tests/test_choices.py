"""Choices: the same ranking as `compare`, and the page of the command."""

import pickle

import pytest

import paceline


def test_one_path_is_ranked_as_by_compare():
    controllers, short = ["googcc", "nada"], {"duration": "20 s"}
    choice = paceline.choose("cellular/lte-drive", controllers=controllers, seeds=3, set=short)
    compared = paceline.compare("cellular/lte-drive", controllers, seeds=3, set=short)
    placed = [entry for entry in choice.ranking if entry["place"]]
    assert [(e["controller"], e["score"]) for e in placed] == [(e["controller"], e["score"]) for e in compared.ranking]
    assert choice.ranking[-1]["controller"] == "causal"
    assert choice.verdict.startswith(compared.verdict.split(";")[0])


def test_several_paths(tmp_path):
    trace = tmp_path / "a.csv"
    trace.write_text("time_s,rate_mbps\n0,2\n5,0\n6,2\n20,2\n")
    choice = paceline.choose(
        "dsl", trace=trace, duration="20 s", controllers=["nada"], seeds=2, progress=lambda *_: None
    )
    assert [(path["name"], path["gaps"]) for path in choice["paths"]] == [("a.csv", 1), ("dsl", 0)]
    frame = choice.to_pandas()
    assert list(frame.path) == ["mean", "mean", "a.csv", "a.csv", "dsl", "dsl"] and set(frame.controller) == {
        "nada",
        "causal",
    }
    assert set(choice.rows["path"]) == {"a.csv", "dsl"}
    assert choice["command"] == (
        f"paceline.choose('dsl', trace=['{trace}'], duration='20 s', controllers=['nada'], seeds=[1, 2])"
    )
    choice.write_page(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert pickle.loads(pickle.dumps(choice)).ranking == choice.ranking
    assert choice.plot() is not None


def test_wrong_input():
    with pytest.raises(paceline.ArgumentError, match="name a path"):
        paceline.choose()
    with pytest.raises(paceline.ScenarioError, match="did you mean `adsl"):
        paceline.choose("adls")
    with pytest.raises(paceline.ScenarioError, match=r"cannot read none\.up"):
        paceline.choose(trace="none.up")
