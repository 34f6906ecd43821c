// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sending program: one connection for each period and each transfer of the workload.

use super::options::Info;
use super::signals::KernelSignals;
use super::{TcpProgram, kernel_name};
use nix::libc::MSG_NOSIGNAL;
use nix::poll::{PollFd, PollFlags};
use paceline_netsim::flow::tcp::{TcpSenderEvent, Workload, draw_pause, draw_transfer_size};
use paceline_units::{DataSize, RandomStream, Time, TimeDelta};
use socket2::{Domain, Socket, Type};
use std::io::{self, ErrorKind, Read};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4};
use std::os::fd::AsFd;
use std::time::Duration;

/// Interval of samples of a connection's state.
const SAMPLE: TimeDelta = TimeDelta::from_millis(20);

/// Size of the TCP timestamp option. The kernel includes it in the segment size, the plan does not.
const TIMESTAMP: u64 = 12;

/// Duration at the current rate of the data that one write passes to the socket; at most twice this waits there. A larger
/// value extends a period beyond its end; a smaller value makes late wake-ups more costly.
const AHEAD_US: u64 = 20_000;

/// Minimum number of segments and maximum number of bytes per write.
const SEGMENTS_MIN: u64 = 4;
const BYTES_MAX: u64 = 1 << 16;

/// The data to send.
static DATA: [u8; BYTES_MAX as usize] = [0; BYTES_MAX as usize];

#[derive(Clone, Copy, Debug)]
struct Transfer {
    began: Time,
    /// Data, bytes; `u64::MAX` for no limit.
    bytes: u64,
    /// No new data from then on; [`Time::MAX`] for no limit.
    end: Time,
    /// The connection is reset at this time; [`Time::MAX`] for never.
    reset_at: Time,
}

/// The sending program of a flow.
pub(super) struct Sender<'a> {
    program: &'a TcpProgram<'a>,
    from: Ipv4Addr,
    to: SocketAddrV4,
    random: RandomStream,
    signals: KernelSignals,
    emit: &'a mut dyn FnMut(Time, TcpSenderEvent),
}

impl<'a> Sender<'a> {
    pub fn new(
        program: &'a TcpProgram<'a>,
        from: Ipv4Addr,
        to: SocketAddrV4,
        random: RandomStream,
        emit: &'a mut dyn FnMut(Time, TcpSenderEvent),
    ) -> Self {
        Self { program, from, to, random, signals: KernelSignals::default(), emit }
    }

    /// Runs the workload from `start` to the program's end.
    pub fn run(mut self, start: Time) -> io::Result<()> {
        let mut begin = self.program.tcp.workload.first_connection(start, &mut self.random);
        loop {
            self.program.ready(&mut [], begin)?;
            if self.program.is_over() {
                return Ok(());
            }
            let transfer = self.transfer(begin);
            let done = self.serve(&transfer)?;
            begin = match (self.program.tcp.workload, done) {
                (Workload::OnOff { .. }, _) => transfer.reset_at,
                (Workload::Short { pause: mean, .. }, Some(done)) => {
                    let size = DataSize::from_bytes(transfer.bytes);
                    (self.emit)(done, TcpSenderEvent::TransferDone { size, took: done - transfer.began });
                    done + draw_pause(&mut self.random, mean)
                }
                (Workload::Bulk | Workload::Short { .. } | Workload::Bursts { .. }, _) => Time::MAX,
            };
        }
    }

    fn transfer(&mut self, began: Time) -> Transfer {
        let endless = Transfer { began, bytes: u64::MAX, end: Time::MAX, reset_at: Time::MAX };
        match self.program.tcp.workload {
            Workload::Bulk => endless,
            Workload::OnOff { on, off } => Transfer { end: began + on, reset_at: began + on + off, ..endless },
            Workload::Short { size, .. } | Workload::Bursts { size, .. } => {
                Transfer { bytes: draw_transfer_size(&mut self.random, size).as_bytes(), ..endless }
            }
        }
    }

    /// Runs one transfer. Returns the time at which the arrival of the last byte was known; `None` if the connection was
    /// reset.
    fn serve(&mut self, transfer: &Transfer) -> io::Result<Option<Time>> {
        let socket = self.open()?;
        let done = match self.drive(&socket, transfer) {
            // The other program ends at the same time and may close the connection first.
            Err(_) if self.program.is_over() => None,
            done => done?,
        };
        if done.is_none() {
            socket.set_linger(Some(Duration::ZERO))?; // makes the following close a reset, without retransmissions
        }
        Ok(done)
    }

