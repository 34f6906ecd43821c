// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel settings of a namespace, so that a run depends on the version of the kernel and not on the host's
//! configuration; available congestion controls.

use paceline_netsim::flow::tcp::TcpEcn;
use paceline_netsim::plan::{FlowKind, Plan};
use socket2::{Domain, Socket, Type};
use std::fs;
use std::io;

/// Congestion controls with different names in scenarios and in the kernel.
const OTHER_NAMES: &[(&str, &str)] = &[("new-reno", "reno")];

/// Settings of a namespace, below `/proc/sys/net/ipv4`.
const SETTINGS: &[(&str, &str)] = &[
    // A connection does not inherit the threshold of another.
    ("tcp_no_metrics_save", "1"),
    // Buffers are not the limit: 32 MiB hold a window of 16 MiB, twice the product of 100 Mbit/s and 600 ms. The
    // receive buffer has this size from the start.
    ("tcp_rmem", "4096 33554432 33554432"),
    ("tcp_wmem", "4096 16384 33554432"),
    ("tcp_moderate_rcvbuf", "0"),
    // As in the simulated TCP.
    ("tcp_window_scaling", "1"),
    ("tcp_timestamps", "1"),
    ("tcp_sack", "1"),
    ("tcp_ecn", "0"),
    ("tcp_mtu_probing", "0"),
    // A connection never times out.
    ("tcp_syn_retries", "127"),
    ("tcp_retries2", "255"),
];

/// Returns the kernel's name of a congestion control.
pub fn kernel_name(congestion: &str) -> &str {
    OTHER_NAMES.iter().find(|(ours, _)| *ours == congestion).map_or(congestion, |(_, kernels)| kernels)
}

/// Configures the calling thread's namespace for TCP flows.
pub fn prepare() -> io::Result<()> {
    for (name, value) in SETTINGS {
        match fs::write(format!("/proc/sys/net/ipv4/{name}"), value) {
            // This kernel version does not have the setting.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io::Error::new(error.kind(), format!("cannot set `{name}`: {error}"))),
            Ok(()) => {}
        }
    }
    Ok(())
}

/// Switches classic ECN of the calling thread's namespace on if the TCP flows of the plan use it, else off.
pub fn set_ecn(plan: &Plan) -> io::Result<()> {
    let on = uses(plan).any(|ecn| ecn == TcpEcn::Classic);
    fs::write("/proc/sys/net/ipv4/tcp_ecn", if on { "1" } else { "0" })
}

/// The use of ECN by each TCP flow.
fn uses(plan: &Plan) -> impl Iterator<Item = TcpEcn> + '_ {
    plan.flows.iter().filter_map(|flow| match &flow.kind {
        FlowKind::Tcp(tcp) => Some(tcp.config.ecn),
        FlowKind::Media(_) => None,
    })
}

/// Returns why the kernel cannot use ECN as the plan asks; `None` if it can. The setting is one for a namespace.
pub fn ecn_problem(plan: &Plan) -> Option<String> {
    if uses(plan).any(|ecn| ecn == TcpEcn::Alternative) {
        return Some("the kernel's NewReno and CUBIC have no `abe`".to_owned());
    }
    // A listener without the flow's congestion control refuses ECN, and DCTCP would silently be Reno.
    if uses(plan).any(|ecn| matches!(ecn, TcpEcn::Accurate | TcpEcn::L4s)) {
        return Some(
            "the testbed negotiates no accurate ECN, which `dctcp` and `prague` need; use the simulator".to_owned(),
        );
    }
    let is_mixed = uses(plan).any(|ecn| ecn == TcpEcn::Classic) && uses(plan).any(|ecn| ecn != TcpEcn::Classic);
    is_mixed.then(|| "on the testbed all TCP flows use classic ECN, or none".to_owned())
}

/// Returns a description of the first congestion control of the plan that is not available; `None` if all are. Loads
/// kernel modules if the process has the privilege. Call this in a namespace of the run: in the initial namespace the
/// choice of an unprivileged process is restricted.
pub fn missing(plan: &Plan) -> Option<String> {
    let mut wanted = plan.flows.iter().filter_map(|flow| match &flow.kind {
        FlowKind::Tcp(tcp) => Some(kernel_name(tcp.config.congestion)),
        FlowKind::Media(_) => None,
    });
    let name = wanted.find(|name| !has(name))?;
    let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    let known = known.split_whitespace().collect::<Vec<_>>();
    Some(if known.contains(&name) {
        format!("this process lacks the privilege for TCP congestion control `{name}`")
    } else {
        let known = known.join(", ");
        format!("this kernel has no TCP congestion control `{name}`, only {known}; try `modprobe tcp_{name}`")
    })
}

/// Returns whether a socket can use a congestion control. The kernel's list lacks modules that are not loaded yet.
pub(super) fn has(name: &str) -> bool {
    Socket::new(Domain::IPV4, Type::STREAM, None).and_then(|socket| socket.set_tcp_congestion(name.as_bytes())).is_ok()
}
