// SPDX-License-Identifier: MIT OR Apache-2.0
//! A call of a tool in a process of its own, which ends when a limit is exceeded.

use super::tools::Call;
use paceline_units::{DataSize, TimeDelta};
use serde::Deserialize;
use serde_json::Value;
use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The limits of a call.
#[derive(Clone, Copy)]
pub struct Limits {
    pub time: TimeDelta,
    pub memory: DataSize,
    pub input: DataSize,
}

/// The longest output of a call, bytes.
const OUTPUT_MAX: u64 = 64 << 20;
/// How often the end of a process is looked for.
const POLL: Duration = Duration::from_millis(5);
/// Folders of results have fewer levels. Links may form a circle.
const DEPTH: usize = 6;

/// What a command printed.
#[derive(Deserialize)]
pub struct Answer {
    /// The document of `--json`.
    pub document: Value,
    /// The text that the command prints without it.
    pub text: String,
}

/// Runs a call, and returns what it printed or why there is nothing.
pub fn answer(call: &Call, limits: Limits, is_cancelled: &dyn Fn() -> bool) -> Result<Answer, String> {
    let mut left = limits.input.as_bytes();
    if !call.files.iter().all(|file| fits(file, &mut left, DEPTH)) {
        return Err(format!("the input is larger than {}, or is neither a file nor a folder", limits.input));
    }
    let started = |error: io::Error| format!("cannot run the command: {error}");
    let mut command = match crate::PROGRAM.get().map(Vec::as_slice) {
        Some([program, more @ ..]) => {
            let mut command = Command::new(program);
            command.args(more);
            command
        }
        _ => Command::new(std::env::current_exe().map_err(started)?),
    };
    command.args(["mcp", "--memory", &limits.memory.to_string(), "--"]).args(&call.words);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(started)?;
    let [out, errors] = [child.stdout.take().map(collected), child.stderr.take().map(collected)];
    let begin = Instant::now();
    let deadline = limits.time.to_duration().unwrap_or_default();
    let status = loop {
        let late = match child.try_wait().map_err(started)? {
            Some(status) => break status,
            None if is_cancelled() => "the request was cancelled".to_owned(),
            None if begin.elapsed() > deadline => format!("the call took longer than the limit of {}", limits.time),
            None => {
                thread::sleep(POLL);
                continue;
            }
        };
        _ = child.kill();
        _ = child.wait();
        return Err(late);
    };
    let [out, errors] = [out, errors].map(|text| text.and_then(|text| text.join().ok()).unwrap_or_default());
    if out.len() as u64 > OUTPUT_MAX {
        return Err(format!("the document is larger than {}", DataSize::from_bytes(OUTPUT_MAX)));
    }
    let errors = String::from_utf8_lossy(&errors);
    let mut answer: Answer = serde_json::from_slice(&out).map_err(|_| match errors.trim() {
        "" => format!("the command ended without a result ({status})"),
        text if status.code().is_none() => format!("{text} ({status}; the limit of memory is {})", limits.memory),
        text => text.trim_start_matches(['×', ' ']).to_owned(),
    })?;
    // Exit codes from 2 on: a part failed, such as one file of several.
    if status.code().is_none_or(|code| code >= 2) {
        answer.text = format!("{}\n\n{}", errors.trim(), answer.text);
    }
    Ok(answer)
}

/// Collects what a process writes, in a thread.
fn collected(from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        _ = from.take(OUTPUT_MAX + 1).read_to_end(&mut bytes);
        bytes
    })
}

/// Returns whether a path names files within the size that is left. The command has the error of one that cannot be read.
fn fits(path: &Path, left: &mut u64, depth: usize) -> bool {
    let Ok(about) = fs::metadata(path) else { return true };
    if about.is_dir() {
        let entries = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
        return depth > 0 && entries.map(|entry| entry.path()).all(|path| fits(&path, left, depth - 1));
    }
    let rest = left.checked_sub(about.len()).filter(|_| about.is_file());
    *left = rest.unwrap_or(0);
    rest.is_some()
}

/// Limits the memory that this process may allocate.
#[cfg(target_os = "linux")]
pub fn limit_memory(most: DataSize) -> io::Result<()> {
    use nix::sys::resource::{Resource, setrlimit};
    Ok(setrlimit(Resource::RLIMIT_DATA, most.as_bytes(), most.as_bytes())?)
}

/// This system has no such limit.
#[cfg(not(target_os = "linux"))]
pub fn limit_memory(_: DataSize) -> io::Result<()> {
    Ok(())
}
