// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline mcp`: sessions over the pipes of the real program.

use super::{command, document, folder, paceline, stdout};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

struct Session {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    last_id: u64,
}

impl Session {
    /// Starts a server, and a session that begins as the protocol says.
    fn start(folder: &Path, options: &[&str]) -> Self {
        let mut session = Self::bare(folder, options);
        let client = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        let server = session.request("initialize", client);
        assert_eq!(server["result"]["protocolVersion"], "2025-06-18", "{server}");
        assert_eq!(server["result"]["serverInfo"]["name"], "paceline");
        session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        session
    }

    fn bare(folder: &Path, options: &[&str]) -> Self {
        let mut command = command(folder, &[&["mcp"], options].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, input, output: BufReader::new(output).lines(), last_id: 0 }
    }

    fn send(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn receive(&mut self) -> Value {
        let line = self.output.next().expect("the server goes on").unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"))
    }

    fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        id
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        let answer = self.receive();
        assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(id)), "{answer}");
        answer
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": arguments}))["result"].clone()
    }

    /// Calls a tool that must succeed, and returns its document and its text.
    #[track_caller]
    fn answer(&mut self, tool: &str, arguments: Value) -> (Value, String) {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{result}");
        (result["structuredContent"].clone(), text(&result))
    }

    /// Calls a tool that must fail, and returns the text of the error.
    #[track_caller]
    fn error(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert!(result["isError"] == true && result.get("structuredContent").is_none(), "{result}");
        text(&result)
    }

    /// Ends the input, and checks that the server ends well.
    fn end(mut self) -> Vec<Value> {
        drop(self.input);
        let rest: Vec<Value> = self.output.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(0));
        rest
    }
}

fn text(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

/// Returns a document without the times of the machine.
fn comparable(mut document: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.remove("wall_s");
                members.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut document);
    document
}

