// SPDX-License-Identifier: MIT OR Apache-2.0
//! A running program: lines over its standard input and output, each with a time limit.

use crate::external::failure::Cause;
#[cfg(target_os = "linux")]
use crate::external::guard;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::Pid;
use std::collections::{BTreeSet, VecDeque};
use std::fmt::Debug;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often an answer is looked for before this process sleeps, each time after other threads had their turn.
const LOOKS: u32 = 100;
/// The longest line that a program may write.
const LINE_MAX: usize = 1 << 20;
/// The number of lines of the program's messages that an error shows.
const MESSAGES_SHOWN: usize = 10;
/// How long a program may run after its input ended.
const END_MAX: Duration = Duration::from_secs(2);
/// How long the end of its standard error is waited for.
const MESSAGES_MAX: Duration = Duration::from_millis(500);
/// The time between two looks at a program that closed its output.
const LOOK: Duration = Duration::from_millis(2);

/// The children that run: guards, or the leaders of groups. [`end_all`] ends them.
static RUNNING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Ends every program at once, for the end of this process.
pub fn end_all() {
    for child in &*RUNNING.lock().unwrap_or_else(PoisonError::into_inner) {
        end(*child);
    }
}

/// Ends the program of a child, and what it has started.
fn end(child: i32) {
    let child = Pid::from_raw(child);
    #[cfg(target_os = "linux")]
    guard::end(child);
    #[cfg(not(target_os = "linux"))]
    let _ = nix::sys::signal::killpg(child, nix::sys::signal::Signal::SIGKILL);
}

/// The lines that this process and a program exchange.
pub trait Channel: Debug + Send + Sized + 'static {
    /// Starts the program of a command line.
    fn start(words: &[String]) -> Result<Self, Cause>;
    /// Writes a line, which ends with a newline. The program must have written nothing since the line that was read last.
    fn write(&mut self, line: &[u8], limit: Duration) -> Result<(), Cause>;
    /// Returns the next line, without its newline.
    fn read(&mut self, limit: Duration) -> Result<&[u8], Cause>;
    /// Ends the program and what it has started. Returns the last lines that it wrote to its standard error.
    fn end(self) -> Vec<String>;
}

/// A program and its pipes. Dropping it closes its input, waits shortly, and then ends it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    /// What was read; the first `used` bytes are lines that were returned.
    buffer: Vec<u8>,
    used: usize,
    /// The last lines of the standard error, and the thread that reads them.
    messages: Arc<Mutex<VecDeque<String>>>,
    reader: JoinHandle<()>,
}

