// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared libraries as controllers, in simulated runs.

use super::runs::{ROOT, check_port, example, refusal as error, run_for};
use paceline_netsim::world::WorldError;
use std::path::PathBuf;
use std::process::Command;

/// Returns whether there is a C compiler. Fails without one if `PACELINE_REQUIRE` names `cc`.
fn has_compiler() -> bool {
    let found = Command::new("cc").arg("--version").output().is_ok_and(|output| output.status.success());
    let required = std::env::var("PACELINE_REQUIRE").is_ok_and(|all| all.split([',', ' ']).any(|one| one == "cc"));
    assert!(found || !required, "PACELINE_REQUIRE names `cc`, but there is no C compiler");
    if !found {
        eprintln!("skipped: no C compiler");
    }
    found
}

/// Compiles C to a shared library, and returns its name as a controller.
fn compiled(name: &str, source: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (source_path, library) = (folder.join(format!("{name}.c")), folder.join(format!("{name}.so")));
    std::fs::write(&source_path, source).unwrap();
    let mut cc = Command::new("cc");
    cc.args("-std=c11 -Wall -Wextra -Werror -Wno-override-init -O2 -ffp-contract=off -shared -fPIC".split(' '));
    cc.arg(format!("-I{ROOT}/crates/paceline-c/include")).arg("-o").arg(&library).arg(&source_path);
    let output = cc.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    format!("lib:{}", library.display())
}

/// A library whose `decide` runs these statements, with the number of feedback messages in `calls`, and these further members.
fn library(name: &str, decide: &str, members: &str) -> String {
    let source = format!(
        r#"#include "paceline.h"
#include <stddef.h>
#include <stdlib.h>
static void *create(const PacelineLimits *l, const double *p, size_t n) {{ (void)l, (void)p, (void)n; return calloc(1, 8); }}
static int poll_probe(void *s, int64_t now, PacelineProbe *p) {{ (void)s, (void)now, (void)p; abort(); }}
static int on_feedback(void *s, int64_t now, const PacelineFeedback *f) {{ (void)now, (void)f; ++*(int *)s; return 0; }}
static int on_timeout(void *s, int64_t now) {{ (void)s, (void)now; return 0; }}
static int decide(void *s, PacelineDecision *d) {{ int calls = *(int *)s; (void)calls, (void)d; {decide} return 0; }}
const PacelineControllerV1 *paceline_controller_v1(void) {{
  static const PacelineControllerV1 table = {{.version = PACELINE_CONTROLLER_VERSION, .size = sizeof(PacelineControllerV1),
    .create = create, .destroy = free, .on_feedback = on_feedback, .on_timeout = on_timeout, .decide = decide, {members}}};
  (void)poll_probe;
  return &table;
}}
"#
    );
    compiled(name, &source)
}

#[test]
fn port_of_gcc_2016_has_its_trace_hash() {
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    check_port(&format!("lib:{}", example(&format!("{prefix}gcc_2016_library{suffix}")).display()));
}

/// The example in C makes the decisions of that in Python, which another process makes.
#[test]
fn example_in_c_makes_the_decisions_of_the_one_in_python() {
    if !has_compiler() {
        return;
    }
    let source = std::fs::read_to_string(format!("{ROOT}/examples/lib/aimd.c")).unwrap();
    let (library, program) = (compiled("aimd", &source), format!("exec:python3 {ROOT}/examples/exec/aimd.py"));
    let run =
        |controller: &str, start: &str| run_for(controller, "60s", 1, &[&format!("media.start={start}")]).unwrap();
    for start in ["0s", "30s"] {
        assert_eq!(run(&library, start), run(&program, start), "start at {start}");
        assert_ne!(run(&library, start), run("gcc-2016", start), "start at {start}");
    }
}

