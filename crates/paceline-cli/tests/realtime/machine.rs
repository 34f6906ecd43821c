// SPDX-License-Identifier: MIT OR Apache-2.0
//! Network namespaces that stand for machines, and what commands leave on them.

use super::track::{has_tools, is_root};
use nix::sched::{CloneFlags, setns};
use paceline_live::testbed::namespace::Namespace;
use std::fs::{self, File};
use std::panic::resume_unwind;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::{Duration, Instant};

/// Variable of the environment that marks all processes of a test.
const MARK: &str = "PACELINE_TEST_MARK";

/// Tests whose load or whose programs disturb others have it for reading, those that measure the verdict on a host for writing.
static LOAD: RwLock<()> = RwLock::new(());

/// Returns a lock of a test that loads the machine.
pub fn loading() -> RwLockReadGuard<'static, ()> {
    LOAD.read().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a lock of a test that needs a machine without such load.
pub fn quiet() -> RwLockWriteGuard<'static, ()> {
    LOAD.write().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether this machine can stand for several with IPv6.
pub fn is_available() -> bool {
    let has_ipv6 = Path::new("/proc/net/if_inet6").exists();
    if !has_ipv6 {
        eprintln!("SKIPPED: this kernel has no IPv6");
    }
    has_ipv6 && has_tools() && is_root()
}

/// A network namespace with IPv4 and IPv6, which a sleeping process keeps.
pub struct Machine(Child);

impl Machine {
    fn new() -> Self {
        let namespace = Namespace::new().unwrap();
        assert!(namespace.enable_ipv6().unwrap(), "this kernel has IPv6");
        Self(namespace.within(|| Command::new("sleep").arg("2h").spawn()).unwrap())
    }

    /// Returns the process in the namespace.
    pub fn process(&self) -> u32 {
        self.0.id()
    }

    /// Runs a script, and returns what it prints.
    pub fn sh(&self, script: &str) -> String {
        let run = || Command::new("sh").args(["-e", "-c", script]).stderr(Stdio::inherit()).output().unwrap();
        let output = within(self.process(), run);
        assert!(output.status.success(), "{script}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts the command with these arguments; what it prints goes to the files `name.out` and `name.err` of a folder, and its
    /// temporary files to the folder `tmp` there. Its processes, and theirs, are marked.
    pub fn start(&self, program: &Path, arguments: &[&str], folder: &Path, name: &str) -> Child {
        let file = |kind: &str| File::create(folder.join(name).with_extension(kind)).unwrap();
        let tmp = folder.join("tmp");
        fs::create_dir_all(&tmp).unwrap();
        let mut command = Command::new(program);
        command.args(arguments).env("TMPDIR", tmp).env(MARK, folder.join(name)).env_remove("SUDO_UID");
        within(self.process(), || command.stdin(Stdio::null()).stdout(file("out")).stderr(file("err")).spawn().unwrap())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Creates a machine, 192.0.2.2 and 2001:db8::2 at its device `out0`, and a neighbour, 192.0.2.1 and 2001:db8::1 at `in0`.
pub fn neighbours() -> [Machine; 2] {
    let [machine, neighbour] = [Machine::new(), Machine::new()];
    machine.sh(&format!("ip link add out0 type veth peer name in0 netns {}", neighbour.process()));
    for (machine, device, host) in [(&machine, "out0", 2), (&neighbour, "in0", 1)] {
        machine.sh(&format!(
            "ip link set {device} addrgenmode none; ip addr add 192.0.2.{host}/24 dev {device}; ip addr add 2001:db8::{host}/64 dev {device} nodad; ip link set {device} up"
        ));
    }
    for (machine, device) in [(&machine, "out0"), (&neighbour, "in0")] {
        let shows = format!("ip -6 route show table local dev {device}");
        let is_ready = || machine.sh(&shows).contains("ff00::/8").then_some(());
        wait_for("a device is ready", Duration::from_secs(10), is_ready);
    }
    [machine, neighbour]
}

/// Calls `act` in the network namespace of a process, on a new thread.
pub fn within<T: Send>(process: u32, act: impl FnOnce() -> T + Send) -> T {
    let entered = || {
        setns(File::open(format!("/proc/{process}/ns/net")).unwrap(), CloneFlags::CLONE_NEWNET).unwrap();
        act()
    };
    thread::scope(|scope| scope.spawn(entered).join()).unwrap_or_else(|panic| resume_unwind(panic))
}

/// Returns the processes of `start` with this folder and name, or with any name, and their arguments.
pub fn processes(folder: &Path, name: Option<&str>) -> Vec<(u32, String)> {
    let mark = match name {
        Some(name) => format!("{MARK}={}\0", folder.join(name).display()),
        None => format!("{MARK}={}/", folder.display()),
    };
    let process = |entry: std::io::Result<fs::DirEntry>| {
        let id: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let read =
            |file: &str| Some(String::from_utf8_lossy(&fs::read(format!("/proc/{id}/{file}")).ok()?).into_owned());
        read("environ")?.contains(&mark).then_some((id, read("cmdline")?))
    };
    fs::read_dir("/proc").unwrap().filter_map(process).collect()
}

/// Waits until `value` returns something, and returns it with the time that this took.
pub fn wait_for<T>(what: &str, limit: Duration, mut value: impl FnMut() -> Option<T>) -> (T, Duration) {
    let started = Instant::now();
    loop {
        if let Some(value) = value() {
            return (value, started.elapsed());
        }
        assert!(started.elapsed() < limit, "timeout: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the sorted lines of the state of a machine: network settings, rules, interfaces, addresses, routes, names of namespaces, mounts,
/// and temporary files of commands.
pub fn state(machine: &Machine, folder: &Path) -> Vec<String> {
    const SHOW: &str = "for show in 'ip -br link' 'ip -br addr' 'ip route show table all' 'ip -6 route show table all' 'ip rule' \
                        'ip -6 rule' 'ip netns' 'nft list ruleset' 'cat /proc/thread-self/mountinfo'; do $show | sed \"s|^|$show: |\"; done; \
                        grep -r '' /proc/sys/net 2> /dev/null | grep -v conntrack || true";
    let mut lines: Vec<String> = machine.sh(SHOW).lines().map(str::to_owned).collect();
    lines.extend(processes(folder, None).into_iter().map(|(_, arguments)| format!("process: {arguments}")));
    let files = fs::read_dir(folder.join("tmp")).into_iter().flatten();
    lines.extend(files.map(|file| format!("file: {}", file.unwrap().path().display())));
    lines.sort();
    lines
}

/// Returns the lines that only one of two states has.
pub fn difference(before: &[String], after: &[String]) -> Vec<String> {
    let lacks = |mark: &str, all: &[String], lines: &[String]| {
        lines.iter().filter(|line| !all.contains(line)).map(|line| format!("{mark} {line}")).collect::<Vec<_>>()
    };
    [lacks("-", after, before), lacks("+", before, after)].concat()
}
