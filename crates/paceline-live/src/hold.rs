//! A command behind the link, and everything that it starts, held so that none of it outlives the link.
//!
//! The link's process starts its own program again, twice over: the outer holder dies with the link, the inner one with the
//! outer. The inner is process 1 of a process namespace, so the kernel ends all that is in there when it ends, whoever was
//! killed. Each holder asks for its death first and then looks whether it came too late to do so.

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::process::Command;
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
pub fn holder(words: &[OsString]) -> io::Result<Command> {
    holder_of("outer", words)
}

fn holder_of(which: &str, words: &[OsString]) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(HOLD).arg(which).arg(std::process::id().to_string()).args(words);
    Ok(command)
}

/// What the program does when its first argument is [`HOLD`]: the other arguments are `outer` or `inner`, the process that
/// it must not outlive, and the command's words. Answers the command's exit status as a shell tells it.
pub fn hold(arguments: &[OsString]) -> u8 {
    held(arguments).unwrap_or_else(|error| {
        eprintln!("cannot run the command: {error}");
        NOT_RUN
    })
}

fn held(arguments: &[OsString]) -> io::Result<u8> {
    let [which, parent, words @ ..] = arguments else { return Err(io::Error::other("it is for the link alone")) };
    let Some((program, rest)) = words.split_first() else { return Err(io::Error::other("there is none")) };
    set_pdeathsig(Signal::SIGKILL)?;
    if parent_by_proc()?.as_str() != parent {
        return Err(io::Error::other("the link is gone"));
    }
    // An interrupt from the terminal is the command's to answer.
    flag::register(SIGINT, Arc::new(AtomicBool::new(false)))?;
    let mut command = match which == "outer" {
        true => {
            unshare(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS)?;
            holder_of("inner", words)?
        }
        false => {
            // Process 1 hears no signal that it did not ask for.
            for signal in [SIGTERM, SIGHUP] {
                flag::register_conditional_shutdown(signal, 128 + signal, Arc::new(AtomicBool::new(true)))?;
            }
            // Programs that look themselves up in /proc must find the numbers of their own namespace there.
            mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
            mount(Some("proc"), "/proc", Some("proc"), MsFlags::empty(), None::<&str>)?;
            let mut command = Command::new(program);
            command.args(rest);
            command
        }
    };
    let child = command.spawn();
    let child = child.map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", program.display())))?;
    status_of(Pid::from_raw(child.id() as i32))
}

/// Waits for a child, and meanwhile buries what others have left to process 1.
fn status_of(child: Pid) -> io::Result<u8> {
    loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, code)) if pid == child => return Ok(code as u8),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == child => return Ok(128 + signal as u8),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The process that started this one, as the `/proc` that both see numbers it. `getppid` would say 0 across namespaces.
fn parent_by_proc() -> io::Result<String> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // pid (name) state ppid …; a name may hold blanks and parentheses.
    let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1));
    parent.map(str::to_owned).ok_or_else(|| io::Error::other("/proc/self/stat says no parent"))
}
