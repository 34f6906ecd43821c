// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls of the C interface with plausible, extreme and null arguments: each returns a status of the header, none reports a defect of the
//! library, an error has a text and changes no target, and the target stays within the limits that are in force.

use paceline_abi::{PacelineDecision, PacelineLimits, PacelineProbe};
use paceline_c::*;
use std::ffi::{CStr, CString, c_char};
use std::ptr::{null, null_mut};
use std::sync::LazyLock;

/// Numbers at the ends of ranges.
const EXTREMES: [u64; 16] = [
    0,
    1,
    2,
    255,
    256,
    65_535,
    65_536,
    1 << 24,
    1 << 31,
    1 << 32,
    10_000_000_000_000,
    1 << 62,
    (1 << 62) + 1,
    i64::MAX as u64,
    i64::MIN as u64,
    u64::MAX,
];

/// An input, which is read from its beginning.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// Returns a number up to this one, or an extreme.
    fn number(&mut self, plausible: u64) -> u64 {
        match self.byte() {
            index @ 240.. => EXTREMES[usize::from(index - 240)],
            high => (u64::from(high) << 8 | u64::from(self.byte())) * plausible / 0xF000,
        }
    }

    fn size(&mut self, size: usize) -> usize {
        if self.byte() < 250 { size } else { usize::from(self.byte()).min(size) }
    }

    /// Returns the pointer, or null.
    fn pointer<T>(&mut self, pointer: *mut T) -> *mut T {
        if self.byte() < 252 { pointer } else { null_mut() }
    }

    fn limits(&mut self) -> PacelineLimits {
        PacelineLimits {
            size: self.size(size_of::<PacelineLimits>()),
            start_bps: self.number(2_000_000),
            min_bps: self.number(200_000),
            max_bps: self.number(20_000_000),
            packet_size_bytes: self.number(1500),
        }
    }
}

/// A sender and a receiver of one controller.
struct Objects {
    sender: *mut PacelineSender,
    receiver: *mut PacelineReceiver,
    now_ns: i64,
    /// Limits in force.
    limits: [u64; 2],
}

impl Drop for Objects {
    fn drop(&mut self) {
        // SAFETY: they are in no call, and not used afterwards.
        unsafe {
            paceline_sender_destroy(self.sender);
            paceline_receiver_destroy(self.receiver);
        }
    }
}

/// The names of the controllers.
static NAMES: LazyLock<Vec<CString>> = LazyLock::new(|| {
    let name = |index| {
        let mut name: [c_char; 64] = [0; 64];
        // SAFETY: the buffer has this length, and the name ends with a zero.
        unsafe {
            let status = paceline_controller_name(index, name.as_mut_ptr(), name.len());
            (status == PACELINE_OK).then(|| CStr::from_ptr(name.as_ptr()).to_owned())
        }
    };
    (0..).map_while(name).collect()
});

/// Checks one input: a byte for the controller, its limits, then calls: a byte for the function, and bytes of its arguments. Returns the
/// number of calls that succeeded.
pub fn check(bytes: &[u8]) -> usize {
    let mut input = Input(bytes);
    let name = &NAMES[usize::from(input.byte()) % NAMES.len()];
    let mut objects = Objects { sender: null_mut(), receiver: null_mut(), now_ns: 0, limits: [50_000, 10_000_000] };
    let [min_bps, max_bps] = objects.limits;
    let size = size_of::<PacelineLimits>();
    let limits = PacelineLimits { size, start_bps: 300_000, min_bps, max_bps, packet_size_bytes: 0 };
    // SAFETY: the pointers are valid, and the name ends with a zero.
    let statuses = unsafe {
        [
            paceline_sender_create(name.as_ptr(), &limits, &mut objects.sender),
            paceline_receiver_create(name.as_ptr(), &limits, 2000, 1000, &mut objects.receiver),
        ]
    };
    assert!(statuses.iter().all(|status| [PACELINE_OK, PACELINE_ERROR_CONTROLLER].contains(status)), "{statuses:?}");
    let mut succeeded = 0;
    while !input.0.is_empty() {
        let before = target(&objects);
        let call = input.byte() % 26;
        // SAFETY: pointers to objects, arrays and structs are valid for the call, or null.
        let status = unsafe { objects.call(call, &mut input) };
        assert!((-8..=1).contains(&status) && status != PACELINE_ERROR_DEFECT, "call {call}: status {status}");
        succeeded += usize::from(status >= 0);
        let after = target(&objects);
        // SAFETY: the text ends with a zero.
        let text = unsafe { CStr::from_ptr(paceline_last_error()) };
        assert!(status >= 0 || !text.is_empty(), "call {call}: status {status} without a text");
        // RTCP may end in an error after a part of it was read, and a frame that is refused still states the rates of the encoder.
        let may_change = status >= 0 || call == 12 || status == PACELINE_ERROR_FULL;
        assert!(may_change || before == after, "call {call}: status {status}, {before} to {after}");
        let [min, max] = objects.limits;
        assert!(objects.sender.is_null() || (min..=max).contains(&after), "call {call}: {after} of {min} to {max}");
    }
    succeeded
}

