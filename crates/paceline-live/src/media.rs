//! The ends of media flows over UDP sockets: the objects that the simulator runs, driven by the machine's clock.

use crate::classify::port_of;
use crate::clock::Monotonic;
use crate::socket::{Room, Socket};
use crate::track::Run;
use crate::wait::{Rank, be_punctual};
use hdrhistogram::Histogram;
use paceline_flow::{Datagram, IP_UDP_HEADERS};
use paceline_lab::media::MediaFlow;
use paceline_lab::network::End;
use paceline_lab::rows::Row;
use paceline_units::{DataSize, Ecn, Time, TimeDelta};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

/// The largest datagram that is sent: less than a packet of the link.
const LARGEST: usize = 1500;

/// One end of a media flow and its socket.
pub struct MediaEnd {
    half: Half,
    line: Line,
    stop: Time,
}

/// The end without its socket.
struct Half {
    flow: MediaFlow,
    end: End,
    /// Its time never goes back, even if two packets' stamps do.
    last: Time,
}

/// The socket, and who is at the other end.
struct Line {
    socket: Socket,
    peer: SocketAddr,
}

impl MediaEnd {
    /// An end of the flow of this number, at an address, whose other end is at `peer`; made in the namespace that has the
    /// address.
    ///
    /// # Errors
    /// The system has no socket for it.
    pub fn new(
        id: usize,
        flow: MediaFlow,
        end: End,
        address: Ipv4Addr,
        peer: Ipv4Addr,
        stop: Time,
    ) -> io::Result<Self> {
        let socket = Socket::bind(SocketAddrV4::new(address, port_of(id)))?;
        let peer = (peer, port_of(id)).into();
        Ok(Self { half: Half { flow, end, last: Time::ZERO }, line: Line { socket, peer }, stop })
    }
}

impl Half {
    /// This time, or the last if that is later.
    fn time(&mut self, at: Time) -> Time {
        self.last = self.last.max(at);
        self.last
    }

    fn timeout(&self) -> Time {
        match self.end {
            End::Sender => self.flow.sender.poll_timeout(),
            End::Receiver => self.flow.clock.when(self.flow.receiver.poll_timeout(), self.last),
        }
    }

    fn handle(&mut self, at: Time, bytes: &[u8], ecn: Ecn, line: &Line, told: &Sender<Row>) {
        let at = self.time(at);
        match self.end {
            End::Sender => self.flow.sender.handle_packet(at, bytes),
            End::Receiver => {
                let size = DataSize::from_bytes(bytes.len() as u64) + IP_UDP_HEADERS;
                self.flow.receiver.handle_packet(self.flow.clock.at(at), bytes, size, ecn);
            }
        }
        self.drain(at, line, told);
    }

    fn drain(&mut self, now: Time, line: &Line, told: &Sender<Row>) {
        let mut datagram = Datagram::new();
        let tell = |row| told.send(row).is_ok();
        match self.end {
            End::Sender => {
                while self.flow.sender.poll_transmit(now, &mut datagram).is_some() {
                    line.send(&datagram);
                }
                while let Some(event) = self.flow.sender.poll_event() {
                    tell(self.flow.sender_row(now, event));
                }
            }
            End::Receiver => {
                let reading = self.flow.clock.at(now);
                if self.flow.receiver.poll_timeout() <= reading {
                    while self.flow.receiver.poll_transmit(reading, &mut datagram) {
                        line.send(&datagram);
                    }
                }
                while let Some(event) = self.flow.receiver.poll_event() {
                    tell(self.flow.receiver_row(now, event));
                }
            }
        }
    }
}

impl Line {
    /// Sends a datagram; what was only counted of it is zeros.
    fn send(&self, datagram: &Datagram) {
        let mut bytes = [0; LARGEST];
        let len = (datagram.size() - IP_UDP_HEADERS).as_bytes() as usize;
        bytes[..datagram.bytes().len()].copy_from_slice(datagram.bytes());
        self.socket.send(self.peer, &bytes[..len], datagram.ecn);
    }
}

impl Served for MediaEnd {
    type Room = Room;

    fn timeout(&self) -> Time {
        self.half.timeout()
    }

    fn stop(&self) -> Time {
        self.stop
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.line.socket.fd()
    }

    fn serve(&mut self, now: Time, clock: &Monotonic, room: &mut Room, told: &Sender<Row>) -> io::Result<()> {
        let Self { half, line, .. } = self;
        line.socket.receive(clock, room, |at, _, bytes, ecn| half.handle(at, bytes, ecn, line, told))?;
        let now = half.time(now);
        if half.timeout() <= now {
            match half.end {
                End::Sender => half.flow.sender.handle_timeout(now),
                End::Receiver => half.flow.receiver.handle_timeout(half.flow.clock.at(now)),
            }
            half.drain(now, line, told);
        }
        Ok(())
    }
}

/// An end of a media flow that this process serves.
pub trait Served {
    /// What it reads into, shared with the others of its side.
    type Room: Default;
    /// When it wants to be served.
    fn timeout(&self) -> Time;
    /// When it falls silent.
    fn stop(&self) -> Time;
    /// Readable when something has come for it.
    fn socket(&self) -> BorrowedFd<'_>;
    /// Takes what has come, serves its timeout if that is due, and sends what there is to send.
    ///
    /// # Errors
    /// Its socket is gone.
    fn serve(&mut self, now: Time, clock: &Monotonic, room: &mut Self::Room, told: &Sender<Row>) -> io::Result<()>;
}

/// How often each end is served at least, and the wish to stop looked at.
const LOOK: TimeDelta = TimeDelta::from_millis(50);

/// How late timers were served, ns; ten seconds at most.
pub type Lateness = Histogram<u64>;

/// Runs the ends that are on one side until the last has stopped or the run is over, and answers how late their timers were
/// served.
///
/// # Errors
/// A socket is gone.
pub fn run<E: Served>(mut ends: Vec<E>, run: &Run<'_>) -> io::Result<Lateness> {
    be_punctual(Rank::End);
    let clock = run.clock;
    let mut late = Lateness::new_with_bounds(1, 10_000_000_000, 3).expect("these bounds are possible");
    let mut room = E::Room::default();
    let begin = TimeDelta::ZERO - (clock.now() - Time::ZERO);
    run.timing.wait(&[], begin);
    loop {
        for end in &mut ends {
            let now = clock.now();
            let due = end.timeout();
            if due <= now {
                late.saturating_record((now - due).as_nanos() as u64);
            }
            end.serve(now, &clock, &mut room, &run.told)?;
        }
        let now = clock.now();
        ends.retain(|end| now < end.stop().min(run.end) && !run.stop.load(Ordering::Relaxed));
        let next = ends.iter().map(|end| end.timeout().min(end.stop()).min(run.end).min(now + LOOK)).min();
        let Some(next) = next else { return Ok(late) };
        let sockets: Vec<BorrowedFd<'_>> = ends.iter().map(Served::socket).collect();
        run.timing.wait(&sockets, next - clock.now());
    }
}
