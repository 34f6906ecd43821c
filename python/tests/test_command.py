"""The `paceline` command of the package."""

import json
import signal
import subprocess
import sys
import time

import paceline

COMMAND = [sys.executable, "-m", "paceline"]


def command(*words):
    return subprocess.run([*COMMAND, *words], check=False, capture_output=True, text=True, timeout=120)


def test_the_command_gives_the_same_results():
    done = command("run", "mmsys16/table1", "--set", "duration=20s", "--json")
    assert done.returncode == 0 and done.stderr == ""
    document = json.loads(done.stdout)
    run = paceline.run("mmsys16/table1", set={"duration": "20s"}, record="nothing")
    assert document["runs"][0]["trace_hash"] == run.trace_hash and list(document) == list(run.all)
    assert run.all["made_with"] == document["made_with"] and run.all["made_with"]["commit"]
    text = command(
        "compare", "mmsys16/table1", "--controllers", "gcc-2016,scream", "--repeats", "2", "--set", "duration=20s"
    )
    found = paceline.compare(
        "mmsys16/table1", ["gcc-2016", "scream"], seeds=2, set={"duration": "20s"}, record="nothing"
    )
    # Values of `--set` are printed as they were typed, so that lines may end elsewhere.
    typed = text.stdout.replace("duration=20s", 'duration="20s"')
    assert typed.split() == found.text.split() and "utilization, %" in text.stdout


def test_exit_codes():
    assert command("--version").stdout.startswith("paceline ")
    wrong = command("run", "mmsys16/tabel1")
    assert wrong.returncode == 2 and "did you mean `mmsys16/table1`" in wrong.stderr and wrong.stdout == ""
    assert command("run", "mmsys16/table1", "--world", "browser").returncode == 3


def test_ctrl_c_ends_the_command():
    words = ["run", "mmsys16/table1", "--set", "duration=160h", "--set", 'path.forward.capacity="1Mbps"']
    child = subprocess.Popen([*COMMAND, *words], stderr=subprocess.PIPE, text=True)
    try:
        time.sleep(2)
        assert child.poll() is None
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=30)
        assert child.returncode == -signal.SIGINT and "interrupted: nothing was kept" in errors
    finally:
        child.kill()


def test_the_entry_point_is_declared():
    from importlib.metadata import entry_points

    (entry,) = entry_points(group="console_scripts", name="paceline")
    assert entry.value == "paceline.command:main" and callable(entry.load())
