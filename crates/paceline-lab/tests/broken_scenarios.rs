//! What bad input gets: the line, the offending text, what is wrong, and what to write instead.

use paceline::Registry;
use paceline_lab::plan::{Plan, QueuePlan};
use paceline_lab::scenario::{Catalogue, Changes, Origin, Problem, Setting, load};
use paceline_link::queue::DropTailLimit;
use paceline_units::{DataSize, Rate, Time, TimeDelta};
use std::fs;
use std::path::{Path, PathBuf};

/// A scenario with nothing wrong; every case below breaks one of its lines.
const GOOD: &str = r#"id = "test/good"
title = "Good"
duration = "60s"

[path]
rtt = "50ms"

[path.forward]
capacity = "1Mbps"
queue = { discipline = "drop-tail", limit = "300ms" }
delay = "10ms"
loss = "1 %"

[[flow]]
id = "video"
controller = "gcc-2016"
start = "0s"
stop = "60s"
encoder = { max = "2Mbps" }

[flow.config]
k_u = 0.01

[[assert]]
id = "used"
metric = "utilization"
bounds = [0.2, 1.0]
window = ["10s", "60s"]
"#;

/// A mistake: line `line` of [`GOOD`] written as `text` (which may be several lines).
struct Case {
    name: &'static str,
    line: usize,
    text: &'static str,
    /// How far below `line` the complaint points; none: it has no place.
    below: Option<isize>,
    /// What is underlined.
    offending: &'static str,
    /// Part of what is said.
    message: &'static str,
    /// Part of what is suggested.
    hint: &'static str,
}

const fn case(
    name: &'static str,
    line: usize,
    text: &'static str,
    offending: &'static str,
    message: &'static str,
    hint: &'static str,
) -> Case {
    Case { name, line, text, below: Some(0), offending, message, hint }
}

impl Case {
    /// The complaint is about the line `lines` below the first that was changed.
    const fn below(mut self, lines: isize) -> Self {
        self.below = Some(lines);
        self
    }

    /// The complaint is about what is not there.
    const fn nowhere(mut self) -> Self {
        self.below = None;
        self
    }
}

const SYNTAX: &[Case] = &[
    case("no value", 3, "duration =", "\n", "value", "TOML"),
    case("text without its closing quote", 2, "title = \"Good", "\n", "string", "TOML"),
    case("a key twice", 3, "duration = \"60s\"\nduration = \"50s\"", "duration", "duplicate key", "once").below(1),
    case("unknown key at the top", 2, "title = \"Good\"\nrepeat = 3", "repeat", "unknown", "`repeats`").below(1),
    case("unknown key in the path", 6, "rrt = \"50ms\"", "rrt", "unknown", "`rtt`"),
    case("unknown key in a way", 9, "capcity = \"1Mbps\"", "capcity", "unknown", "`capacity`"),
    case("unknown key in a queue", 10, "queue = { limits = \"300ms\" }", "limits", "unknown", "`limit`"),
    case("unknown key in a flow", 17, "begin = \"0s\"", "begin", "unknown", "`start`"),
    case("unknown key in a source", 19, "encoder = { maximum = \"2Mbps\" }", "maximum", "unknown", "`max`"),
    case("unknown key in an assert", 27, "bound = [0.2, 1.0]", "bound", "unknown", "`bounds`"),
    case("no id", 1, "", "", "missing field `id`", "add `id = ").nowhere(),
    case("no duration", 3, "", "", "missing field `duration`", "add `duration = ").nowhere(),
    case("a flow without a controller", 16, "", "\"video\"", "needs a `controller`", "list controllers").below(-1),
    case("a queue without a limit", 10, "queue = {}", "{}", "missing field `limit`", "300 ms"),
];

