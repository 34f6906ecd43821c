"""Controllers outside the program: `exec:COMMAND`. They need Linux or macOS."""

import sys

import pytest

import paceline

TABLE1 = "mmsys16/table1"
SHORT = {"duration": "5s"}
PROGRAM = """
import sys
print('{"protocol":1,"parameters":[{"name":"bps","default":400000,"min":1,"max":900000}]}', flush=True)
for line in sys.stdin:
    print('{"target_bps":400000}', flush=True)
"""
# After the first line of input.
INVALID = """
print('{"protocol":1}', flush=True)
input()
print("nonsense", flush=True)
input()
"""


@pytest.fixture
def program(tmp_path):
    def made(text):
        path = tmp_path / "program.py"
        path.write_text(text)
        return f"exec:{sys.executable} {path}"

    return made


def test_program_runs_and_is_compared(program):
    name = program(PROGRAM)
    run = paceline.run(TABLE1, name, set=SHORT)
    assert run.controllers == [name]
    compared = paceline.compare(TABLE1, ["fixed", name], seeds=[1], set=SHORT)
    assert list(compared.controllers) == ["fixed", name]
    assert compared.controllers[name].runs[0].trace_hash == run.trace_hash
    assert compared.controllers["fixed"].runs[0].trace_hash != run.trace_hash


def test_failures_are_exceptions(program):
    with pytest.raises(paceline.ArgumentError, match="`exec:./none` did not start"):
        paceline.run(TABLE1, "exec:./none", set=SHORT)
    with pytest.raises(paceline.ArgumentError, match="`lib:./none.so` does not load"):
        paceline.run(TABLE1, "lib:./none.so", set=SHORT)
    with pytest.raises(paceline.RunError, match="answered invalid data: the answer is `nonsense`"):
        paceline.run(TABLE1, program(INVALID), set=SHORT)
    # The next run starts afresh.
    assert paceline.run(TABLE1, "fixed", set=SHORT).trace_hash


def test_texts_of_scenarios_start_no_program(program, tmp_path):
    # A scenario of others may be a text.
    name = program(f"open({str(tmp_path / 'started')!r}, 'w').close()\n{PROGRAM}")
    text = (
        'id = "my/external"\ntitle = "External"\nduration = "2s"\n[path.forward]\ncapacity = "1Mbps"\n'
        f'[[flow]]\nid = "video"\ncontroller = "{name}"\n'
    )
    with pytest.raises(paceline.ScenarioError, match="no controller `exec:"):
        paceline.run(paceline.Scenario.from_toml(text))
    assert not (tmp_path / "started").exists()
    # The call names it.
    assert paceline.run(paceline.Scenario.from_toml(text.replace(name, "fixed")), name).controllers == [name]
    assert (tmp_path / "started").exists()
