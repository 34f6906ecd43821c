//! What the kernel is asked before a run, and what is set in a namespace, so that a run depends on the kernel's version and
//! not on how somebody has set it up.

use paceline_lab::plan::{FlowKind, Plan};
use socket2::{Domain, Socket, Type};
use std::fs;
use std::io;

/// Algorithms that the kernel calls by another name than scenarios do.
const OTHER_NAMES: &[(&str, &str)] = &[("new-reno", "reno")];

/// Settings of a namespace, below `/proc/sys/net/ipv4`.
const SETTINGS: &[(&str, &str)] = &[
    // No connection inherits another's threshold.
    ("tcp_no_metrics_save", "1"),
    // Nobody's buffer is the limit: 32 MiB hold a window of 16 MiB, twice what 100 Mbit/s fill in 600 ms. The receiver's is
    // that large from the beginning and stays so.
    ("tcp_rmem", "4096 33554432 33554432"),
    ("tcp_wmem", "4096 16384 33554432"),
    ("tcp_moderate_rcvbuf", "0"),
    // What the simulated segments have.
    ("tcp_window_scaling", "1"),
    ("tcp_timestamps", "1"),
    ("tcp_sack", "1"),
    ("tcp_ecn", "0"),
    ("tcp_mtu_probing", "0"),
    // However bad the path is, a connection is not given up.
    ("tcp_syn_retries", "127"),
    ("tcp_retries2", "255"),
];

/// What the kernel calls a congestion control.
pub fn kernel_name(congestion: &str) -> &str {
    OTHER_NAMES.iter().find(|(ours, _)| *ours == congestion).map_or(congestion, |(_, kernels)| kernels)
}

/// Makes the calling thread's namespace ready for TCP flows.
///
/// # Errors
/// The process may not change its settings.
pub fn prepare() -> io::Result<()> {
    for (name, value) in SETTINGS {
        match fs::write(format!("/proc/sys/net/ipv4/{name}"), value) {
            // A kernel of another time, which does not have the habit that would be set.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io::Error::new(error.kind(), format!("cannot set `{name}`: {error}"))),
            Ok(()) => {}
        }
    }
    Ok(())
}

/// The first congestion control that flows of the plan want and do not get, in words; `None`: they get all. One that is a
/// module is loaded, if the process may. To be asked in a namespace of the run: what processes without privilege may
/// choose is restricted in the machine's own.
pub fn missing(plan: &Plan) -> Option<String> {
    let mut wanted = plan.flows.iter().filter_map(|flow| match &flow.kind {
        FlowKind::Tcp(tcp) => Some(kernel_name(tcp.config.congestion)),
        FlowKind::Media(_) => None,
    });
    let name = wanted.find(|name| !has(name))?;
    let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    let known = known.split_whitespace().collect::<Vec<_>>();
    Some(if known.contains(&name) {
        format!("this process may not choose TCP congestion control `{name}`")
    } else {
        let known = known.join(", ");
        format!("this kernel has no TCP congestion control `{name}`, only {known}; `modprobe tcp_{name}` may bring it")
    })
}

/// Whether a socket can have it: the kernel's list leaves out modules that are not loaded yet.
pub(super) fn has(name: &str) -> bool {
    Socket::new(Domain::IPV4, Type::STREAM, None).and_then(|socket| socket.set_tcp_congestion(name.as_bytes())).is_ok()
}
