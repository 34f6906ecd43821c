// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two TCP socket options that `nix` does not define. Its macros check size and type of the values.

use nix::sys::socket::{GetSockOpt, SetSockOpt};
use nix::{getsockopt_impl, libc, setsockopt_impl, sockopt_impl};
use std::io;
use std::os::fd::AsFd;

/// The first fields of `struct tcp_info` (`linux/tcp.h`). The kernel appends new fields only, and fills the requested size.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Info {
    state: u8,
    /// A value of `enum tcp_ca_state`.
    pub congestion_state: u8,
    retransmits: u8,
    probes: u8,
    backoff: u8,
    options: u8,
    window_scales: u8,
    flags: u8,
    timeout: u32,
    ack_timeout: u32,
    /// Data of a full segment, bytes.
    pub segment: u32,
    peer_segment: u32,
    unacknowledged: u32,
    selectively_acknowledged: u32,
    lost: u32,
    retransmitted: u32,
    forward_acknowledged: u32,
    last_data_sent: u32,
    last_ack_sent: u32,
    last_data_received: u32,
    last_ack_received: u32,
    path_mtu: u32,
    receive_threshold: u32,
    /// Smoothed round-trip time, µs; 0 before the first sample.
    pub round_trip: u32,
    round_trip_variance: u32,
    /// Slow-start threshold, segments.
    pub threshold: u32,
    /// Congestion window, segments.
    pub window: u32,
}

impl Info {
    /// Returns the current state of a socket.
    pub fn of(socket: &impl AsFd) -> io::Result<Self> {
        Ok(TcpInfo.get(socket)?)
    }
}

/// Sets the maximum advertised window of a connection, or of the connections of a listener, bytes.
pub fn clamp_window(socket: &impl AsFd, bytes: i32) -> io::Result<()> {
    Ok(TcpWindowClamp.set(socket, &bytes)?)
}

sockopt_impl!(TcpInfo, GetOnly, libc::IPPROTO_TCP, libc::TCP_INFO, Info);
sockopt_impl!(TcpWindowClamp, SetOnly, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, i32);