#[test]
fn tools_return_the_documents_of_the_commands() {
    let folder = folder("mcp_tools", &[]);
    stdout(&paceline(&folder, &["run", "real/muted", "--set", "duration=40s", "--pcap", "call.pcapng"]), 0);
    let before = names(&folder);
    let mut session = Session::start(&folder, &[]);

    let tools = session.request("tools/list", json!({}))["result"]["tools"].clone();
    let tools = tools.as_array().unwrap();
    let names_of: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names_of, ["explain", "what_if", "run", "compare", "list"]);
    for tool in tools {
        let schema = &tool["inputSchema"];
        assert!(schema["type"] == "object" && schema["additionalProperties"] == false, "{tool}");
        assert!(tool["description"].as_str().unwrap().len() > 40 && tool["annotations"]["readOnlyHint"] == true);
    }
    assert_eq!(tools[3]["inputSchema"]["required"], json!(["scenario", "controllers"]));
    assert_eq!(tools[3]["inputSchema"]["properties"]["repeats"]["format"], "uint32", "{}", tools[3]);

    let run = json!({"scenario": "mmsys16/table1", "controllers": ["gcc-2016", "nada"], "seed": 3,
        "set": ["duration=20s", "path.rtt=80ms"]});
    let compare = json!({"scenario": "mmsys16/table1", "controllers": ["gcc-2016", "fixed"], "repeats": 2,
        "set": ["duration=20s"]});
    let calls = [
        ("explain", json!({"files": ["call.pcapng"]}), "explain call.pcapng"),
        ("what_if", json!({"files": ["call.pcapng"], "controllers": ["nada"]}), "explain call.pcapng --what-if nada"),
        ("run", run, "run mmsys16/table1 --controllers gcc-2016,nada --seed 3 --set duration=20s --set path.rtt=80ms"),
        ("compare", compare, "compare mmsys16/table1 --controllers gcc-2016,fixed --repeats 2 --set duration=20s"),
        ("list", json!({"kind": "metrics"}), "list metrics"),
        ("list", json!({"kind": "scenarios", "name": "mmsys16/table1"}), "list scenarios mmsys16/table1"),
        ("list", json!({}), "list"),
    ];
    for (tool, arguments, line) in calls {
        let (found, text) = session.answer(tool, arguments);
        let words: Vec<&str> = line.split(' ').collect();
        let expected = document(&paceline(&folder, &[&words[..], &["--json"]].concat()), 0);
        assert_eq!(comparable(found), comparable(expected), "{line}");
        let output = paceline(&folder, &words);
        // The duration of a run on this machine, which may be broken across lines.
        let without_time = |text: &str| {
            let words: Vec<&str> = text.split_whitespace().collect();
            let is_time = |at: usize| at >= 2 && words[at - 2] == "simulated" && words[at - 1] == "in";
            let kept = (0..words.len()).filter(|at| !is_time(*at)).map(|at| words[at]);
            kept.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(without_time(&text), without_time(stdout(&output, 0)), "{line}");
    }
    let (found, text) = session.answer("explain", json!({"files": ["call.pcapng", "none.txt"]}));
    assert!(
        text.contains("none.txt") && text.contains("No such file"),
        "a file that is not explained is named: {text}"
    );
    assert!(found.is_object() && text.contains("call.pcapng"), "{text}");
    assert_eq!(names(&folder), before, "tools write nothing");
    assert!(session.end().is_empty());
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A scenario whose controller is a program.
const OWN: &str = r#"
id = "test/own"
title = "A program"
duration = "1 s"
[path.forward]
capacity = "1 Mbps"
[[flow]]
id = "video"
controller = "exec:touch made"
"#;

#[test]
fn wrong_input_gets_errors_and_the_server_goes_on() {
    let folder = folder("mcp_wrong", &[("text.txt", "hello"), ("own.toml", OWN)]);
    // Before the session begins: a request and a notification out of turn, and a line that is no message.
    let mut session = Session::bare(&folder, &[]);
    assert!(session.request("tools/list", json!({}))["error"]["code"].is_i64());
    session.send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    session.send("hello");
    assert_eq!(session.receive()["error"]["code"], -32700);
    assert!(session.end().is_empty());

    let mut session = Session::start(&folder, &["--input", "1 MB"]);
    let lines = [
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"", -32700, json!(null)),
        ("\u{0}\u{7f}", -32700, json!(null)),
        ("[]", -32600, json!(null)),
        ("{\"id\":7}", -32600, json!(7)),
        ("{\"jsonrpc\":\"1.0\",\"id\":8,\"method\":\"tools/list\"}", -32602, json!(8)),
        ("{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/call\",\"params\":[1]}", -32602, json!(9)),
        ("{\"jsonrpc\":\"2.0\",\"id\":10,\"method\":\"shutdown/now\"}", -32601, json!(10)),
        ("{\"jsonrpc\":\"2.0\",\"id\":11,\"method\":\"tools/call\",\"params\":{\"name\":\"rm\"}}", -32602, json!(11)),
        (&"x".repeat(3_000_000), -32600, json!(null)),
        (&format!("{{\"jsonrpc\":\"2.0\",\"id\":12,\"method\":\"{}\"}}", "[".repeat(400_000)), -32601, json!(12)),
        (&"[".repeat(400_000), -32700, json!(null)),
    ];
    for (line, code, id) in lines {
        session.send(line);
        let answer = session.receive();
        let shown = &line[..line.len().min(80)];
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{shown}: {answer}");
    }
    session.send("");
    for (tool, arguments, part) in [
        ("explain", json!({}), "missing field `files`"),
        ("explain", json!({"files": "text.txt"}), "invalid type"),
        ("run", json!({"scenario": "mmsys16/table1", "world": "testbed"}), "unknown field `world`"),
        ("run", json!({"scenario": "mmsys16/table1", "seed": -1}), "invalid value"),
        ("run", json!({"scenario": "--help"}), "--help"),
        ("run", json!({"scenario": "mmsys16/table1", "set": ["--out=made"]}), "--out"),
        ("run", json!({"scenario": "mmsys16/table1", "controllers": ["exec:touch made"]}), "would run code"),
        ("run", json!({"scenario": "mmsys16/table1", "set": ["flow.video.controller=exec:touch made"]}), "run code"),
        ("run", json!({"scenario": "own.toml"}), "no controller"),
        ("compare", json!({"scenario": "mmsys16/tabel1", "controllers": ["nada", "fixed"]}), "mmsys16/table1"),
        ("explain", json!({"files": ["text.txt"]}), "unknown format"),
        ("explain", json!({"files": ["none.txt"]}), "No such file"),
        ("explain", json!({"files": ["/dev/zero"]}), "neither a file nor a folder"),
        ("what_if", json!({"files": ["text.txt"], "controllers": ["gogcc"]}), "googcc"),
        ("list", json!({"kind": "secrets"}), "controllers"),
    ] {
        let error = session.error(tool, arguments.clone());
        assert!(error.contains(part), "{tool} {arguments}: {error}");
    }
    fs::write(folder.join("large.pcapng"), vec![0; 1_000_001]).unwrap();
    assert!(session.error("explain", json!({"files": ["large.pcapng"]})).contains("larger than 1 MB"));
    assert!(!folder.join("made").exists());
    let (listing, _) = session.answer("list", json!({"kind": "queues"}));
    assert!(listing["queues"].as_array().unwrap().len() > 5, "{listing}");
    assert!(session.end().is_empty());
}

#[test]
fn calls_end_at_their_limits() {
    let folder = folder("mcp_limits", &[]);
    let endless = json!({"scenario": "mmsys16/table1", "set": ["duration=3600s"], "repeats": 1000});
    let mut session = Session::start(&folder, &["--limit", "500 ms"]);
    let begin = Instant::now();
    assert!(session.error("run", endless.clone()).contains("longer than the limit of 500 ms"));
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    session.answer("list", json!({"kind": "queues"}));
    assert!(session.end().is_empty());

    // A call that is cancelled ends, and has no answer.
    let mut session = Session::start(&folder, &[]);
    let id = session.begin("tools/call", json!({"name": "run", "arguments": endless}));
    session
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}).to_string());
    session.answer("list", json!({"kind": "queues"}));
    let begin = Instant::now();
    assert!(session.end().is_empty());
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());

    // What is in progress at the end of the input is answered.
    let mut session = Session::start(&folder, &[]);
    let arguments = json!({"scenario": "mmsys16/table1", "set": ["duration=20s"]});
    let id = session.begin("tools/call", json!({"name": "run", "arguments": arguments}));
    let rest = session.end();
    assert!(rest.len() == 1 && rest[0]["id"] == id && rest[0]["result"]["isError"] == false, "{rest:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn calls_end_at_their_limit_of_memory() {
    let folder = folder("mcp_memory", &[("large.toml", &"# a long comment\n".repeat(4_000_000))]);
    let mut session = Session::start(&folder, &["--memory", "40 MB"]);
    let error = session.error("run", json!({"scenario": "large.toml"}));
    assert!(error.contains("memory"), "{error}");
    session.answer("list", json!({"kind": "queues"}));
    assert!(session.end().is_empty());
}