const VALUES: &[Case] = &[
    case("wrong unit of a time", 3, "duration = \"60 sec\"", "\"60 sec\"", "`60 sec` is not a time", "`s`"),
    case("a rate where a time belongs", 3, "duration = \"60 Mbps\"", "\"60 Mbps\"", "is not a time", "`ms`"),
    case("a number for a time", 3, "duration = 60", "60", "a time with its unit", "\"60 s\""),
    case("a number for a rate", 9, "capacity = 1000000", "1000000", "a rate", "\"1000000 bps\""),
    case("a number for a fraction", 12, "loss = 0.01", "0.01", "a fraction", "\"1 %\""),
    case("wrong case of a unit", 9, "capacity = \"1 mbps\"", "\"1 mbps\"", "`1 mbps` is not a rate", "`Mbps`"),
    case("bytes for bits", 9, "capacity = \"1 MB/s\"", "\"1 MB/s\"", "`1 MB/s` is not a rate", "`Mbps`"),
    case("negative rate", 9, "capacity = \"-1Mbps\"", "\"-1Mbps\"", "`-1Mbps` is not a rate from 0", ""),
    case(
        "negative rate in a schedule",
        9,
        "capacity = [[\"0s\", \"1Mbps\"], [\"5s\", \"-2Mbps\"]]",
        "\"-2Mbps\"",
        "`-2Mbps` is not a rate from 0",
        "",
    ),
    case("capacity of zero", 9, "capacity = \"0 bps\"", "\"0 bps\"", "nothing", "unlimited"),
    case("negative delay", 11, "delay = \"-10ms\"", "\"-10ms\"", "negative", "0 ms"),
    case(
        "negative delay later on",
        11,
        "delay = [[\"0s\", \"10ms\"], [\"5s\", \"-10ms\"]]",
        "[[\"0s\", \"10ms\"], [\"5s\", \"-10ms\"]]",
        "negative",
        "0 ms",
    ),
    case("negative round trip", 6, "rtt = \"-50ms\"", "\"-50ms\"", "negative", "0 ms"),
    case("negative access delay", 18, "access_delay = \"-1ms\"", "\"-1ms\"", "negative", "0 ms"),
    case("negative jitter of a host", 18, "host = { jitter = \"-1ms\" }", "\"-1ms\"", "negative", "0 ms"),
    case(
        "stalls without length",
        18,
        "host = { stall_every = \"9s\" }",
        "{ stall_every = \"9s\" }",
        "a length",
        "or neither",
    ),
    case("loss over 100 %", 12, "loss = \"101 %\"", "\"101 %\"", "from 0 % to 100 %", ""),
    case("negative loss", 12, "loss = \"-1 %\"", "\"-1 %\"", "from 0 % to 100 %", ""),
    case("unknown loss model", 12, "loss = { model = \"gilbert\" }", "\"gilbert\"", "`gilbert`", "`gilbert-elliott`"),
    case("loss without model", 12, "loss = { to_bad = \"1 %\" }", "{ to_bad = \"1 %\" }", "`model`", "gilbert-elliott"),
    case(
        "loss model without its numbers",
        12,
        "loss = { model = \"gilbert-elliott\", to_bad = \"1 %\" }",
        "\"gilbert-elliott\"",
        "`to_good`",
        "`to_good = ",
    ),
    case(
        "loss model with a number too many",
        12,
        "loss = { model = \"bernoulli\", probability = \"1 %\", bad = \"1 %\" }",
        "bad",
        "`bad`",
        "`probability`",
    ),
    case("queue of zero", 10, "queue = { limit = \"0ms\" }", "\"0ms\"", "at least one packet", "1 packet"),
    case("queue of no packets", 10, "queue = { limit = \"0 packets\" }", "\"0 packets\"", "at least one", "1 packet"),
    case("queue of few bytes", 10, "queue = { limit = \"100 B\" }", "\"100 B\"", "at least one packet", "1 packet"),
    case(
        "a mark at the limit",
        10,
        "queue = { limit = \"60 KB\", mark = \"60 KB\" }",
        "\"60 KB\"",
        "never marked",
        "below the limit",
    ),
    case(
        "a mark above the limit",
        10,
        "queue = { limit = \"50 ms\", mark = \"51 ms\" }",
        "\"51 ms\"",
        "never marked",
        "below the limit",
    ),
    case(
        "a mark in a wrong unit",
        10,
        "queue = { limit = \"50 ms\", mark = \"5 pkt\" }",
        "\"5 pkt\"",
        "`5 pkt`",
        "50 packets",
    ),
    case("queue limit without unit", 10, "queue = { limit = 50 }", "50", "a queue limit", "\"50 packets\""),
    case("queue limit in a wrong unit", 10, "queue = { limit = \"50 pkt\" }", "\"50 pkt\"", "`50 pkt`", "50 packets"),
    case(
        "unknown queue discipline",
        10,
        "queue = { discipline = \"droptail\", limit = \"300ms\" }",
        "\"droptail\"",
        "no queue discipline `droptail`",
        "`drop-tail`",
    ),
    case(
        "schedule that does not start at 0 s",
        9,
        "capacity = [[\"1s\", \"1Mbps\"]]",
        "[[\"1s\", \"1Mbps\"]]",
        "start at 0s",
        "[[\"0s\"",
    ),
    case(
        "schedule that goes back",
        9,
        "capacity = [[\"0s\", \"1Mbps\"], [\"9s\", \"2Mbps\"], [\"5s\", \"3Mbps\"]]",
        "[[\"0s\", \"1Mbps\"], [\"9s\", \"2Mbps\"], [\"5s\", \"3Mbps\"]]",
        "5 s comes after 9 s",
        "",
    ),
    case("schedule of nothing", 9, "capacity = []", "[]", "start at 0s", "[[\"0s\""),
    case("schedule without times", 9, "capacity = [\"1Mbps\", \"2Mbps\"]", "\"1Mbps\"", "a pair", "[[\"0s\""),
    case("jitter of nothing", 11, "jitter = { std = \"0ms\" }", "\"0ms\"", "standard deviation", "leave"),
    case("a run of no time", 3, "duration = \"0s\"", "\"0s\"", "longer than nothing", "60 s"),
    case("a run of a year", 3, "duration = \"31536000 s\"", "\"31536000 s\"", "at most a week", ""),
    case("no repeats", 2, "title = \"\"\nrepeats = 0", "0", "1 to 10000", "--repeats").below(1),
    case("negative repeats", 2, "title = \"\"\nrepeats = -1", "-1", "not negative", "like 10").below(1),
    case("an id of several words", 1, "id = \"my test\"", "\"my test\"", "an id is a word", "my-test"),
];