fn target(objects: &Objects) -> u64 {
    // SAFETY: the sender is valid or null.
    unsafe { paceline_sender_target(objects.sender) }
}

impl Objects {
    /// Returns a time: the clock advances, or stays and the time is an extreme one.
    fn time(&mut self, input: &mut Input<'_>) -> i64 {
        match input.byte() {
            255 => EXTREMES[usize::from(input.byte()) % EXTREMES.len()] as i64,
            254 => (self.now_ns + 5_000_000_000).min(1 << 61),
            step => {
                self.now_ns += i64::from(step) * 100_000;
                self.now_ns
            }
        }
    }

    /// Calls a function.
    ///
    /// # Safety
    /// The objects are valid or null.
    unsafe fn call(&mut self, call: u8, input: &mut Input<'_>) -> PacelineStatus {
        let (sender, receiver) = (input.pointer(self.sender), input.pointer(self.receiver));
        let now = self.time(input);
        let mut number = 0;
        // SAFETY: the contract of this function; each array has the length that is passed.
        unsafe {
            match call {
                0 => {
                    let (size, kind) = (input.number(1500), input.byte() % 5);
                    paceline_sender_packet_sent(sender, now, size, kind, input.pointer(&mut number))
                }
                1 => {
                    let (size, probe) = (input.number(1500), input.number(9) as i32);
                    paceline_sender_probe_sent(sender, now, size, 0, probe, &mut number)
                }
                2 => paceline_sender_rtp_number(sender, input.number(60), input.byte().into(), input.number(60) as u16),
                3 => {
                    let mut probe =
                        PacelineProbe { size: input.size(size_of::<PacelineProbe>()), ..Default::default() };
                    paceline_sender_poll_probe(sender, input.pointer(&mut probe))
                }
                4 => {
                    let (min, max) = (input.number(200_000), input.number(9_000_000));
                    paceline_sender_encoder(sender, now, min, max, input.number(50_000))
                }
                5 => paceline_sender_poll_discarded(sender, input.pointer(&mut number)),
                6 => {
                    let mut event =
                        PacelineEvent { size: input.size(size_of::<PacelineEvent>()), ..Default::default() };
                    paceline_sender_poll_event(sender, input.pointer(&mut event))
                }
                7 => {
                    let packet = |token| PacelineFramePacket { token, size_bytes: input.number(1500) };
                    let packets: Vec<_> = (0..7).map(packet).collect();
                    let (min, max) = (input.number(200_000), input.number(9_000_000));
                    let count = usize::from(input.byte() % 8);
                    paceline_sender_push_frame(sender, now, packets.as_ptr(), count, input.byte(), min, max)
                }
                8 | 9 => {
                    let mut packet =
                        PacelinePacket { size: input.size(size_of::<PacelinePacket>()), ..Default::default() };
                    paceline_sender_poll_packet(sender, now, input.pointer(&mut packet))
                }
                10 | 11 => {
                    let mut snapshot = PacelineSnapshot::default();
                    paceline_sender_snapshot(sender, &mut snapshot);
                    let arrivals: Vec<_> = (0..input.byte() % 16)
                        .map(|_| PacelineArrival {
                            sequence: snapshot.packets_sent.wrapping_sub(input.number(20)),
                            arrival_ns: (now as u64).wrapping_add(input.number(60_000_000)) as i64,
                            arrived: input.byte() % 3,
                            ecn: if input.byte() < 250 { 0 } else { input.byte() },
                        })
                        .collect();
                    paceline_sender_feedback(sender, now, arrivals.as_ptr(), arrivals.len())
                }
                12 => {
                    // The RTCP of the receiver with changes, or bytes of the input.
                    let (mut buffer, mut length) = (vec![0; 1200], 0);
                    let polled =
                        paceline_receiver_poll_rtcp(self.receiver, self.now_ns, buffer.as_mut_ptr(), 1200, &mut length);
                    if polled == PACELINE_OK {
                        let at = usize::from(input.byte()) % length;
                        buffer[at] ^= if input.byte() < 128 { 0 } else { input.byte() };
                    } else {
                        length = usize::from(input.byte()).min(input.0.len());
                        buffer[..length].copy_from_slice(&input.0[..length]);
                        input.0 = &input.0[length..];
                    }
                    buffer.truncate(length);
                    paceline_sender_rtcp(sender, now, buffer.as_ptr(), length)
                }
                13 => paceline_sender_rtt(sender, now, input.number(300_000_000) as i64),
                14 => paceline_sender_loss(
                    sender,
                    now,
                    [0.0, 0.1, 1.0, -1.0, 2.0, f64::NAN][usize::from(input.byte() % 6)],
                ),
                15 => paceline_sender_remb(sender, now, input.number(5_000_000)),
                16 => {
                    let (min, max) = (input.number(300_000), input.number(5_000_000));
                    let status = paceline_sender_bounds(sender, now, min, max);
                    if status == PACELINE_OK {
                        self.limits = [min, max];
                    }
                    status
                }
                17 => {
                    let limits = input.limits();
                    let status = paceline_sender_route_change(sender, now, &limits);
                    if status == PACELINE_OK {
                        // What is behind the size is 0.
                        let (mut read, size) = (PacelineLimits::default(), limits.size);
                        (&raw const limits).cast::<u8>().copy_to_nonoverlapping((&raw mut read).cast(), size);
                        self.limits = [read.min_bps, read.max_bps];
                    }
                    status
                }
                18 => paceline_sender_availability(sender, now, input.byte() % 2),
                19 => paceline_sender_on_timeout(sender, now),
                20 => {
                    let mut decision =
                        PacelineDecision { size: input.size(size_of::<PacelineDecision>()), ..Default::default() };
                    let status = paceline_sender_decision(sender, input.pointer(&mut decision));
                    if status == PACELINE_OK && decision.size == size_of::<PacelineDecision>() {
                        let read = [paceline_sender_target(sender), paceline_sender_pacing(sender)];
                        assert!(decision.target_bps == 0 || [decision.target_bps, decision.pacing_bps] == read);
                    }
                    status
                }
                21 => {
                    paceline_sender_enable_signals(sender);
                    let mut values = vec![0.0; usize::from(input.byte())];
                    paceline_sender_signals(sender, values.as_mut_ptr(), values.len())
                }
                22 => {
                    let mut copy = null_mut();
                    let status = paceline_sender_copy(sender, &mut copy);
                    if status == PACELINE_OK {
                        paceline_sender_destroy(std::mem::replace(&mut self.sender, copy));
                    }
                    status
                }
                23 | 24 => {
                    let packet = PacelineReceivedPacket {
                        size: input.size(size_of::<PacelineReceivedPacket>()),
                        size_bytes: input.number(1500),
                        transport_sequence: input.number(60) as i32,
                        abs_send_time: input.number(1 << 24) as i32,
                        rtp_timestamp: input.number(1 << 20) as u32,
                        ssrc: (input.byte() / 64).into(),
                        rtp_sequence: input.number(60) as u16,
                        stream: input.byte() % 3,
                        kind: input.byte() % 5,
                        ..Default::default()
                    };
                    let packet = if input.byte() < 252 { &raw const packet } else { null() };
                    paceline_receiver_packet(receiver, now, packet)
                }
                _ => paceline_receiver_on_timeout(receiver, now),
            }
        }
    }
}
