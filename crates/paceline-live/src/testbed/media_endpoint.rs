// SPDX-License-Identifier: MIT OR Apache-2.0
//! Endpoints of media flows over UDP sockets: the objects of the simulator, driven by the monotonic clock.

use crate::testbed::classify::port_of;
use crate::testbed::clock::Monotonic;
use crate::testbed::error::broken;
use crate::testbed::lateness::{self, Lateness};
use crate::testbed::socket::{ReceiveBuffers, Socket};
use crate::testbed::testbed_run::TestbedRun;
use crate::testbed::timing::{Role, enter_realtime};
use paceline_netsim::ControllerFailure;
use paceline_netsim::flow::{Datagram, IP_UDP_HEADERS};
use paceline_netsim::media_flow::MediaFlow;
use paceline_netsim::network::FlowEnd;
use paceline_netsim::records::EventRecord;
use paceline_netsim::world::WorldError;
use paceline_units::{DataSize, Time, TimeDelta};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

/// Size of the buffer of a datagram: the payload of an Ethernet frame, of which IP and UDP headers are a part.
const BUFFER: usize = 1500;

/// Calls `send` with the bytes of a datagram without IP and UDP headers; payload without bytes is sent as zeros.
pub fn with_bytes<T>(datagram: &Datagram, send: impl FnOnce(&[u8]) -> T) -> T {
    let mut bytes = [0; BUFFER];
    let len = (datagram.size() - IP_UDP_HEADERS).as_bytes() as usize;
    bytes[..datagram.bytes().len()].copy_from_slice(datagram.bytes());
    send(&bytes[..len])
}

/// One end of a media flow and its socket.
pub struct UdpEndpoint {
    end: EndState,
    peer: Peer,
    stop: Time,
}

/// The state without the socket.
struct EndState {
    flow: MediaFlow,
    end: FlowEnd,
    /// The time of the last call. Calls never go back in time, although timestamps of packets may.
    last: Time,
}

/// The socket, and the address of the other end.
struct Peer {
    socket: Socket,
    address: SocketAddr,
}

impl UdpEndpoint {
    /// Creates an end of flow number `id` at `address`, whose other end is at `peer`. Call this in the namespace of the
    /// address.
    pub fn new(
        id: usize,
        flow: MediaFlow,
        end: FlowEnd,
        address: Ipv4Addr,
        peer: Ipv4Addr,
        stop: Time,
    ) -> io::Result<Self> {
        let socket = Socket::bind(SocketAddrV4::new(address, port_of(id)))?;
        let peer = Peer { socket, address: (peer, port_of(id)).into() };
        Ok(Self { end: EndState { flow, end, last: Time::ZERO }, peer, stop })
    }
}

impl EndState {
    /// Returns `at`, or the time of the last call if that is later.
    fn advance(&mut self, at: Time) -> Time {
        self.last = self.last.max(at);
        self.last
    }

    fn drain(&mut self, now: Time, peer: &Peer, events: &Sender<EventRecord>) {
        let mut datagram = Datagram::new();
        // After a failed run the receiver of events is gone.
        let emit = |event| {
            let _ = events.send(event);
        };
        match self.end {
            FlowEnd::Sender => {
                while self.flow.sender.poll_transmit(now, &mut datagram).is_some() {
                    peer.send(&datagram);
                }
                while let Some(event) = self.flow.sender.poll_event() {
                    if let Some(event) = self.flow.sender_event(now, event) {
                        emit(event);
                    }
                }
            }
            FlowEnd::Receiver => {
                let reading = self.flow.clock.at(now);
                if self.flow.receiver.poll_timeout().is_some_and(|due| due <= reading) {
                    while self.flow.receiver.poll_transmit(reading, &mut datagram) {
                        peer.send(&datagram);
                    }
                }
                while let Some(event) = self.flow.receiver.poll_event() {
                    emit(self.flow.receiver_event(now, event));
                }
            }
        }
    }
}

impl Peer {
    fn send(&self, datagram: &Datagram) {
        with_bytes(datagram, |bytes| self.socket.send(self.address, bytes, datagram.ecn));
    }
}