const FLOWS: &[Case] = &[
    case("unknown controller", 16, "controller = \"gcc2016\"", "\"gcc2016\"", "no controller `gcc2016`", "`gcc-2016`?"),
    case("controller like no other", 16, "controller = \"xyz\"", "\"xyz\"", "no controller `xyz`", "known: "),
    case("unknown parameter", 22, "k_v = 0.01", "k_v", "no parameter `k_v`", "`k_u`"),
    case("parameter out of range", 22, "k_u = -1", "-1", "k_u = -1 is outside", "0.01"),
    case("parameter not a number", 22, "k_u = nan", "nan", "k_u = NaN is outside", "0.01"),
    case("parameter as text", 22, "k_u = \"0.01\"", "\"0.01\"", "a number", "without quotes"),
    case(
        "flow that stops before it starts",
        17,
        "start = \"60s\"",
        "\"60s\"",
        "`video` stops before it starts",
        "stop",
    )
    .below(1),
    case(
        "flow that starts after the end",
        18,
        "stop = \"80s\"\n[[flow]]\nid = \"late\"\ncontroller = \"gcc-2016\"\nstart = \"70s\"",
        "\"70s\"",
        "starts after the run has ended",
        "60 s",
    )
    .below(4),
    case(
        "two flows of one name",
        20,
        "[[flow]]\nid = \"video\"\ncontroller = \"gcc-2016\"",
        "\"video\"",
        "two flows",
        "",
    )
    .below(1),
    case("unknown kind of flow", 17, "kind = \"udp\"", "\"udp\"", "no kind of flow `udp`", "`media`"),
    case("media's keys on a TCP flow", 17, "kind = \"tcp\"", "\"gcc-2016\"", "has no `controller`", "\"media\"").below(-1),
    case("TCP's keys on a media flow", 17, "profile = \"rfc\"", "\"rfc\"", "has no `profile`", "\"tcp\""),
    case("no such flow that often", 17, "count = 0", "0", "stands for 1 to", "one"),
    case("a spread longer than its life", 17, "start_spread = \"61 s\"", "\"61 s\"", "after it stops", "60 s"),
    case("an unknown congestion control", 14, "[[flow]]\nid = \"t\"\nkind = \"tcp\"\ncongestion = \"cubik\"\n[[flow]]", "\"cubik\"", "no congestion control `cubik`", "did you mean `cubic`").below(3),
    case("an unknown profile", 14, "[[flow]]\nid = \"t\"\nkind = \"tcp\"\nprofile = \"bsd\"\n[[flow]]", "\"bsd\"", "no TCP profile `bsd`", "`linux`").below(3),
    case("a segment of nothing", 14, "[[flow]]\nid = \"t\"\nkind = \"tcp\"\nsegment = \"0 B\"\n[[flow]]", "\"0 B\"", "100 to 1460 bytes", "1448").below(3),
    case("a window of one segment", 14, "[[flow]]\nid = \"t\"\nkind = \"tcp\"\nreceive_window = \"1448 B\"\n[[flow]]", "\"1448 B\"", "two segments", "unlimited").below(3),
    case("an unknown workload", 14, "[[flow]]\nid = \"t\"\nkind = \"tcp\"\nworkload = { kind = \"onoff\" }\n[[flow]]", "\"onoff\"", "no workload `onoff`", "did you mean `on-off`").below(3),
    case("a workload without its times", 14, "[[flow]]\nid = \"t\"\nkind = \"tcp\"\nworkload = { kind = \"on-off\", on = \"3s\" }\n[[flow]]", "\"on-off\"", "needs `off`", "add `off = ").below(3),
    case("a workload with another's keys", 14, "[[flow]]\nid = \"t\"\nkind = \"tcp\"\nworkload = { kind = \"bulk\", on = \"3s\" }\n[[flow]]", "\"3s\"", "has no `on`", "known").below(3),
    case("an unknown FEC", 19, "encoder = { max = \"2Mbps\" }\nprotection = { fec = \"ulpfecc\" }", "\"ulpfecc\"", "no forward error correction `ulpfecc`", "did you mean `ulpfec`").below(1),
    case("an unknown budget", 19, "encoder = { max = \"2Mbps\" }\nprotection = { resend_budget = \"third\" }", "\"third\"", "no budget for retransmissions `third`", "rtt").below(1),
    case("protection of TCP", 14, "[[flow]]\nid = \"t\"\nkind = \"tcp\"\nprotection = {}\n[[flow]]", "{}", "has no `protection`", "media").below(3),
    case("sizes the wrong way round", 14, "[[flow]]\nid = \"t\"\nkind = \"tcp\"\nworkload = { kind = \"short\", size = [\"2 MB\", \"1 MB\"], pause = \"1s\" }\n[[flow]]", "[\"2 MB\", \"1 MB\"]", "smallest, largest", "100 KB").below(3),
    case("unknown source", 19, "encoder = { source = \"encodr\" }", "\"encodr\"", "no source `encodr`", "`encoder`"),
    case(
        "lowest rate above the highest",
        19,
        "encoder = { min = \"3Mbps\", max = \"2Mbps\" }",
        "\"2Mbps\"",
        "`max` is 2 Mbps",
        "`min`",
    ),
    case("no frames a second", 19, "encoder = { fps = 0 }", "0", "`fps` is 0", "30"),
    case(
        "a key that the source does not read",
        19,
        "encoder = { source = \"ideal\", key_ratio = 3.0 }",
        "3.0",
        "`key_ratio`",
        "`encoder`",
    ),
    case(
        "frames folder not there",
        19,
        "encoder = { frames = \"no/dir\" }",
        "\"no/dir\"",
        "cannot read no/dir",
        "beside",
    ),
    case("frames without a folder", 19, "encoder = { source = \"frames\" }", "\"frames\"", "the folder", "frames = "),
    case("least rate above the start", 18, "min_rate = \"500kbps\"", "\"500kbps\"", "min 500 kbps", "`start_rate`"),
    case("route over an unknown hop", 18, "route = [\"forwards\"]", "\"forwards\"", "no hop `forwards`", "`forward`"),
    case(
        "route over a hop of the way back",
        18,
        "route = [\"reverse\"]",
        "\"reverse\"",
        "no hop `reverse`",
        "`forward`",
    ),
    case(
        "route over a hop twice",
        18,
        "route = [\n\"forward\",\n\"forward\"]",
        "\"forward\"",
        "names the hop `forward` again",
        "a route crosses each hop once",
    )
    .below(2),
    case(
        "streams in short and at length",
        20,
        "[[flow.stream]]\nid = \"a\"\nencoder = {}\n",
        "{ max = \"2Mbps\" }",
        "not both",
        "[[flow.stream]]",
    )
    .below(-1),
    case("priority of zero", 19, "[[flow.stream]]\nid = \"a\"\npriority = 0\nencoder = {}\n", "0", "above 0", "1")
        .below(2),
    case("a clock beyond reason", 18, "clock = { drift_ppm = 1e9 }", "1e9", "at most 100000 ppm", "ppm"),
    case("reports at no interval", 18, "rtcp_interval = \"0s\"", "\"0s\"", "more than nothing", "leave"),
];