impl Channel for Process {
    /// The standard error of the program is also that of this process.
    fn start(words: &[String]) -> Result<Self, Cause> {
        let start = |error: std::io::Error| Cause::Start { program: words[0].clone(), error: error.to_string() };
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A time limit ends what a script has started, too: what is in its group, or on Linux all of it.
        #[cfg(target_os = "linux")]
        guard::with_guard(&mut command);
        #[cfg(not(target_os = "linux"))]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(start)?;
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).insert(child.id() as i32);
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let messages = Arc::default();
        let reader = forward_messages(child.stderr.take().expect("piped"), Arc::clone(&messages));
        // A program that does not read must not block this process.
        for pipe in [input.as_fd(), output.as_fd()] {
            fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(|error| start(error.into()))?;
        }
        Ok(Self { child, input: Some(input), output, buffer: Vec::new(), used: 0, messages, reader })
    }

    fn write(&mut self, line: &[u8], limit: Duration) -> Result<(), Cause> {
        self.read_more()?;
        if self.buffer.len() > self.used {
            return Err(Cause::Unasked);
        }
        let (mut rest, mut deadline) = (line, None);
        while !rest.is_empty() {
            let Some(input) = &mut self.input else { return Err(self.exited()) };
            match input.write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let deadline = *deadline.get_or_insert_with(|| Instant::now() + limit);
                    if !wait(input.as_fd(), PollFlags::POLLOUT, deadline)? {
                        return Err(Cause::NotReading { seconds: limit.as_secs_f64() });
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(self.exited()),
            }
        }
        Ok(())
    }

    fn read(&mut self, limit: Duration) -> Result<&[u8], Cause> {
        self.buffer.drain(..self.used);
        self.used = 0;
        let (mut searched, mut deadline, mut looks) = (0, None, 0);
        loop {
            if let Some(end) = self.buffer[searched..].iter().position(|byte| *byte == b'\n') {
                self.used = searched + end + 1;
                return Ok(&self.buffer[..self.used - 1]);
            }
            searched = self.buffer.len();
            if searched > LINE_MAX {
                return Err(Cause::LongLine { limit: LINE_MAX });
            }
            // Most answers come within microseconds: to sleep and to be woken takes longer.
            if looks < LOOKS {
                looks += 1;
                thread::yield_now();
            } else {
                let deadline = *deadline.get_or_insert_with(|| Instant::now() + limit);
                if !wait(self.output.as_fd(), PollFlags::POLLIN, deadline)? {
                    return Err(Cause::NoAnswer { seconds: limit.as_secs_f64() });
                }
            }
            self.read_more()?;
        }
    }

    fn end(mut self) -> Vec<String> {
        self.kill();
        // The pipe ends with its writers.
        let deadline = Instant::now() + MESSAGES_MAX;
        while !self.reader.is_finished() && Instant::now() < deadline {
            thread::sleep(LOOK);
        }
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl Process {
    /// Reads what is in the pipe, without a wait.
    fn read_more(&mut self) -> Result<(), Cause> {
        let mut chunk = [0; 4096];
        match self.output.read(&mut chunk) {
            Ok(0) => return Err(self.exited()),
            Ok(n) => self.buffer.extend_from_slice(&chunk[..n]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => return Err(self.exited()),
        }
        Ok(())
    }

    /// Ends the program and what it has started. Also after the end of the program itself: what it has started may remain.
    fn kill(&mut self) {
        // The number of a guard that has ended may be that of another process.
        if cfg!(not(target_os = "linux")) || matches!(self.child.try_wait(), Ok(None)) {
            end(self.child.id() as i32);
        }
    }

    /// The program closed a pipe.
    fn exited(&mut self) -> Cause {
        let status = self.wait_for(END_MAX);
        Cause::Exited { status: status.map(|status| status.to_string()) }
    }

    /// Waits until the program has ended, at most this long.
    fn wait_for(&mut self, limit: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            thread::sleep(LOOK);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.input.take());
        // At the end of its input a program exits, so its output ends.
        let deadline = Instant::now() + END_MAX;
        let mut chunk = [0; 4096];
        while wait(self.output.as_fd(), PollFlags::POLLIN, deadline).unwrap_or(false) {
            match self.output.read(&mut chunk) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(_) => break,
            }
        }
        self.wait_for(deadline.saturating_duration_since(Instant::now()));
        self.kill();
        let _ = self.child.wait();
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).remove(&(self.child.id() as i32));
    }
}

/// Waits until a pipe is ready. Returns whether it is, before the deadline.
fn wait(pipe: std::os::fd::BorrowedFd<'_>, flags: PollFlags, deadline: Instant) -> Result<bool, Cause> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        // Also if the pipe is ready: a program that goes on writing must not be waited for.
        if left.is_zero() {
            return Ok(false);
        }
        // Rounds up, so that a wait of less than a millisecond does not end at once.
        let left = PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(pipe, flags)], left) {
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) => return Ok(true),
            Err(error) => return Err(Cause::Start { program: "poll".to_owned(), error: error.to_string() }),
        }
    }
}

/// Copies the standard error of a program to that of this process, and keeps its last lines.
fn forward_messages(error: ChildStderr, messages: Arc<Mutex<VecDeque<String>>>) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut lines = BufReader::new(error);
        let mut line = Vec::new();
        while let Ok(1..) = lines.by_ref().take(LINE_MAX as u64).read_until(b'\n', &mut line) {
            let _ = std::io::stderr().write_all(&line);
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            let mut messages = messages.lock().unwrap_or_else(PoisonError::into_inner);
            if messages.len() == MESSAGES_SHOWN {
                messages.pop_front();
            }
            messages.push_back(text);
            line.clear();
        }
    })
}
