// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access from behind a link to the networks of this machine: masquerading by nftables, and the machine's name servers.
//!
//! Each link has a table of its own, `paceline_INDEX`, with the index of its device, which ends with its process. A network namespace rarely
//! gives an index to a second device. The table is deleted with this value; that of a process that was killed is deleted by the next link
//! that starts or ends.

use nix::net::if_::{if_indextoname, if_nametoindex};
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Prefix of the names of tables.
const TABLE: &str = "paceline_";

/// How long a link waits for others that change rules.
const LOCK_LIMIT: Duration = Duration::from_secs(10);

/// The rules of a link and the settings that it changed.
#[derive(Debug)]
pub(crate) struct Nat {
    table: String,
    resolv_conf: Option<String>,
    ipv6: bool,
}

impl Nat {
    /// Lets the network of a link's far device reach what this machine reaches. `ipv4` and `ipv6` are the addresses of that device.
    ///
    /// IPv6 is included if this machine already forwards it: to enable that would change the routes of a machine that learns
    /// them from router advertisements.
    ///
    /// # Errors
    /// `nft` is not installed, the process lacks the privilege, or this machine has no default route.
    pub(crate) fn open(device: &str, ipv4: Ipv4Addr, ipv6: Option<Ipv6Addr>) -> io::Result<Self> {
        let _lock = lock()?;
        remove_stale(None)?;
        let mut changed = Vec::new();
        let outer = default_devices(&fs::read_to_string("/proc/net/route")?);
        if outer.is_empty() {
            return Err(io::Error::other("this machine has no default route"));
        }
        for name in &outer {
            if fs::read_to_string(forwarding(name))?.trim() == "0" {
                changed.push(name.as_str());
            }
        }
        let (resolver, resolv_conf) =
            resolver(&fs::read_to_string("/etc/resolv.conf").unwrap_or_default(), ipv4).unzip();
        let dns = resolver.map(|server: Ipv4Addr| {
            // Packets to the loopback address of the name server may arrive from the link alone.
            let _ = fs::write(format!("/proc/sys/net/ipv4/conf/{device}/route_localnet"), "1");
            let to = |protocol: &str| {
                format!("iifname \"{device}\" ip daddr {ipv4} {protocol} dport 53 dnat ip to {server}\n")
            };
            format!("chain dns {{\ntype nat hook prerouting priority dstnat\n{}{}}}\n", to("udp"), to("tcp"))
        });
        let loopback = format!(
            "chain loopback {{\ntype filter hook input priority filter\nct status dnat accept\n\
             iifname \"{device}\" ip daddr 127.0.0.0/8 drop\n}}\n"
        );
        let ipv6 = ipv6.filter(|_| forwards_ipv6());
        let others = format!("oifname != \"{device}\" masquerade\n");
        let table = format!("{TABLE}{}", if_nametoindex(device)?);
        nft(&format!(
            "table inet {table} {{\ncomment \"{}\"\nchain outward {{\ntype nat hook postrouting priority srcnat\n\
             ip saddr {}/24 {others}{}}}\n{INWARD}{loopback}{}}}\n",
            changed.join(" "),
            ipv4,
            ipv6.map(|address| format!("ip6 saddr {address}/64 {others}")).unwrap_or_default(),
            dns.unwrap_or_default()
        ))?;
        for name in changed.iter().copied().chain([device]) {
            if let Err(error) = fs::write(forwarding(name), "1") {
                remove_stale(Some(&table))?;
                return Err(error);
            }
        }
        Ok(Self { table, resolv_conf, ipv6: ipv6.is_some() })
    }

    /// Returns whether the command reaches other networks by IPv6.
    pub(crate) fn has_ipv6(&self) -> bool {
        self.ipv6
    }

    /// Returns the text of `/etc/resolv.conf` for the command, if that of this machine names an address that the command cannot
    /// reach.
    pub(crate) fn resolv_conf(&self) -> Option<&str> {
        self.resolv_conf.as_deref()
    }
}

impl Drop for Nat {
    fn drop(&mut self) {
        // Without the lock the rules are removed, too: they must not remain.
        let _lock = lock();
        if let Err(error) = remove_stale(Some(&self.table)) {
            eprintln!("a table of nftables could not be removed: {error}");
        }
    }
}

