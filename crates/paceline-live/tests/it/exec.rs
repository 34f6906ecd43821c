// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs as controllers, in simulated runs.

use super::runs::{ROOT, check_port, example, refusal as error, run_for};
use paceline_live::external::{LastLines, entry};
use paceline_netsim::world::WorldError;
use paceline_units::Time;
use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

fn hash(controller: &str) -> u64 {
    run_for(controller, "60s", 1, &[]).unwrap()
}

/// A shell script as a controller.
fn script(name: &str, text: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    format!("exec:sh {}", path.display())
}

const HELLO: &str = r#"echo '{"protocol":1,"answer_timeout_ms":500}'"#;
const ANSWER: &str = r#"echo '{"target_bps":300000}'"#;

/// A controller that answers the start and then does this.
fn failing(name: &str, then: &str) -> String {
    script(name, &format!("{HELLO}\nread l\n{ANSWER}\nread l\n{then}\n"))
}

/// What a run ends with under a script that answers the start and then does this.
fn failure(name: &str, then: &str) -> String {
    match run_for(&failing(name, then), "20s", 7, &[]) {
        Err(error @ WorldError::ControllerFailed { seed: 7, .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

/// Starts three programs in sessions of their own, one of which starts another and ends, and writes their numbers into the file.
fn strays(file: &std::path::Path) -> String {
    let file = file.display();
    format!(
        "rm -f {file}\nsetsid sh -c 'echo $$ >> {file}; exec sleep 8641' &\nsetsid sh -c 'echo $$ >> {file}; exec sleep 8642' &\n\
         setsid sh -c 'setsid sh -c \"echo \\$\\$ >> {file}; exec sleep 8643\" & exit' &\n\
         until [ $(wc -l < {file} 2>/dev/null || echo 0) = 3 ]; do sleep 0.01; done\n\
         while read p; do kill -0 $p || exit 9; done < {file}"
    )
}

/// Asserts that none of the programs of [`strays`] remains.
fn assert_three_ended(file: &std::path::Path) {
    let pids = std::fs::read_to_string(file).unwrap();
    assert_eq!(pids.lines().count(), 3);
    pids.lines().for_each(assert_ended);
}

/// At the end of a run, at an error, and at the end of the program itself.
#[test]
#[cfg(target_os = "linux")]
fn what_a_program_has_started_ends_with_it_in_every_session() {
    for (name, then, fails) in [
        ("strays-end", format!("{ANSWER}\nwhile read l; do {ANSWER}; done"), None),
        ("strays-hang", "sleep 8644".to_owned(), Some("gave no answer within 0.5 s")),
        ("strays-exit", "exit 3".to_owned(), Some("exit status: 3")),
        ("strays-killed", "kill -9 $$".to_owned(), Some("signal: 9")),
    ] {
        let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let text = format!("{HELLO}\nread l || exit\n{}\n{ANSWER}\nread l\n{then}\n", strays(&file));
        let ended = run_for(&script(&format!("{name}.sh"), &text), "20s", 7, &[]);
        match (ended, fails) {
            (Ok(_), None) => {}
            (Err(error), Some(cause)) => assert!(error.to_string().contains(cause), "{name}: {error}"),
            (other, _) => panic!("{name}: {other:?}"),
        }
        assert_three_ended(&file);
    }
}

#[test]
fn timeouts_that_hardly_advance_end_with_a_message() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("crawls.py");
    let text = "import json, sys\nprint('{\"protocol\":1}', flush=True)\nfor line in sys.stdin:\n    now = json.loads(line).get('now_ns', \
                0)\n    print(json.dumps({'target_bps': 300000, 'timeout_ns': now + 1}), flush=True)\n";
    std::fs::write(&path, text).unwrap();
    let error = run_for(&format!("exec:python3 {}", path.display()), "20s", 1, &[]).unwrap_err().to_string();
    assert!(error.contains("more than 1000 timeouts within 10 ms"), "{error}");
}

#[test]
fn port_of_gcc_2016_has_its_trace_hash() {
    let name = |example: PathBuf| format!("exec:{}", example.display());
    check_port(&name(example("gcc_2016_port")));
    assert_ne!(hash(&name(example("echo_controller"))), hash("gcc-2016"));
}

#[test]
fn equal_answers_give_equal_runs() {
    let python = format!("exec:python3 {ROOT}/examples/exec/aimd.py");
    let first = hash(&python);
    assert_eq!(first, hash(&python));
    assert_ne!(first, run_for(&python, "60s", 2, &[]).unwrap());
}

/// The target of an example after each of two feedback messages, 60 s and 61 s after the start of the run. Their packets arrived.
fn targets_of_late_flow(program: &str, arguments: &[String]) -> Vec<String> {
    let mut command = std::process::Command::new(program);
    let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let setup = r#"{"start_bps":200000,"min_bps":50000,"max_bps":900000,"packet_size_bytes":1200}"#;
    let mut input = format!("{{\"type\":\"start\",\"setup\":{setup},\"parameters\":{{}}}}\n");
    for second in [60, 61] {
        let at = format!("{second}000000000");
        let event = format!(r#"{{"at_ns":{at},"type":"feedback","packets":[{{"arrival_ns":5}}]}}"#);
        input += &format!("{{\"type\":\"events\",\"events\":[{event}],\"now_ns\":{at}}}\n");
    }
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let target = |line: &str| {
        let (_, rest) = line.split_once("target_bps")?;
        Some(rest.trim_start_matches(['"', ':', ' ']).chars().take_while(char::is_ascii_digit).collect())
    };
    output.lines().filter_map(target).collect()
}

/// Returns whether there is this program; prints a note if not.
fn has(program: &str) -> bool {
    let found = std::process::Command::new(program).arg("version").output().is_ok();
    if !found {
        eprintln!("skipped: no {program}");
    }
    found
}

/// A flow that starts late does not increase for the time before its start.
#[test]
fn examples_measure_the_time_from_the_first_feedback() {
    let examples = format!("{ROOT}/examples/exec");
    for (program, arguments) in [
        ("python3", vec![format!("{examples}/aimd.py")]),
        ("node", vec![format!("{examples}/aimd.js")]),
        ("go", vec!["run".to_owned(), format!("{examples}/aimd.go")]),
    ] {
        if program == "python3" || has(program) {
            // The start, the first feedback, and 5 % more after a second.
            assert_eq!(targets_of_late_flow(program, &arguments), ["200000", "200000", "210000"], "{program}");
        }
    }
}

/// Where there is Go or Node, the examples in these languages make the decisions of that in Python.
#[test]
fn examples_in_other_languages_make_the_same_decisions() {
    let examples = format!("{ROOT}/examples/exec");
    let python = hash(&format!("exec:python3 {examples}/aimd.py"));
    if has("node") {
        assert_eq!(hash(&format!("exec:node {examples}/aimd.js")), python);
    }
    if has("go") {
        let built = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("aimd-go");
        let mut go = std::process::Command::new("go");
        let status = go.args(["build", "-o"]).arg(&built).arg(format!("{examples}/aimd.go")).status().unwrap();
        assert!(status.success());
        assert_eq!(hash(&format!("exec:{}", built.display())), python);
    }
}

#[test]
fn failures_name_the_problem_and_the_run() {
    let silent = failure("silent.sh", "echo my words >&2\nsleep 60");
    assert!(silent.contains("gave no answer within 0.5 s"), "{silent}");
    assert!(silent.contains("of mmsys16/table1, seed 7") && silent.contains("\n  | my words"), "{silent}");
    let gone = failure("gone.sh", "exit 3");
    assert!(gone.contains("ended (exit status: 3) before the end of its input"), "{gone}");
    for (name, answer, expected) in [
        ("no_json.sh", "hello", "`hello`: expected value"),
        ("no_target.sh", "{}", "missing field `target_bps`"),
        ("float.sh", r#"{"target_bps":1.5}"#, "floating point `1.5`, expected u64"),
        ("negative.sh", r#"{"target_bps":-1}"#, "expected u64"),
        ("typo.sh", r#"{"target_bps":1,"pacing":2}"#, "unknown field `pacing`"),
        ("signal.sh", r#"{"target_bps":1,"signals":{"x":1}}"#, "the signal `x` is not in the hello"),
        (
            "past.sh",
            r#"{"target_bps":1,"timeout_ns":-5}'; read l; echo '{"target_bps":1,"timeout_ns":-5}"#,
            "timeout_ns is -5 after the timeout of -5; it must be later",
        ),
        ("ce.sh", r#"{"target_bps":1,"ecn":"ce"}"#, "only routers send ce"),
    ] {
        let failed = failure(name, &format!("echo '{answer}'"));
        assert!(failed.contains("answered invalid data") && failed.contains(expected), "{failed}");
    }
}

#[test]
fn failure_has_its_flow_controller_time_and_last_lines() {
    let controller = failing("typed.sh", "echo one >&2; echo two >&2; exit 3");
    let Err(WorldError::ControllerFailed { failure, plan, case, .. }) = run_for(&controller, "20s", 7, &[]) else {
        panic!("the program ended");
    };
    assert_eq!((&*failure.flow, &*failure.controller, &*plan, &*case), ("video", &*controller, "mmsys16/table1", ""));
    // The first line after the start is due with the first report.
    assert!(failure.at > Time::from_millis(50) && failure.at < Time::from_secs(5), "{:?}", failure.at);
    let lines = failure.source().and_then(|source| source.downcast_ref::<LastLines>());
    assert_eq!(lines, Some(&LastLines(vec!["one".to_owned(), "two".to_owned()])));
}

#[test]
fn parallel_runs_report_their_own_failures() {
    let (first, second) = (failing("first.sh", "exit 3"), failing("second.sh", "echo bad"));
    let run = |controller: &str| {
        run_for(controller, "20s", 7, &[]).map_err(|error| error.to_string().replace(controller, ""))
    };
    let (alone, fixed) = ([run(&first), run(&second)], run("fixed"));
    std::thread::scope(|scope| {
        let names = [&first, &second, "fixed", &first];
        let runs = names.map(|name| scope.spawn(move || run(name)));
        let [a, b, c, d] = runs.map(|run| run.join().unwrap());
        assert_eq!(([a.clone(), b], c), (alone, fixed));
        assert_eq!(a, d);
        assert!(a.unwrap_err().contains("ended (exit status: 3)"));
    });
}

/// A second line would be read as the answer to the next input.
#[test]
fn line_that_was_not_asked_for_ends_the_run() {
    let failed = failure("twice.sh", r#"printf '{"target_bps":1}\n{"target_bps":2}\n'; sleep 60"#);
    assert!(failed.contains("wrote more than one line in answer to a line"), "{failed}");
}

/// A program that goes on writing is ended like a silent one.
#[test]
fn endless_output_is_not_waited_for() {
    for output in ["yes '{}'", "yes | tr -d '\\n'"] {
        let name = script("endless.sh", &format!("{HELLO}\nexec {output}"));
        assert!(entry(&name).is_ok(), "its first line is valid");
    }
    let failed = failure("no_newline.sh", "while true; do printf x; sleep 0.01; done");
    assert!(failed.contains("gave no answer within 0.5 s"), "{failed}");
}

#[test]
fn no_process_remains_after_a_run() {
    let pids = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("helpers");
    let _ = std::fs::remove_file(&pids);
    let answers = format!("while read l; do {ANSWER}; done");
    let started = format!("{HELLO}\nsleep 60 > /dev/null 2>&1 & echo $! >> {}\n{answers}", pids.display());
    run_for(&script("helper.sh", &started), "1s", 1, &[]).unwrap();
    let pids = std::fs::read_to_string(&pids).unwrap();
    assert_eq!(pids.split_whitespace().count(), 2, "one for the hello, one for the run");
    pids.split_whitespace().for_each(assert_ended);
}

#[test]
fn no_process_remains_after_a_failure() {
    let pids = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pids");
    failure("remains.sh", &format!("sleep 60 & echo $$ $! > {}\nsleep 60", pids.display()));
    let pids = std::fs::read_to_string(&pids).unwrap();
    assert_eq!(pids.split_whitespace().count(), 2);
    pids.split_whitespace().for_each(assert_ended);
}

/// A child of a program belongs to another parent for a moment, which collects it.
fn assert_ended(pid: &str) {
    let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).ok();
    let running = (0..100).all(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        state().is_some_and(|stat| !stat.contains(") Z "))
    });
    assert!(!running, "{pid} still runs");
}

#[test]
fn programs_that_do_not_introduce_themselves_are_refused() {
    assert!(error("exec:/no/such/program").contains("did not start: `/no/such/program`: No such file"));
    assert!(error("exec:").contains("needs a command"));
    assert!(error("exec:false").contains("ended (exit status: 1)"));
    assert!(error("exec:echo hi").contains("its first line, the hello is `hi`: expected value"));
    let hello = |name: &str, text: &str| error(&script(name, &format!("echo '{text}'")));
    assert!(hello("h1.sh", r#"{"protocol":2}"#).contains("the protocol of the hello is 2"));
    assert!(hello("h2.sh", r#"{"protocol":1,"receive_of":"gcc"}"#).contains("no controller `gcc`"));
    let twice = r#"{"protocol":1,"signals":[{"name":"a"},{"name":"a"}]}"#;
    assert!(hello("h3.sh", twice).contains("the signal `a` is declared twice"));
}
