// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process between this one and a program, which ends everything that the program has started (Linux).
//!
//! ```text
//! this process ──▶ guard ──▶ program ──▶ what it starts, in any session or group
//! ```
//!
//! The guard is the subreaper of its descendants (prctl(2), `PR_SET_CHILD_SUBREAPER`): a process whose parent has ended becomes its
//! child. It kills its children until there are none, as soon as the program ends, on SIGTERM, and when this process has ended: then
//! nothing reads the standard error of the program. It needs no privilege, and ends with the status of the program. It shares the memory
//! of this process until that changes it.

#![allow(unsafe_code)] // Forks, and handles signals.

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{
    SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, kill, killpg, sigaction, sigprocmask,
};
use nix::sys::stat::Mode;
use nix::sys::time::TimeSpec;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpid, read, setpgid};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The kernel's list of the children of the calling thread.
const CHILDREN: &std::ffi::CStr = c"/proc/thread-self/children";

/// The time between two looks at children that were killed, and how many there are: five seconds.
const LOOK: TimeSpec = TimeSpec::from_duration(Duration::from_millis(1));
const LOOKS: u32 = 5000;

/// Set by SIGTERM.
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Puts a guard between this process and the program of a command. To the caller, the guard is the child.
pub fn with_guard(command: &mut Command) {
    // SAFETY: After the fork the child only makes system calls: it allocates no memory and takes no locks.
    unsafe {
        command.process_group(0).pre_exec(start);
    }
}

/// Ends a guard, with the program and what that has started.
pub fn end(guard: Pid) {
    let _ = kill(guard, Signal::SIGTERM);
}

/// Forks the program, in which this function returns. The guard does not return.
fn start() -> io::Result<()> {
    // Children do not inherit this.
    set_child_subreaper(true)?;
    let handled = handled_signals();
    // Until the guard waits, signals wait.
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&handled), None)?;
    // SAFETY: The process has one thread, and both sides only make system calls.
    match unsafe { fork() }? {
        ForkResult::Child => {
            sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&handled), None)?;
            // A group of its own: a program that signals its group does not signal the guard.
            setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
            Ok(())
        }
        ForkResult::Parent { child } => guard(child),
    }
}

fn handled_signals() -> SigSet {
    [Signal::SIGTERM, Signal::SIGCHLD].into_iter().collect()
}

extern "C" fn handle_signal(signal: libc::c_int) {
    if signal == Signal::SIGTERM as libc::c_int {
        IS_OVER.store(true, Ordering::Relaxed);
    }
}

/// Waits for the end of the program or of this process, then ends all children, and exits as the program did.
fn guard(program: Pid) -> ! {
    // The pipes of the program, and that on which the standard library waits for its start. Standard error remains.
    // SAFETY: Nothing in this process uses them.
    unsafe {
        libc::close(0);
        libc::close(1);
        if libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) != 0 {
            // Before Linux 5.9.
            for descriptor in 3..4096 {
                libc::close(descriptor);
            }
        }
    }
    let action = SigAction::new(SigHandler::Handler(handle_signal), SaFlags::empty(), SigSet::empty());
    for signal in &handled_signals() {
        // SAFETY: The handler only stores a flag.
        let _ = unsafe { sigaction(signal, &action) };
    }
    // SAFETY: The descriptor stays open until the process ends.
    let messages = unsafe { BorrowedFd::borrow_raw(2) };
    let mut status = None;
    while status.is_none() && !IS_OVER.load(Ordering::Relaxed) {
        status = reap(program).1;
        let mut polled = [PollFd::new(messages, PollFlags::empty())];
        // A signal ends the wait; it cannot come between the look and the wait, because it is blocked meanwhile.
        if status.is_none() && !matches!(ppoll(&mut polled, None, Some(SigSet::empty())), Err(Errno::EINTR)) {
            break;
        }
    }
    status = status.or(end_children(program));
    exit_as(status)
}

/// Reaps children that have ended. Returns whether there are more, and the status of the program if it is among those that ended.
fn reap(program: Pid) -> (bool, Option<WaitStatus>) {
    let mut found = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return (true, found),
            Ok(status) if status.pid() == Some(program) => found = Some(status),
            Ok(_) => {}
            Err(_) => return (false, found),
        }
    }
}

/// Kills every child, and those that become children because of that. Returns the status of the program if it is among them.
fn end_children(program: Pid) -> Option<WaitStatus> {
    let mut status = None;
    for _ in 0..LOOKS {
        let (more, ended) = reap(program);
        status = status.or(ended);
        if !more {
            break;
        }
        // Without the list, its group at least.
        if !kill_children() {
            let _ = killpg(program, Signal::SIGKILL);
        }
        let _ = ppoll(&mut [], Some(LOOK), None);
    }
    status
}

/// Kills the children of this process. Returns whether the kernel lists them.
fn kill_children() -> bool {
    let Ok(file) = open(CHILDREN, OFlag::O_RDONLY, Mode::empty()) else { return false };
    let (mut bytes, mut number, mut is_known) = ([0; 512], 0_i32, false);
    while let Ok(count @ 1..) = read(&file, &mut bytes) {
        is_known = true;
        for byte in &bytes[..count] {
            match byte {
                b'0'..=b'9' => number = number * 10 + i32::from(byte - b'0'),
                _ => {
                    if number > 0 {
                        let _ = kill(Pid::from_raw(number), Signal::SIGKILL);
                    }
                    number = 0;
                }
            }
        }
    }
    is_known
}

/// Ends this process as the program ended.
fn exit_as(status: Option<WaitStatus>) -> ! {
    let code = match status {
        Some(WaitStatus::Exited(_, code)) => code,
        Some(WaitStatus::Signaled(_, signal, _)) => {
            let action = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
            // SAFETY: The default replaces a handler.
            let _ = unsafe { sigaction(signal, &action) };
            let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
            let _ = kill(getpid(), signal);
            128 + signal as i32
        }
        _ => 128 + Signal::SIGKILL as i32,
    };
    // SAFETY: Ends the process without handlers of the other one.
    unsafe { libc::_exit(code) }
}