    /// Creates a socket and starts to connect it.
    pub fn open(&self) -> io::Result<Socket> {
        let config = &self.program.tcp.config;
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.bind(&SocketAddrV4::new(self.from, 0).into())?;
        let congestion = kernel_name(config.congestion);
        socket
            .set_tcp_congestion(congestion.as_bytes())
            .map_err(|error| io::Error::new(error.kind(), format!("congestion control `{congestion}`: {error}")))?;
        let segment = config.segment.as_bytes() + TIMESTAMP;
        socket.set_tcp_mss(u32::try_from(segment).unwrap_or(u32::MAX))?;
        match socket.connect(&self.to.into()) {
            Err(error) if error.raw_os_error() != Some(nix::libc::EINPROGRESS) => Err(error),
            _ => Ok(socket),
        }
    }

    /// Connects, writes the data, shuts down the sending direction, and waits until the receiver closes the connection:
    /// then all data has arrived.
    fn drive(&mut self, socket: &Socket, transfer: &Transfer) -> io::Result<Option<Time>> {
        let wait = |wanted, until: Time| {
            self.program.ready(&mut [PollFd::new(socket.as_fd(), wanted)], until.min(transfer.reset_at))
        };
        if !wait(PollFlags::POLLOUT, Time::MAX)? {
            return Ok(None);
        }
        if let Some(error) = socket.take_error()? {
            return Err(error);
        }
        let mut left = transfer.bytes;
        let mut ended = false;
        let (mut portion, mut sample) = (0, self.program.clock.now());
        loop {
            let now = self.program.clock.now();
            if now >= transfer.reset_at || self.program.is_over() {
                return Ok(None);
            }
            if now >= sample {
                portion = self.sample(socket, now)?;
                sample = now + SAMPLE;
            }
            if !ended && (left == 0 || now >= transfer.end) {
                socket.shutdown(Shutdown::Write)?;
                ended = true;
            }
            let (wanted, until) = if ended { (PollFlags::POLLIN, sample) } else { (PollFlags::POLLOUT, transfer.end) };
            if !wait(wanted, until.min(sample))? {
                continue;
            }
            if ended {
                if retry((&mut &*socket).read(&mut [0; 64]))? == Some(0) {
                    return Ok(Some(self.program.clock.now()));
                }
            } else {
                let data = &DATA[..left.min(portion) as usize];
                left -= retry(socket.send_with_flags(data, MSG_NOSIGNAL))?.unwrap_or(0) as u64;
            }
        }
    }

    /// Emits the state of the connection. Returns the size of writes.
    fn sample(&mut self, socket: &Socket, now: Time) -> io::Result<u64> {
        let info = Info::of(socket)?;
        self.signals.update(now, &info, self.emit);
        let portion = portion(&info, self.program.tcp.config.receive_window);
        // A socket is writable when less than half of this waits in it.
        socket.set_tcp_notsent_lowat(2 * portion as u32)?;
        Ok(portion)
    }
}

/// Returns the size of writes, bytes, for the current congestion and receive window: whole segments unless segments are
/// huge.
fn portion(info: &Info, receive_window: Option<DataSize>) -> u64 {
    let segment = u64::from(info.segment).max(1);
    let allowed = receive_window.map_or(u64::MAX, DataSize::as_bytes);
    let window = (u64::from(info.window) * segment).min(allowed);
    let ahead = (window * AHEAD_US).checked_div(info.round_trip.into()).unwrap_or(u64::MAX) / segment;
    (ahead.clamp(SEGMENTS_MIN, (BYTES_MAX / segment).max(SEGMENTS_MIN)) * segment).min(BYTES_MAX)
}

/// Converts errors that require a retry to `None`.
fn retry(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
        other => other.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_size_is_twenty_milliseconds_in_whole_segments() {
        let mut info = Info::default();
        (info.segment, info.window) = (1448, 50);
        assert_eq!(portion(&info, None), 45 * 1448, "no round-trip time yet: the maximum below 65536 bytes");
        info.round_trip = 100_000;
        assert_eq!(portion(&info, None), 10 * 1448, "50 segments in 100 ms are 10 in 20 ms");
        assert_eq!(portion(&info, Some(DataSize::from_bytes(36_200))), 5 * 1448, "the receiver allows 25 segments");
        info.round_trip = 20_000;
        assert_eq!(portion(&info, None), 45 * 1448);
        info.window = 2;
        assert_eq!(portion(&info, None), 4 * 1448, "the minimum");
        info.segment = 60_000;
        assert_eq!(portion(&info, None), 65_536);
    }
}