const PATHS: &[Case] = &[
    case(
        "hops beside the short form",
        9,
        "capacity = \"1Mbps\"\nhops = [{ id = \"a\" }]",
        "\"1Mbps\"",
        "`hops`",
        "move",
    ),
    case("no hops at all", 9, "hops = []\n[path.reverse]", "[]", "no hop", "leave"),
    case(
        "two hops of one name",
        8,
        "[path.reverse]\nhops = [{ id = \"a\" }, { id = \"a\" }]\n[path.forward]",
        "\"a\"",
        "two hops are called `a`",
        "name",
    )
    .below(1),
    case("trace that is not there", 9, "capacity = { trace = \"no.trace\" }", "\"no.trace\"", "cannot read", "beside"),
    case("unknown end of a trace", 9, "capacity = { trace = \"x\", end = \"stop\" }", "\"stop\"", "`stop`", "`loop`"),
];

const MEASURES: &[Case] = &[
    case(
        "unknown metric",
        26,
        "metric = \"utilisation\"",
        "\"utilisation\"",
        "no metric",
        "did you mean `utilization`?",
    ),
    case("bounds the wrong way round", 27, "bounds = [1.0, 0.2]", "[1.0, 0.2]", "[lowest, highest]", "[0.2, 1.0]"),
    case("bounds that are no numbers", 27, "bounds = [nan, 0.2]", "[nan, 0.2]", "[lowest, highest]", "inf"),
    case("one bound", 27, "bounds = [0.2]", "[0.2]", "a list of 1", "inf"),
    case("window outside the run", 28, "window = [\"10s\", \"70s\"]", "[\"10s\", \"70s\"]", "within the run", "60 s"),
    case("window the wrong way round", 28, "window = [\"9s\", \"3s\"]", "[\"9s\", \"3s\"]", "within the run", "60 s"),
    case("a metric of an unknown flow", 28, "flow = \"vidio\"", "\"vidio\"", "no flow `vidio`", "`video`"),
    case(
        "runs kept by an unknown metric",
        23,
        "[measure]\nkeep = { metric = \"overuse\", at_least = 1 }\n",
        "\"overuse\"",
        "no metric",
        "`overuses`",
    )
    .below(1),
    case(
        "runs kept by an unknown flow",
        23,
        "[measure]\nkeep = { metric = \"overuses\", flow = \"nobody\", at_least = 1 }\n",
        "\"nobody\"",
        "no flow",
        "video",
    )
    .below(1),
    case(
        "runs kept by no number",
        23,
        "[measure]\nkeep = { metric = \"overuses\", at_least = inf }\n",
        "inf",
        "a number",
        "like 1",
    )
    .below(1),
    case("unknown way to measure", 23, "[measure]\nqueue = \"rtp\"\n", "\"rtp\"", "`rtp`", "`rtcp`").below(1),
    case(
        "a bound of an unknown case",
        28,
        "case = { rtt = \"1\" }",
        "{ rtt = \"1\" }",
        "no case is `rtt=1`",
        "[[case]]",
    ),
    case("a ratio to itself", 28, "over = {}", "{}", "the value itself", "`metric`"),
    case(
        "a ratio to an unknown metric",
        28,
        "over = { metric = \"rtt_ms\" }",
        "\"rtt_ms\"",
        "no metric `rtt_ms`",
        "`rtt_p50_ms`",
    ),
    case(
        "a value that supports no claim",
        23,
        "[[expect]]\nmetric = \"jain\"\npublished = 1\nclaim = \"use\"\n",
        "\"use\"",
        "no [[assert]] has the id `use`",
        "`used`",
    )
    .below(3),
    case(
        "a tolerance without a reason",
        23,
        "[[expect]]\nmetric = \"jain\"\npublished = 1\ntolerance = 0.1\n",
        "0.1",
        "is argued",
        "add why",
    )
    .below(3),
    case(
        "a tolerance below nothing",
        23,
        "[[expect]]\nmetric = \"jain\"\npublished = 1\ntolerance = -0.1\nwhy = \"so\"",
        "-0.1",
        "above 0",
        "unit",
    )
    .below(3),
    case("a change that is none", 28, "moved_by = [\"duration\"]", "\"duration\"", "is not KEY=VALUE", "--set"),
    case(
        "constants that are not there",
        2,
        "title = \"\"\nconstants = \"no.toml\"",
        "\"no.toml\"",
        "cannot read",
        "beside",
    )
    .below(1),
    case(
        "published value that is no number",
        23,
        "[[expect]]\nmetric = \"jain\"\npublished = nan\n",
        "nan",
        "published",
        "unit",
    )
    .below(2),
];

