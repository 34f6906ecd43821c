// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the command under `ptrace`, counts its operations on files of a folder, and makes one of them fail.

use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A command that has ended.
pub struct Ended {
    /// Its exit code; `None` after a signal.
    pub code: Option<i32>,
    /// Number of its operations on files of the folder.
    pub operations: usize,
    pub stdout: String,
    pub stderr: String,
}

/// Where a system call has its file.
#[derive(Clone, Copy)]
enum Place {
    Descriptor,
    /// The number of the argument with the path.
    Path(usize),
    /// The same of a call that opens a file, and of its flags: it counts only if it may create it.
    Created(usize, usize),
    /// The same as `Descriptor` of a call that locks if its second argument is one of these. No signal interrupts it, because it does
    /// not wait.
    Locked(&'static [u64]),
}

/// The operations: system calls of x86-64.
const OPERATIONS: &[(u64, Place)] = &[
    (1, Place::Descriptor),        // write
    (18, Place::Descriptor),       // pwrite64
    (20, Place::Descriptor),       // writev
    (72, Place::Locked(&[6, 37])), // fcntl: F_SETLK, F_OFD_SETLK
    (73, Place::Locked(&[5, 6])),  // flock: LOCK_NB with LOCK_SH, LOCK_EX
    (74, Place::Descriptor),       // fsync
    (75, Place::Descriptor),       // fdatasync
    (77, Place::Descriptor),       // ftruncate
    (285, Place::Descriptor),      // fallocate
    (296, Place::Descriptor),      // pwritev
    (82, Place::Path(0)),          // rename
    (83, Place::Path(0)),          // mkdir
    (258, Place::Path(1)),         // mkdirat
    (264, Place::Path(1)),         // renameat
    (316, Place::Path(1)),         // renameat2
    (2, Place::Created(0, 1)),     // open
    (257, Place::Created(1, 2)),   // openat
];

const CREATE: u64 = 0o100;

/// Runs the command in `dir`. If `fails` has a number, this operation on files of `out` fails with the error.
pub fn run(dir: &Path, arguments: &[&str], out: &Path, fails: Option<(usize, Errno)>) -> Ended {
    let name = |kind: &str| dir.join(format!("traced-{kind}"));
    let file = |kind: &str| File::create(name(kind)).unwrap();
    // The shell stops, so that it is traced from its first system call on.
    let mut command = Command::new("sh");
    command.args(["-c", "kill -STOP $$; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_paceline")]).args(arguments);
    command.current_dir(dir).stdin(Stdio::null()).stdout(file("stdout")).stderr(file("stderr"));
    #[expect(clippy::zombie_processes, reason = "`waitpid` waits for it")]
    let child = command.spawn().unwrap();
    let main = Pid::from_raw(child.id() as i32);
    waitpid(main, Some(WaitPidFlag::WUNTRACED)).unwrap();
    ptrace::attach(main).unwrap();
    waitpid(main, Some(WaitPidFlag::__WALL)).unwrap();
    let follow = Options::PTRACE_O_TRACECLONE | Options::PTRACE_O_TRACEFORK | Options::PTRACE_O_TRACEVFORK;
    let options = Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACEEXEC | Options::PTRACE_O_EXITKILL | follow;
    ptrace::setoptions(main, options).unwrap();
    kill(main, Signal::SIGCONT).unwrap();
    let _ = ptrace::syscall(main, None);
    let mut tracer = Tracer { dir: dir.to_path_buf(), out: out.to_path_buf(), fails, count: 0, inside: HashMap::new() };
    let mut code = None;
    // Other tests have children of their own.
    while let Ok(status) = waitpid(None, Some(WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD)) {
        let signal = match status {
            WaitStatus::Exited(pid, ended) if pid == main => {
                code = Some(ended);
                continue;
            }
            WaitStatus::PtraceSyscall(pid) => {
                tracer.handle_call(pid);
                None
            }
            // A new thread.
            WaitStatus::Stopped(_, Signal::SIGSTOP) => None,
            WaitStatus::Stopped(_, signal) => Some(signal),
            _ => None,
        };
        if let Some(pid) = status.pid() {
            // It may have ended meanwhile.
            let _ = ptrace::syscall(pid, signal);
        }
    }
    let read = |kind: &str| fs::read_to_string(name(kind)).unwrap();
    Ended { code, operations: tracer.count, stdout: read("stdout"), stderr: read("stderr") }
}

struct Tracer {
    dir: PathBuf,
    out: PathBuf,
    fails: Option<(usize, Errno)>,
    count: usize,
    /// Threads inside of a system call, and with which error it fails.
    inside: HashMap<Pid, Option<Errno>>,
}

impl Tracer {
    /// Handles the begin or the end of a system call.
    fn handle_call(&mut self, pid: Pid) {
        let Ok(mut registers) = ptrace::getregs(pid) else { return };
        if let Some(fails) = self.inside.remove(&pid) {
            if let Some(error) = fails {
                registers.rax = -i64::from(error as i32) as u64;
                ptrace::setregs(pid, registers).unwrap();
            }
            return;
        }
        let arguments = [registers.rdi, registers.rsi, registers.rdx];
        let place = OPERATIONS.iter().find(|(number, _)| *number == registers.orig_rax).map(|(_, place)| *place);
        let is_counted = place
            .and_then(|place| file(pid, place, arguments))
            .is_some_and(|file| self.dir.join(file).starts_with(&self.out));
        let is_lock = matches!(place, Some(Place::Locked(_)));
        let is_failing =
            |(number, error): &(usize, Errno)| *number == self.count && !(is_lock && *error == Errno::EINTR);
        let fails = self.fails.filter(|fails| is_counted && is_failing(fails)).map(|(_, error)| error);
        self.count += usize::from(is_counted);
        if fails.is_some() {
            // No system call has this number.
            registers.orig_rax = u64::MAX;
            ptrace::setregs(pid, registers).unwrap();
        }
        self.inside.insert(pid, fails);
    }
}

/// Returns the file of a system call; `None` if it opens one without creating it, or locks none.
fn file(pid: Pid, place: Place, arguments: [u64; 3]) -> Option<PathBuf> {
    let path = match place {
        Place::Locked(commands) if !commands.contains(&arguments[1]) => return None,
        Place::Descriptor | Place::Locked(_) => {
            return fs::read_link(format!("/proc/{pid}/fd/{}", arguments[0] as i32)).ok();
        }
        Place::Path(path) => path,
        Place::Created(path, flags) if arguments[flags] & CREATE != 0 => path,
        Place::Created(..) => return None,
    };
    let mut memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    memory.seek(SeekFrom::Start(arguments[path])).ok()?;
    let mut bytes = vec![0; 4096];
    // The page after the path may not be mapped.
    let mut length = 0;
    while length < bytes.len() && !bytes[..length].contains(&0) {
        match memory.read(&mut bytes[length..(length + 64).min(4096)]) {
            Ok(0) | Err(_) => break,
            Ok(count) => length += count,
        }
    }
    let end = bytes[..length].iter().position(|byte| *byte == 0)?;
    Some(PathBuf::from(String::from_utf8_lossy(&bytes[..end]).into_owned()))
}