#[test]
fn failures_name_the_problem_and_the_run() {
    if !has_compiler() {
        return;
    }
    for (name, decide, expected) in [
        ("code", "if (calls > 9) return 3;", "`decide` returned 3, an error, at "),
        ("start", "return 7;", "`decide` returned 7, an error, at the start"),
        ("past", "if (calls > 9) d->timeout_ns = 5;", "timeout_ns is 5 after the timeout of 5; it must be later"),
        ("window", "d->window = 9;", "window must be 0, 1 or 2, not 9"),
        ("ce", "d->ecn = PACELINE_ECN_CE;", "only routers send CE"),
        ("queue", "d->queue_max_ns = -1;", "queue_max_ns must be at least 0"),
        (
            "timeout",
            "if (calls) d->timeout_ns = 9000000000;",
            "timeout_ns is 9000000000 after the timeout of 9000000000",
        ),
    ] {
        let controller = library(name, decide, "");
        match run_for(&controller, "20s", 7, &[]) {
            Err(error @ WorldError::ControllerFailed { seed: 7, .. }) => {
                let text = error.to_string();
                assert!(text.contains(expected) && text.contains("of mmsys16/table1, seed 7"), "{name}: {text}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    assert!(run_for(&library("fine", "", ""), "20s", 7, &[]).is_ok());
}

/// A timer each 10 ms from the time 0 on, which starts with the first feedback: its first times have passed. After 4 s of
/// these times the target falls.
#[test]
fn timer_may_be_late() {
    if !has_compiler() {
        return;
    }
    let source = |last: &str| {
        format!(
            r#"#include "paceline.h"
#include <stdlib.h>
typedef struct {{ int64_t at, runs; }} State;
static void *create(const PacelineLimits *l, const double *p, size_t n) {{ (void)l, (void)p, (void)n; return calloc(1, sizeof(State)); }}
static int on_feedback(void *s, int64_t now, const PacelineFeedback *f) {{ (void)now, (void)f; ((State *)s)->runs = 1; return 0; }}
static int on_timeout(void *s, int64_t now) {{ State *t = s; t->at += 10000000; return t->at - now > 10000000; }}
static int decide(void *s, PacelineDecision *d) {{
  State *t = s;
  if (t->runs && t->at <= {last}) d->timeout_ns = t->at;
  d->target_bps = t->at < 4000000000 ? 300000 : 100000;
  return 0; }}
const PacelineControllerV1 *paceline_controller_v1(void) {{
  static const PacelineControllerV1 table = {{.version = PACELINE_CONTROLLER_VERSION, .size = sizeof(PacelineControllerV1), .create = create,
    .destroy = free, .on_feedback = on_feedback, .on_timeout = on_timeout, .decide = decide}};
  return &table; }}
"#
        )
    };
    let [all, some] = [("late", "9000000000"), ("late_stops", "3000000000")]
        .map(|(name, last)| run_for(&compiled(name, &source(last)), "6s", 7, &[]).unwrap());
    assert_ne!(all, some, "the timer reaches 4 s");
}

#[test]
fn parameters_reach_the_library() {
    if !has_compiler() {
        return;
    }
    let source = r#"#include "paceline.h"
#include <stdlib.h>
static void *create(const PacelineLimits *l, const double *p, size_t n) {
  (void)l; double *rate = malloc(sizeof *rate); if (rate && n == 2) *rate = p[1]; return rate; }
static int decide(void *s, PacelineDecision *d) { d->target_bps = *(double *)s; return 0; }
const PacelineControllerV1 *paceline_controller_v1(void) {
  static const PacelineParameter parameters[] = {
    {.name = "unused", .max = 1}, {.name = "bps", .unit = "bit/s", .default_value = 2e5, .min = 1e5, .max = 9e5}};
  static const PacelineControllerV1 table = {.version = PACELINE_CONTROLLER_VERSION, .size = sizeof(PacelineControllerV1), .parameters = parameters,
    .parameter_count = 2, .create = create, .destroy = free, .decide = decide, .feedback = PACELINE_FEEDBACK_NONE};
  return &table; }
"#;
    let controller = compiled("parameters", source);
    let run = |bps: &str| run_for(&controller, "20s", 1, &[&format!("media.config.bps={bps}")]).unwrap();
    assert_eq!(run_for(&controller, "20s", 1, &[]).unwrap(), run("2e5"));
    assert_ne!(run("2e5"), run("8e5"));
}

/// An older header has no `poll_probe`, `stream_rate` and `read_signals`; a newer one has more functions, and more members of a decision.
#[test]
fn tables_of_other_sizes_make_the_same_decisions() {
    if !has_compiler() {
        return;
    }
    let run = |name: &str, decide: &str, members: &str| {
        run_for(&library(name, &format!("d->target_bps = 300000 + 1000 * calls; {decide}"), members), "20s", 7, &[])
            .unwrap()
    };
    let same = run("same", "", "");
    let older = ".poll_probe = poll_probe, .size = offsetof(PacelineControllerV1, poll_probe)";
    assert_eq!(run("older", "if (d->size != sizeof *d) return 1;", older), same);
    let newer = ".size = sizeof(PacelineControllerV1) + 16";
    assert_eq!(run("newer", "((uint64_t *)(d + 1))[3] = 5;", newer), same);
}

#[test]
fn files_that_are_not_controllers_are_refused() {
    assert!(error("lib:").contains("needs the path of a shared library"));
    assert!(error("lib:./no/such.so").contains("/no/such.so"));
    if !has_compiler() {
        return;
    }
    assert!(error(&compiled("empty", "int nothing;\n")).contains("it has no function `paceline_controller_v1`"));
    // In C a later member of an initialiser replaces an earlier one.
    let changed = |name: &str, members: &str| error(&library(name, "", members));
    assert!(changed("version", ".version = 1").contains("has version 1 and "));
    assert!(changed("size", ".size = 8").contains("and 8 bytes; this program needs version 3"));
    assert!(
        changed("cut", ".size = offsetof(PacelineControllerV1, read_signals) - 1")
            .contains("this program needs version 3")
    );
    assert!(changed("no_decide", ".decide = 0").contains("the function `decide` is null"));
    assert!(changed("format", ".feedback = 3").contains("feedback must be 0, 1 or 2, not 3"));
    assert!(changed("half", ".receive_of = \"gcc\"").contains("no controller `gcc`"));
    assert!(changed("signals", ".signal_count = 1").contains("the address of its signals is invalid"));
}