fn text_of(case: &Case) -> String {
    let changed = GOOD.lines().enumerate().map(|(i, line)| if i + 1 == case.line { case.text } else { line });
    changed.collect::<Vec<_>>().join("\n")
}

fn read(text: &str, settings: &[&str], controller: Option<&str>) -> Result<Plan, Problem> {
    let settings = settings.iter().map(|s| s.parse().expect("KEY=VALUE")).collect();
    let changes = Changes { controller: controller.map(str::to_owned), settings, ..Changes::default() };
    load(&Origin::from_text("broken.toml", text), &changes, &Registry::standard())
}

fn check(cases: &[Case]) {
    let mut wrong = String::new();
    for case in cases {
        let text = text_of(case);
        let Err(problem) = read(&text, &[], None) else {
            wrong += &format!("{}: was accepted\n", case.name);
            continue;
        };
        let (message, hint) = (problem.to_string(), problem.hint().unwrap_or_default());
        let line = case.below.map(|lines| case.line.wrapping_add_signed(lines));
        let place = problem.line() == line && problem.offending().unwrap_or_default() == case.offending;
        let said = message.contains(case.message) && hint.contains(case.hint);
        if !place || !said || hint.is_empty() || message.contains('\n') {
            wrong += &format!(
                "{}: line {:?} (want {line:?})\n  underlined {:?} (want {:?})\n  says {message:?} (want {:?})\n  hint {hint:?} (want {:?})\n",
                case.name,
                problem.line(),
                problem.offending(),
                case.offending,
                case.message,
                case.hint,
            );
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn the_text_that_all_cases_break_is_good() {
    if let Err(problem) = read(GOOD, &[], None) {
        panic!("{problem}: {:?}", problem.offending());
    }
}

#[test]
fn what_is_no_scenario() {
    check(SYNTAX);
}

#[test]
fn values_that_make_no_sense() {
    check(VALUES);
}

#[test]
fn flows_that_make_no_sense() {
    check(FLOWS);
}

#[test]
fn paths_that_make_no_sense() {
    check(PATHS);
}

#[test]
fn measures_that_make_no_sense() {
    check(MEASURES);
}

/// A folder for one test, emptied.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("broken-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The complaint about [`GOOD`] in a file of `folder`, with line `line` written as `text`.
fn complaint_beside(folder: &Path, line: usize, text: &str) -> Problem {
    let path = folder.join("scenario.toml");
    let lines = GOOD.lines().enumerate().map(|(i, good)| if i + 1 == line { text } else { good });
    fs::write(&path, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let origin = Catalogue.find(path.to_str().unwrap()).unwrap();
    load(&origin, &Changes::default(), &Registry::standard()).expect_err("the file is broken")
}

#[test]
fn a_malformed_trace_is_named_with_its_line() {
    let folder = folder("trace");
    for (name, text, says, hint) in [
        ("back.csv", "0,1\n2,1\n1,3\n", "back.csv, line 3: time goes back, from 2 s to 1 s (`1,3`)", "sort"),
        ("letters.mahimahi", "1\n2\nx\n", "letters.mahimahi, line 3:", "whole number"),
        ("negative.csv", "time_s,rate_mbps\n0,-1\n", "negative.csv, line 2:", "not negative"),
        ("empty.trace", "# nothing\n", "empty.trace, line 1:", ""),
    ] {
        fs::write(folder.join(name), text).unwrap();
        let problem = complaint_beside(&folder, 9, &format!("capacity = {{ trace = \"{name}\" }}"));
        assert_eq!(problem.line(), Some(9));
        assert_eq!(problem.offending(), Some(format!("\"{name}\"").as_str()));
        let (message, help) = (problem.to_string(), problem.hint().unwrap_or_default());
        assert!(message.contains(says) && help.contains(hint) && !help.is_empty(), "{message} / {help}");
    }
}

#[test]
fn frame_sizes_that_cannot_be_used_are_named() {
    let folder = folder("frames");
    let frames = folder.join("sizes");
    fs::create_dir(&frames).unwrap();
    let complaint = || complaint_beside(&folder, 19, "encoder = { frames = \"sizes\" }");
    let check = |problem: Problem, says: &str, hint: &str| {
        assert_eq!((problem.line(), problem.offending()), (Some(19), Some("\"sizes\"")));
        let (message, help) = (problem.to_string(), problem.hint().unwrap_or_default());
        assert!(message.contains(says) && help.contains(hint), "{message} / {help}");
    };
    check(complaint(), "sizes holds no frame sizes", "<content>_<resolution>_<kbps>.txt");
    fs::write(frames.join("talk_360p_500.txt"), "0 1 0 0.0 100\n1 1 0 0.1 many\n").unwrap();
    check(complaint(), "sizes/talk_360p_500.txt, line 2: `many`", "bytes");
    let recording: String = (0..30).map(|i| format!("{i} 1 0 0.0 100\n")).collect();
    fs::write(frames.join("talk_360p_500.txt"), &recording).unwrap();
    fs::write(
        frames.join("talk_360p_900.txt"),
        recording.lines().take(25).map(|l| format!("{l}\n")).collect::<String>(),
    )
    .unwrap();
    check(complaint(), "same number of frames", "resolution");
}

#[test]
fn a_scenario_without_flows_says_what_to_add() {
    let text: String = GOOD.lines().take(12).map(|l| format!("{l}\n")).collect();
    let problem = read(&text, &[], None).unwrap_err();
    assert_eq!(problem.line(), None, "there is nothing to underline");
    assert!(problem.to_string().contains("at least one [[flow]]"));
    assert!(problem.hint().unwrap().contains("add [[flow]] with id = "));
}

#[test]
fn a_name_that_no_scenario_has() {
    let problem = Catalogue.find("mmsys16/tabel1").unwrap_err();
    assert!(problem.to_string().contains("no scenario `mmsys16/tabel1`"));
    assert!(problem.hint().unwrap().contains("did you mean `mmsys16/table1`?"));
    let problem = Catalogue.find("no/such/file.toml").unwrap_err();
    assert!(problem.to_string().contains("cannot read no/such/file.toml"), "{problem}");
    assert!(problem.hint().unwrap().contains("list scenarios"));
}

#[test]
fn a_mistake_in_a_change_names_the_change() {
    for (setting, offending, says, hint) in [
        ("path.foward.capacity=2Mbps", "foward", "unknown key `foward`", "`forward`"),
        ("path.forward.capacity=fast", "\"fast\"", "`fast` is not a rate", "2.5 Mbps"),
        ("path.forward.capacity=2", "2", "expected a rate", "\"2 bps\""),
        ("duration=0s", "\"0s\"", "longer than nothing", ""),
        ("duration.of=1s", "", "expected a time", ""),
        ("flow.video.config.k_u=7", "7", "k_u = 7 is outside", "default"),
        ("flow.video.config.gain=7", "gain", "no parameter `gain`", "known"),
        ("flow.video.controller=quux", "\"quux\"", "no controller `quux`", "known"),
        ("flow.vidio.start=1s", "", "`flow` has no element `vidio`", "`video`"),
        ("flow.1.start=1s", "", "`flow` has no element `1`", "`video`"),
        ("flow.video=1", "", "`flow.video` names a whole element", "flow.video.key"),
        ("flow=1", "1", "expected a sequence", ""),
        ("path..capacity=1Mbps", "", "empty part", "path.forward.capacity"),
        ("assert.used.bounds=[1,0]", "[1,0]", "[lowest, highest]", "[0.0, 1.0]"),
    ] {
        let problem = read(GOOD, &[setting], None).expect_err(setting);
        let (message, help) = (problem.to_string(), problem.hint().unwrap_or_default());
        let named = message.contains(setting) || help.contains(&format!("--set {setting}"));
        let place = offending.is_empty() || problem.offending() == Some(offending);
        assert!(named, "{setting} is not named: {message} / {help}");
        assert!(place, "{setting}: underlined {:?}", problem.offending());
        assert!(message.contains(says) && help.contains(hint), "{setting}: {message} / {help}");
    }
    for text in ["duration", "=5s", "duration=", ""] {
        assert!(text.parse::<Setting>().unwrap_err().contains("KEY=VALUE"), "{text}");
    }
}

#[test]
fn a_broken_file_is_not_blamed_on_the_change() {
    let text = GOOD.replace("60s", "60 sec");
    let problem = read(&text, &["path.forward.capacity=2Mbps"], None).unwrap_err();
    assert_eq!(problem.offending(), Some("\"60 sec\""));
    assert!(!problem.hint().unwrap().contains("--set"), "{:?}", problem.hint());
}

/// The notes that say what was made of the words of a good scenario.
fn notes(text: &str) -> Vec<String> {
    read(text, &[], None).unwrap_or_else(|problem| panic!("{problem}: {:?}", problem.offending())).notes
}

#[test]
fn a_queue_that_does_not_follow_capacity_has_its_first_size() {
    let folder = folder("queue");
    fs::write(folder.join("steps.csv"), "time_s,rate_mbps\n0,4\n10,0\n20,2\n").unwrap();
    fs::write(folder.join("one.mahimahi"), "1\n").unwrap();
    let queue = "queue = { limit = \"100 ms\", follows_capacity = false }";
    let steps = format!("{{ trace = {:?} }}", folder.join("steps.csv").to_str().unwrap());
    let one = format!("{{ trace = {:?} }}", folder.join("one.mahimahi").to_str().unwrap());
    for (capacity, bytes, rate) in [
        ("\"1Mbps\"", 12_500, "1 Mbps"),
        // At the start 1 Mbps, whatever comes later.
        ("[[\"0s\", \"1Mbps\"], [\"5s\", \"8Mbps\"]]", 12_500, "1 Mbps"),
        // One lap: 4, 0 and 2 Mbps for 10 s each.
        (&steps, 25_000, "2 Mbps"),
        // 1504 bytes a millisecond.
        (&one, 150_400, "12.032 Mbps"),
    ] {
        let text = GOOD.replace("capacity = \"1Mbps\"", &format!("capacity = {capacity}"));
        let text = text.replace("queue = { discipline = \"drop-tail\", limit = \"300ms\" }", queue);
        let QueuePlan::DropTail { limit, .. } = read(&text, &[], None).unwrap().hops[0].queue;
        assert_eq!(limit, DropTailLimit::Bytes(DataSize::from_bytes(bytes)), "{capacity}");
        let said = format!("forward: the queue's limit of 100 ms is {bytes} bytes, at {rate}, and stays so");
        assert!(notes(&text).contains(&said), "{said}: {:?}", notes(&text));
    }
}

#[test]
fn notes_say_what_follows_the_end_of_a_trace() {
    let folder = folder("end");
    fs::write(folder.join("steps.csv"), "time_s,rate_mbps\n0,4\n10,2\n15,1\n").unwrap();
    fs::write(folder.join("four.mahimahi"), "1\n2\n2\n40\n").unwrap();
    for (file, end, said, at_90_s) in [
        ("steps.csv", "", "holds its last rate", 1_000_000),
        ("steps.csv", ", end = \"hold\"", "holds its last rate", 1_000_000),
        // The last step is as long as the one before it: laps of 20 s, of which the fifth is half over.
        ("steps.csv", ", end = \"loop\"", "loops after 20 s", 2_000_000),
        ("four.mahimahi", "", "loops after 40 ms", 4 * 1504 * 8 * 25),
        ("four.mahimahi", ", end = \"hold\"", "nothing passes after its end", 0),
    ] {
        let trace = folder.join(file);
        let capacity = format!("capacity = {{ trace = {:?}{end} }}", trace.to_str().unwrap());
        let text = GOOD.replace("capacity = \"1Mbps\"", &capacity);
        let notes = notes(&text);
        let note = notes.iter().find(|note| note.contains(" trace, ")).unwrap();
        assert!(note.starts_with("forward: ") && note.ends_with(&format!("; {said}")), "{note}");
        assert!(!note.trim_end_matches(said).contains("loop") && !note.contains("at its end"), "{note}");
        let capacity = read(&text, &[], None).unwrap().hops[0].capacity.clone().unwrap();
        assert_eq!(capacity.rate_at(Time::from_secs(90)).as_bps(), at_90_s, "{file}{end}");
    }
}

#[test]
fn the_shipped_steps_loop() {
    let steps = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/real/traces/steps.csv");
    let looped = GOOD.replace("\"1Mbps\"", &format!("{{ trace = {steps:?}, end = \"loop\" }}"));
    let capacity = read(&looped, &[], None).unwrap().hops[0].capacity.clone().unwrap();
    // Thirty steps of 2 s; the first is 250 kbps, the last 500 kbps.
    for (ms, kbps) in [(0, 250), (59_999, 500), (60_000, 250), (119_999, 500), (120_000, 250)] {
        assert_eq!(capacity.rate_at(Time::from_millis(ms)), Rate::from_kbps(kbps), "at {ms} ms");
    }
    let folder = folder("loop");
    fs::write(folder.join("one.csv"), "0,1000000\n").unwrap();
    let one = folder.join("one.csv");
    let text = GOOD.replace("\"1Mbps\"", &format!("{{ trace = {:?}, end = \"loop\" }}", one.to_str().unwrap()));
    assert!(read(&text, &[], None).unwrap_err().to_string().contains("one entry has no length"));
}

#[test]
fn notes_say_what_was_not_used_or_may_not_be_meant() {
    let own = "forward: its own delay stands in place of half of path.rtt";
    let count = |text: &str, note: &str| notes(text).iter().filter(|n| n.contains(note)).count();
    assert_eq!((count(GOOD, own), count(GOOD, "reverse: its own")), (1, 0));
    assert_eq!(count(&GOOD.replace("delay = \"10ms\"\n", ""), own), 0);
    assert_eq!(count(&GOOD.replace("rtt = \"50ms\"\n", ""), own), 0);
    let hops = "[path.reverse]\nhops = [{ id = \"a\" }, { id = \"b\", delay = \"5ms\" }]\n[path.forward]";
    assert_eq!(count(&GOOD.replace("[path.forward]", hops), "reverse: its own delay"), 1);

    let folder = folder("units");
    let units = "every rate is below 1 kbit/s, read as bit/s";
    for (text, times) in [
        ("0,2.5\n10,999\n", 1),
        ("time,rate\n0,2.5\n10,0\n", 1),
        ("0,2.5\n10,1000\n", 0),
        ("time_s,rate_bps\n0,2.5\n10,4\n", 0),
        ("time_s,rate_kbps\n0,0.5\n10,0.9\n", 0),
    ] {
        let file = folder.join("rates.csv");
        fs::write(&file, text).unwrap();
        let text = GOOD.replace("\"1Mbps\"", &format!("{{ trace = {:?} }}", file.to_str().unwrap()));
        assert_eq!(count(&text, units), times, "{text}");
        assert_eq!(count(&text, "time_s,rate_mbps"), times, "{text}");
    }
}

#[test]
fn elements_of_lists_can_be_set_however_they_are_written() {
    let text = GOOD.replace("capacity = \"1Mbps\"", "hops = [{ id = \"a\", capacity = \"1Mbps\" }, { id = \"b\" }]");
    let text = text.replace("queue = {", "#").replace("delay = ", "#").replace("loss = ", "#");
    let plan = read(&text, &["path.forward.hops.a.capacity=2Mbps", "path.forward.hops.1.delay=3ms"], None).unwrap();
    assert_eq!(plan.hops[0].capacity.as_ref().unwrap().rate_at(Time::ZERO), Rate::from_kbps(2000));
    assert_eq!(*plan.hops[1].delay.at(Time::ZERO), TimeDelta::from_millis(3));
}