impl MediaEndpoint for UdpEndpoint {
    type Buffers = ReceiveBuffers;

    fn timeout(&self) -> Option<Time> {
        self.end.flow.poll_timeout(self.end.last, self.end.end)
    }

    fn stop(&self) -> Time {
        self.stop
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.peer.socket.fd()
    }

    fn serve(
        &mut self,
        now: Time,
        clock: &Monotonic,
        buffers: &mut ReceiveBuffers,
        events: &Sender<EventRecord>,
    ) -> io::Result<()> {
        let Self { end, peer, .. } = self;
        peer.socket.receive(clock, buffers, |at, _, bytes, ecn| {
            let at = end.advance(at);
            let size = DataSize::from_bytes(bytes.len() as u64) + IP_UDP_HEADERS;
            end.flow.handle_packet(at, end.end, at, bytes, size, ecn);
            end.drain(at, peer, events);
        })?;
        let now = end.advance(now);
        if end.flow.poll_timeout(now, end.end).is_some_and(|due| due <= now) {
            end.flow.handle_timeout(now, end.end);
            end.drain(now, peer, events);
        }
        Ok(())
    }

    fn check_controller(&mut self) -> Result<(), ControllerFailure> {
        self.end.flow.check_controller(self.end.last, self.end.end)
    }
}

/// An end of a media flow in this process.
pub trait MediaEndpoint {
    /// Receive buffers, shared by the endpoints of one side.
    type Buffers: Default;
    /// Returns the latest time at which to call [`serve`](Self::serve); `None` for never.
    fn timeout(&self) -> Option<Time>;
    /// Returns the time at which the endpoint stops sending.
    fn stop(&self) -> Time;
    /// Returns a descriptor that is readable when a packet waits.
    fn socket(&self) -> BorrowedFd<'_>;
    /// Handles received packets and a due timeout, and sends the resulting packets.
    ///
    /// # Errors
    /// The socket failed, or an error of the world.
    fn serve(
        &mut self,
        now: Time,
        clock: &Monotonic,
        buffers: &mut Self::Buffers,
        events: &Sender<EventRecord>,
    ) -> io::Result<()>;
    /// Checks that the half of the controller has not failed.
    fn check_controller(&mut self) -> Result<(), ControllerFailure>;
}

/// Maximum interval between calls of an endpoint, and between checks for the end of the run.
const POLL_INTERVAL: TimeDelta = TimeDelta::from_millis(50);

/// Runs the endpoints of one side until the last has stopped or the run is over. Returns the lateness of timers.
pub fn run<E: MediaEndpoint>(mut endpoints: Vec<E>, run: &TestbedRun<'_>) -> Result<Lateness, WorldError> {
    enter_realtime(Role::Endpoint);
    let clock = run.clock;
    let mut late = lateness::empty();
    let mut buffers = E::Buffers::default();
    let until_start = TimeDelta::ZERO - (clock.now() - Time::ZERO);
    run.timing.wait(&[], until_start);
    loop {
        for endpoint in &mut endpoints {
            let now = clock.now();
            if let Some(due) = endpoint.timeout().filter(|due| *due <= now) {
                late.saturating_record((now - due).as_nanos() as u64);
            }
            let served = endpoint.serve(now, &clock, &mut buffers, &run.events);
            served.map_err(|error| error.downcast().unwrap_or_else(broken))?;
            endpoint.check_controller().map_err(|failure| failure.in_run(run.plan, run.seed))?;
        }
        let now = clock.now();
        endpoints.retain(|end| now < end.stop().min(run.end) && !run.stop.load(Ordering::Relaxed));
        let next = endpoints.iter().map(|end| end.timeout().unwrap_or(run.end).min(end.stop()).min(run.end)).min();
        let Some(next) = next else { return Ok(late) };
        let sockets: Vec<BorrowedFd<'_>> = endpoints.iter().map(MediaEndpoint::socket).collect();
        run.timing.wait(&sockets, next.min(now + POLL_INTERVAL) - clock.now());
    }
}
