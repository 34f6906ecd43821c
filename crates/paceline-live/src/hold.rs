//! A command behind the link, and everything that it starts, held so that none of it outlives the link.
//!
//! The link's process starts its own program again, twice over: the outer holder dies with the link, the inner one with the
//! outer. The inner is process 1 of a process namespace, so the kernel ends all that is in there when it ends, whoever was
//! killed. Each holder asks for its death first and then looks whether it came too late to do so.

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// First argument by which the program is asked to be a holder: hand the rest to [`hold`].
pub const HOLD: &str = "hold-command";

/// Exit status of a shell for a command that cannot be run.
const NOT_RUN: u8 = 127;

/// A holder of `words`, a program and its arguments: to be started by a thread that lives as long as it does, in the
/// network namespace that the command is to be in.
///
/// # Errors
/// The system does not say which program this is.
pub fn holder(words: &[String]) -> io::Result<Command> {
    holder_of("outer", words)
}

fn holder_of(which: &str, words: &[String]) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(HOLD).arg(which).arg(std::process::id().to_string()).args(words);
    Ok(command)
}

/// What the program does when its first argument is [`HOLD`]: the other arguments are `outer` or `inner`, the process that
/// it must not outlive, and the command's words. Answers the command's exit status as a shell tells it.
pub fn hold(arguments: &[String]) -> u8 {
    match held(arguments) {
        Ok(status) => status.code().unwrap_or(128 + status.signal().unwrap_or(0)) as u8,
        Err(error) => {
            eprintln!("cannot run the command: {error}");
            NOT_RUN
        }
    }
}

fn held(arguments: &[String]) -> io::Result<ExitStatus> {
    let [which, parent, words @ ..] = arguments else { return Err(io::Error::other("it is for the link alone")) };
    let Some((program, rest)) = words.split_first() else { return Err(io::Error::other("there is none")) };
    set_pdeathsig(Signal::SIGKILL)?;
    if parent_by_proc()? != *parent {
        return Err(io::Error::other("the link is gone"));
    }
    // An interrupt from the terminal is the command's to answer.
    signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::new(AtomicBool::new(false)))?;
    let mut child = match which.as_str() {
        "outer" => {
            unshare(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS)?;
            holder_of("inner", words)?
        }
        _ => {
            // Programs that look themselves up in /proc must find the numbers of their own namespace there.
            mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
            mount(Some("proc"), "/proc", Some("proc"), MsFlags::empty(), None::<&str>)?;
            let mut command = Command::new(program);
            command.args(rest);
            command
        }
    };
    child.status().map_err(|error| io::Error::new(error.kind(), format!("`{program}`: {error}")))
}

/// The process that started this one, as the `/proc` that both see numbers it. `getppid` would say 0 across namespaces.
fn parent_by_proc() -> io::Result<String> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // pid (name) state ppid …; a name may hold blanks and parentheses.
    let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1));
    parent.map(str::to_owned).ok_or_else(|| io::Error::other("/proc/self/stat says no parent"))
}