/// The rules that let only answers pass to the commands of links, those without access to other networks included: the forwarding that a link
/// enables would let neighbours reach them. The device `paceline` is the own end of a command in which another link runs.
const INWARD: &str = "chain inward {\ntype filter hook forward priority filter\nct state established,related accept\n\
                      oifname \"paceline*\" oifname != \"paceline\" drop\n}\n";

/// Waits until no other link of this network namespace changes rules. The lock is that of the namespace's file, so containers that share the
/// namespace have the same one, and none remains.
///
/// # Errors
/// Another process has it for ten seconds.
fn lock() -> io::Result<File> {
    let (file, started) = (File::open("/proc/thread-self/ns/net")?, Instant::now());
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if started.elapsed() > LOCK_LIMIT => {
                let cause = "another process has locked /proc/self/ns/net for 10 s; `lslocks` shows it";
                return Err(io::Error::other(cause));
            }
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Removes the own table, and then those of links that no longer exist.
fn remove_stale(own: Option<&str>) -> io::Result<()> {
    own.map_or(Ok(()), remove)?;
    for table in tables()? {
        let device = table.trim_start_matches(TABLE).parse().ok().and_then(|index| if_indextoname(index).ok());
        // Without a device nix 0.31 returns an empty name in place of an error.
        if device.is_none_or(|name| name.is_empty()) {
            remove(&table)?;
        }
    }
    Ok(())
}

/// Deletes a table. The `nft` of a killed link may delete it meanwhile.
fn remove(table: &str) -> io::Result<()> {
    match delete(table) {
        Err(_) if !tables()?.iter().any(|other| other == table) => Ok(()),
        deleted => deleted.map_err(|error| io::Error::other(format!("{table}: {error}"))),
    }
}

/// Deletes a table. With the last one, the devices stop forwarding that had not forwarded before; another link restores later what this one
/// changed. A process that is killed at any point leaves either the table or nothing.
fn delete(table: &str) -> io::Result<()> {
    let rules = nft_output(&["list", "table", "inet", table])?;
    let devices: Vec<&str> = changed_devices(&rules).collect();
    let mut deletion = format!("delete table inet {table}\n");
    match tables()?.iter().find(|other| *other != table) {
        Some(other) if !devices.is_empty() => {
            deletion += &format!("add chain inet {other} {table} {{ comment \"{}\"; }}\n", devices.join(" "));
        }
        Some(_) => {}
        None => {
            for device in devices {
                match fs::write(forwarding(device), "0") {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
        }
    }
    nft(&deletion)
}

/// Returns the devices in the comments of a table.
fn changed_devices(rules: &str) -> impl Iterator<Item = &str> {
    let comments = rules.lines().filter_map(|line| line.trim().strip_prefix("comment \""));
    comments.flat_map(|text| text.trim_end_matches('"').split_whitespace())
}

fn forwarding(device: &str) -> String {
    format!("/proc/sys/net/ipv4/conf/{device}/forwarding")
}

fn tables() -> io::Result<Vec<String>> {
    let all = nft_output(&["list", "tables", "inet"])?;
    let name = |line: &str| line.split_whitespace().nth(2).filter(|name| name.starts_with(TABLE)).map(str::to_owned);
    Ok(all.lines().filter_map(name).collect())
}

/// Returns whether this machine forwards IPv6 and has a default route for it.
fn forwards_ipv6() -> bool {
    let forwards = fs::read_to_string("/proc/sys/net/ipv6/conf/all/forwarding").is_ok_and(|text| text.trim() == "1");
    forwards && fs::read_to_string("/proc/net/ipv6_route").is_ok_and(|routes| has_ipv6_default(&routes))
}

/// Returns whether the text of `/proc/net/ipv6_route` has a default route.
fn has_ipv6_default(routes: &str) -> bool {
    routes.lines().any(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        // Destination, prefix length, six columns more, flags and device. The kernel's own route rejects packets.
        let [destination, "00", _, _, _, _, _, _, flags, _] = columns[..] else { return false };
        let rejects = u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & RTF_REJECT != 0);
        destination.bytes().all(|digit| digit == b'0') && !rejects
    })
}

/// Flag of a route that rejects packets (`linux/route.h`).
const RTF_REJECT: u32 = 0x200;

/// Returns the devices of the default routes in the text of `/proc/net/route`.
fn default_devices(routes: &str) -> Vec<String> {
    let device = |line: &str| {
        let mut columns = line.split_whitespace();
        let (device, destination) = (columns.next()?, columns.next()?);
        let mask = columns.nth(5)?;
        (destination == "00000000" && mask == "00000000").then(|| device.to_owned())
    };
    let mut devices: Vec<String> = routes.lines().filter_map(device).collect();
    devices.dedup();
    devices
}

/// Returns the name server to which queries at `far` go, and the configuration that names `far`; `None` if the machine's own
/// configuration names a server that is not on loopback.
fn resolver(resolv_conf: &str, far: Ipv4Addr) -> Option<(Ipv4Addr, String)> {
    let server = |line: &str| line.trim().strip_prefix("nameserver")?.trim().parse::<IpAddr>().ok();
    let servers: Vec<IpAddr> = resolv_conf.lines().filter_map(server).collect();
    if servers.iter().any(|server| !server.is_loopback()) {
        return None;
    }
    let local = servers.iter().find_map(|server| match server {
        IpAddr::V4(server) => Some(*server),
        IpAddr::V6(_) => None,
    })?;
    let others = resolv_conf.lines().filter(|line| server(line).is_none());
    Some((
        local,
        std::iter::once(format!("nameserver {far}")).chain(others.map(str::to_owned)).collect::<Vec<_>>().join("\n")
            + "\n",
    ))
}

/// Applies rules.
fn nft(rules: &str) -> io::Result<()> {
    let mut child = command(&["-f", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(explained)?;
    child.stdin.take().expect("stdin is piped").write_all(rules.as_bytes())?;
    let output = child.wait_with_output()?;
    if output.status.success() { Ok(()) } else { Err(io::Error::other(said(&output.stderr))) }
}

fn nft_output(arguments: &[&str]) -> io::Result<String> {
    let output = command(arguments).output().map_err(explained)?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(io::Error::other(said(&output.stderr))),
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new("nft");
    command.args(arguments);
    command
}

fn said(stderr: &[u8]) -> String {
    format!("nft: {}", String::from_utf8_lossy(stderr).lines().next().unwrap_or("failed"))
}

fn explained(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound => {
            io::Error::new(error.kind(), "`nft` is not installed (Debian and Ubuntu: `apt-get install nftables`)")
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_devices_of_default_routes() {
        let routes = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                      eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
                      eth0\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n\
                      tun0\t00000000\t00000000\t0003\t0\t0\t0\t00000080\t0\t0\t0\n";
        assert_eq!(default_devices(routes), ["eth0"]);
        assert!(default_devices("").is_empty());
    }

    #[test]
    fn finds_a_default_route_of_ipv6() {
        let route = |destination: &str, length: &str, flags: &str| {
            format!("{destination:0>32} {length} {:032} 00 {:032} 00000400 00000003 00000000 {flags} eth0\n", 0, 0)
        };
        assert!(has_ipv6_default(&(route("fd00", "40", "00000001") + &route("0", "00", "00000003"))));
        assert!(!has_ipv6_default(&(route("fd00", "40", "00000001") + &route("0", "00", "00200200"))));
        assert!(!has_ipv6_default("") && !has_ipv6_default(&route("1", "00", "00000003")));
    }

    #[test]
    fn a_name_server_on_loopback_is_reached_over_the_link() {
        let far = Ipv4Addr::new(100, 127, 3, 1);
        let (server, text) = resolver("# stub\nnameserver 127.0.0.53\noptions edns0\nsearch home\n", far).unwrap();
        assert_eq!(server, Ipv4Addr::new(127, 0, 0, 53));
        assert_eq!(text, "nameserver 100.127.3.1\n# stub\noptions edns0\nsearch home\n");
        assert_eq!(resolver("nameserver 127.0.0.1\nnameserver 192.0.2.1\n", far), None);
        assert_eq!(resolver("nameserver ::1\n", far), None);
    }

    #[test]
    fn comments_name_the_changed_devices() {
        let rules =
            "table inet paceline_7 {\n\tcomment \"eth0 br-1\"\n\tchain paceline_5 {\n\t\tcomment \"wlan0\"\n\t}\n}\n";
        assert_eq!(changed_devices(rules).collect::<Vec<_>>(), ["eth0", "br-1", "wlan0"]);
        assert_eq!(changed_devices("table inet paceline_7 {\n\tcomment \"\"\n}\n").count(), 0);
    }
}
