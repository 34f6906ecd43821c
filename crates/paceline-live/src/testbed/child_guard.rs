// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ensures that a command behind the link, and all its child processes, end with the link.
//!
//! The link starts its own program twice more as guards: the outer guard ends with the link, the inner guard with the outer.
//! The inner guard is process 1 of a PID namespace, so the kernel ends all processes of the namespace with it, whichever
//! process was killed. Each guard first registers for the death of its parent, then checks that the parent still exists.

use crate::testbed::command_user::CommandUser;
use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Seek};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

/// First argument with which the program runs as a guard: pass the others to [`run`].
pub const GUARD: &str = "hold-command";

/// Exit status of a shell for a command that cannot be started.
const NOT_RUN: u8 = 127;

/// The words with which this program starts itself, if they are not the path of its file.
static PROGRAM: OnceLock<Vec<OsString>> = OnceLock::new();

/// Sets the words with which this program starts itself, and to which a guard's arguments are added. Only the first call counts.
pub fn set_program(words: Vec<OsString>) {
    let _ = PROGRAM.set(words);
}

fn program() -> io::Result<Command> {
    match PROGRAM.get().map(Vec::as_slice) {
        Some([program, words @ ..]) => {
            let mut command = Command::new(program);
            command.args(words);
            Ok(command)
        }
        _ => Ok(Command::new(std::env::current_exe()?)),
    }
}

/// Returns a guard for `words`, a program and its arguments, which run as `user` if there is one and find this text in
/// `/etc/resolv.conf`. Start it in the network namespace of the command, from a thread that outlives it.
pub fn command(words: &[OsString], user: Option<&CommandUser>, resolv_conf: Option<&str>) -> io::Result<Command> {
    let user = user.map_or_else(|| SAME.into(), CommandUser::word);
    guard("outer", [&user, &resolv_conf.unwrap_or(SAME).into()], words)
}

/// In place of a user or of the text of a file: as that of the caller.
const SAME: &str = "-";

fn guard(which: &str, surroundings: [&OsString; 2], words: &[OsString]) -> io::Result<Command> {
    let mut command = program()?;
    command.arg(GUARD).arg(which).arg(std::process::id().to_string()).args(surroundings).args(words);
    Ok(command)
}

/// Runs a guard. The arguments after [`GUARD`] are `outer` or `inner`, the id of the parent process, the id of the command's user or
/// `-`, the text of its `/etc/resolv.conf` or `-`, and the words of the command. Returns the exit status of the command, as a shell does.
pub fn run(arguments: &[OsString]) -> u8 {
    try_run(arguments).unwrap_or_else(|error| {
        eprintln!("cannot run the command: {error}");
        NOT_RUN
    })
}

fn try_run(arguments: &[OsString]) -> io::Result<u8> {
    let [which, parent, user, resolv_conf, words @ ..] = arguments else {
        return Err(io::Error::other("only the link starts guards"));
    };
    let Some((program, rest)) = words.split_first() else { return Err(io::Error::other("the command is empty")) };
    let mut stat = File::open("/proc/self/stat")?;
    let mut end_with_parent = || {
        set_pdeathsig(Signal::SIGKILL)?;
        if parent_by_proc(&mut stat)?.as_str() == parent { Ok(()) } else { Err(io::Error::other("the link has ended")) }
    };
    end_with_parent()?;
    // The command handles interrupts from the terminal.
    flag::register(SIGINT, Arc::new(AtomicBool::new(false)))?;
    let mut command = match which == "outer" {
        true => {
            unshare(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS)?;
            guard("inner", [user, resolv_conf], words)?
        }
        false => {
            // Process 1 receives only signals with a handler.
            for signal in [SIGTERM, SIGHUP] {
                flag::register_conditional_shutdown(signal, 128 + signal, Arc::new(AtomicBool::new(true)))?;
            }
            // Programs must find the process ids of their namespace in /proc.
            mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
            mount(Some("proc"), "/proc", Some("proc"), MsFlags::empty(), None::<&str>)?;
            if resolv_conf != SAME {
                replace_resolv_conf(resolv_conf)?;
            }
            let mut command = Command::new(program);
            command.args(rest);
            if user != SAME
                && let Some(user) = CommandUser::from_word(user)?
            {
                user.become_user()?;
                // The kernel forgets the signal when the user changes.
                end_with_parent()?;
                command.envs(user.variables());
            }
            command
        }
    };
    let child = command.spawn();
    let child = child.map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", program.display())))?;
    status_of(Pid::from_raw(child.id() as i32))
}

/// Mounts this text over `/etc/resolv.conf` of the mount namespace. The file is in memory: no other process finds it, and none remains.
fn replace_resolv_conf(text: &OsString) -> io::Result<()> {
    const MEMORY: &str = "/proc";
    let place = fs::canonicalize("/etc/resolv.conf")?;
    let file = Path::new(MEMORY).join("resolv.conf");
    mount(Some("tmpfs"), MEMORY, Some("tmpfs"), MsFlags::empty(), None::<&str>)?;
    fs::write(&file, text.as_encoded_bytes())?;
    fs::set_permissions(&file, Permissions::from_mode(0o644))?;
    mount(Some(&file), &place, None::<&str>, MsFlags::MS_BIND, None::<&str>)?;
    // The mounted file keeps the file system.
    Ok(umount2(MEMORY, MntFlags::MNT_DETACH)?)
}

/// Waits for a child, and reaps orphaned processes.
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

/// Returns the id of the parent process from `/proc/self/stat` of the `/proc` that both share. Across PID namespaces `getppid`
/// returns 0.
fn parent_by_proc(file: &mut File) -> io::Result<String> {
    let mut stat = String::new();
    file.rewind()?;
    file.read_to_string(&mut stat)?;
    // pid (name) state ppid …; the name may contain blanks and parentheses.
    let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1));
    parent.map(str::to_owned).ok_or_else(|| io::Error::other("/proc/self/stat has no parent"))
}
