// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions of a sender.
#![allow(unsafe_op_in_unsafe_fn, reason = "the contract of each function covers its whole body")]

use crate::PacelineSetting;
use crate::sender::{PacelineEvent, STREAM, Sender};
use crate::status::{Failure, Object, PacelineStatus, argument, catch};
use crate::{Opaque, read, read_sized, sized, slice, text, values, with, with_const, writable, write, write_sized};
use paceline::{Message, Outgoing, StreamState};
use paceline_abi::{PACELINE_KIND_MEDIA, PACELINE_KIND_PADDING, PACELINE_NEVER, PACELINE_NO_PROBE};
use paceline_abi::{PacelineDecision, PacelineLimits, PacelineProbe};
use paceline_units::{DataSize, Fraction, Time};
use std::ffi::c_char;
use std::ptr;

/// A sender. Opaque.
#[derive(Debug)]
pub struct PacelineSender(#[allow(dead_code, reason = "C sees the address alone")] Object<Sender>);

impl Opaque for PacelineSender {
    type Inner = Sender;
    const NAME: &str = "sender";
}

/// A packet of a frame that is to be sent.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PacelineFramePacket {
    /// A number of the caller's choice. `paceline_sender_poll_packet` returns it.
    pub token: u64,
    /// The size on the network, 1 to 65,535 bytes.
    pub size_bytes: u64,
}

/// A packet to send now.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PacelinePacket {
    /// The size of the struct in the caller's header: `sizeof`.
    pub size: usize,
    /// The number within the flow, from 0. Write its low 16 bits into the transport-wide sequence number.
    pub sequence: u64,
    /// The token of the frame's packet; 0 for padding.
    pub token: u64,
    /// The size on the network.
    pub size_bytes: u64,
    /// The probe cluster that the packet belongs to, or `PACELINE_NO_PROBE`.
    pub probe: i32,
    /// `PACELINE_KIND_MEDIA`, or `PACELINE_KIND_PADDING` for a packet that the caller makes up.
    pub kind: u8,
}

/// The report on one packet, from feedback of any format.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PacelineArrival {
    /// The number within the flow.
    pub sequence: u64,
    /// The arrival on the receiver's clock, 0 to 2^62; without meaning if the packet is lost.
    pub arrival_ns: i64,
    /// 1 if the packet arrived, 0 if it is lost.
    pub arrived: u8,
    /// The ECN field on arrival: `PACELINE_ECN_…`.
    pub ecn: u8,
}

/// The state of a sender.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PacelineSnapshot {
    /// The size of the struct in the caller's header: `sizeof`.
    pub size: usize,
    /// The latest time of a call.
    pub now_ns: i64,
    /// The bytes that are neither acknowledged nor lost.
    pub outstanding_bytes: u64,
    /// The bytes sent after the highest acknowledged packet.
    pub after_highest_bytes: u64,
    /// The bytes in the pacer's queue.
    pub queued_bytes: u64,
    /// The smoothed round-trip time of `paceline_sender_rtt`; 0 without any.
    pub rtt_ns: i64,
    /// The packets that left.
    pub packets_sent: u64,
    /// The packets that were reported as arrived.
    pub packets_arrived: u64,
    /// The packets that were reported lost, with those that arrived after all.
    pub packets_lost: u64,
}

paceline_abi::sized_structs!(PacelinePacket, PacelineSnapshot);

/// Creates a sender with the controller `name` (`paceline_controller_name` lists them), and writes its address to `sender`.
/// Errors: a null pointer, limits that contradict each other, no such controller, a controller without a send half.
///
/// # Safety
/// Each pointer is null or valid; `name` ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_create(
    name: *const c_char,
    limits: *const PacelineLimits,
    sender: *mut *mut PacelineSender,
) -> PacelineStatus {
    paceline_sender_create_with(name, limits, ptr::null(), 0, sender)
}

/// Creates a sender as `paceline_sender_create` does, with some parameters of its controller changed
/// (`paceline_controller_parameter` lists them). Of two settings with one name the later one counts. Errors, besides:
/// `PACELINE_ERROR_PARAMETER` for a name that is no parameter, and `PACELINE_ERROR_ARGUMENT` for a value out of range. Then there is no
/// sender.
///
/// # Safety
/// Each pointer is null or valid; names end with a zero; `settings` points to `count` settings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_create_with(
    name: *const c_char,
    limits: *const PacelineLimits,
    settings: *const PacelineSetting,
    count: usize,
    sender: *mut *mut PacelineSender,
) -> PacelineStatus {
    catch(|| {
        writable(sender, "sender")?;
        let (name, limits) = (text(name, "name")?, read_sized(limits, "limits")?);
        let settings = crate::settings(settings, count)?;
        let object = Object::new(Sender::new(name, &values::setup(&limits)?, &settings)?);
        write(sender, "sender", Box::into_raw(object).cast())
    })
}

/// Copies a sender with its state. The two do not affect each other.
///
/// # Safety
/// `sender` is null or a sender that is in no call; `copy` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_copy(
    sender: *const PacelineSender,
    copy: *mut *mut PacelineSender,
) -> PacelineStatus {
    with_const(sender, |sender| {
        writable(copy, "copy")?;
        let object = Object::new(sender.clone());
        write(copy, "copy", Box::into_raw(object).cast())
    })
}

/// Frees a sender. Null is allowed.
///
/// # Safety
/// `sender` is null or a sender that is in no call. It must not be used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_destroy(sender: *mut PacelineSender) {
    crate::destroy(sender)
}

/// Calls `work` with a sender at a time, and collects the events.
///
/// # Safety
/// `sender` is null or a sender that is in no other call.
unsafe fn at(
    sender: *mut PacelineSender,
    now_ns: i64,
    work: impl FnOnce(&mut Sender, Time) -> Result<(), Failure>,
) -> PacelineStatus {
    let at_time = |sender: &mut Sender| {
        let now = values::time(now_ns)?;
        work(sender, now)?;
        sender.collect(now);
        Ok(())
    };
    with(sender, at_time)
}

/// Records a packet that leaves without the pacer of this sender, and writes its number to `sequence`, which may be null.
/// `kind` is `PACELINE_KIND_…`; `size_bytes` is 1 to 65,535.
///
/// # Safety
/// Each pointer is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_packet_sent(
    sender: *mut PacelineSender,
    now_ns: i64,
    size_bytes: u64,
    kind: u8,
    sequence: *mut u64,
) -> PacelineStatus {
    paceline_sender_probe_sent(sender, now_ns, size_bytes, kind, PACELINE_NO_PROBE, sequence)
}

/// Records the SSRC and the RTP sequence number of the packet `sequence`, by which RFC 8888 feedback names it. Call it for each
/// packet that left, in order, if the receiver sends RFC 8888 feedback: that of the controllers with ECN. The numbers of an SSRC
/// rise by one; if they do not, feedback on its packets before is ignored. At most 8 SSRCs are kept, those that began last.
/// Returns `PACELINE_ERROR_ARGUMENT` if the packet has not left.
///
/// # Safety
/// `sender` is null or a sender.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_rtp_number(
    sender: *mut PacelineSender,
    sequence: u64,
    ssrc: u32,
    rtp_sequence: u16,
) -> PacelineStatus {
    with(sender, |sender| sender.handle_rtp_number(sequence, ssrc, rtp_sequence))
}

/// Records a packet that leaves without the pacer of this sender, as `paceline_sender_packet_sent` does, as a part of the probe cluster
/// `probe` (`paceline_sender_poll_probe`), or of none with `PACELINE_NO_PROBE`.
///
/// # Safety
/// Each pointer is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_probe_sent(
    sender: *mut PacelineSender,
    now_ns: i64,
    size_bytes: u64,
    kind: u8,
    probe: i32,
    sequence: *mut u64,
) -> PacelineStatus {
    with(sender, |sender| {
        let (now, size, kind) = (values::time(now_ns)?, values::packet_size(size_bytes)?, values::kind(kind)?);
        if !sequence.is_aligned() {
            return Err(argument("`sequence` is not aligned"));
        }
        if !(PACELINE_NO_PROBE..=u16::MAX.into()).contains(&probe) {
            return Err(argument(format!("`probe` must be the id of a cluster, or PACELINE_NO_PROBE, not {probe}")));
        }
        let packet = Outgoing::new(size, STREAM, kind).with_probe(u16::try_from(probe).ok());
        let number = sender.core.handle_sent(now, &packet);
        sender.collect(now);
        if !sequence.is_null() {
            write(sequence, "sequence", number)?;
        }
        Ok(())
    })
}

/// Writes the next probe cluster for a program with a pacer of its own: packets at its rate, one after the other, and no others in
/// between. Returns `PACELINE_NOTHING` if there is none. A sender to which frames were pushed sends its clusters itself.
///
/// # Safety
/// Each pointer is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_poll_probe(
    sender: *mut PacelineSender,
    probe: *mut PacelineProbe,
) -> PacelineStatus {
    with(sender, |sender| {
        sized(probe, "probe")?;
        let Some(cluster) = sender.core.poll_probe() else { return Ok(None) };
        let value = PacelineProbe {
            rate_bps: cluster.rate.as_bps(),
            duration_ns: cluster.duration.as_nanos().max(0).unsigned_abs(),
            id: cluster.id,
            packets: cluster.packets,
            ..PacelineProbe::default()
        };
        write_sized(probe, "probe", value).map(Some)
    })
}

/// Sets the lowest and the highest rate of the encoder, bit/s, IP and UDP headers included, for a program with a pacer of its own;
/// `queued_bytes` is what waits there. Call it before each frame. `paceline_sender_push_frame` does the same.
///
/// # Safety
/// `sender` is null or a sender.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_encoder(
    sender: *mut PacelineSender,
    now_ns: i64,
    min_bps: u64,
    max_bps: u64,
    queued_bytes: u64,
) -> PacelineStatus {
    at(sender, now_ns, |sender, now| {
        let bounds = values::bounds(min_bps, max_bps)?;
        sender.core.set_stream_limits(now, STREAM, bounds.min, bounds.max);
        let mut state = StreamState::new(STREAM, DataSize::from_bytes(queued_bytes));
        (state.min, state.max) = (bounds.min, bounds.max);
        sender.core.handle_stream(now, &state);
        sender.core.settle();
        Ok(())
    })
}

/// Writes the token of a packet that the last `paceline_sender_push_frame` removed from the queue, because its frame had waited for
/// longer than the controller allows. Returns `PACELINE_NOTHING` if there is none.
///
/// # Safety
/// Each pointer is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_poll_discarded(
    sender: *mut PacelineSender,
    token: *mut u64,
) -> PacelineStatus {
    with(sender, |sender| {
        writable(token, "token")?;
        sender.core.poll_discarded().map(|discarded| write(token, "token", discarded)).transpose()
    })
}

/// Writes the next event. Returns `PACELINE_NOTHING` if there is none. Of each kind, and of each probe cluster, the last event waits; of
/// probe clusters at most 64.
///
/// # Safety
/// Each pointer is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_poll_event(
    sender: *mut PacelineSender,
    event: *mut PacelineEvent,
) -> PacelineStatus {
    with(sender, |sender| {
        sized(event, "event")?;
        sender.events.pop_front().map(|next| write_sized(event, "event", next)).transpose()
    })
}

/// Queues a frame that was cut into packets; `key` is 1 if it can be decoded without earlier frames. The encoder makes
/// between `min_bps` and `max_bps`. Returns `PACELINE_ERROR_FULL` if the queue would take more than 2 s, if a frame waits longer than
/// the `queue_max_ns` of the decision, and while there is no network; then nothing is queued. What waited too long is removed from the
/// queue: `paceline_sender_poll_discarded` returns it.
///
/// # Safety
/// `packets` is null or points to `count` packets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_push_frame(
    sender: *mut PacelineSender,
    now_ns: i64,
    packets: *const PacelineFramePacket,
    count: usize,
    key: u8,
    min_bps: u64,
    max_bps: u64,
) -> PacelineStatus {
    with(sender, |sender| {
        let now = values::time(now_ns)?;
        let range = (values::rate(min_bps, "min_bps")?, values::rate(max_bps, "max_bps")?);
        let packets = slice(packets, count, "packets")?;
        if packets.is_empty() || range.0 > range.1 {
            return Err(argument("a frame needs a packet, and min_bps <= max_bps"));
        }
        let sized = packets.iter().map(|packet| Ok((packet.token, values::packet_size(packet.size_bytes)?)));
        let packets: Vec<_> = sized.collect::<Result<_, _>>()?;
        sender.push_frame(now, &packets, key != 0, range)
    })
}

/// Writes the next packet that may leave now, and records it as sent. Returns `PACELINE_NOTHING` if none may. Call it until
/// then after every other call, and at the time of `paceline_sender_next_timeout`. A probe of which a packet is more than 10 ms
/// late is given up.
///
/// # Safety
/// Each pointer is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_poll_packet(
    sender: *mut PacelineSender,
    now_ns: i64,
    packet: *mut PacelinePacket,
) -> PacelineStatus {
    with(sender, |sender| {
        let now = values::time(now_ns)?;
        sized(packet, "packet")?;
        let next = sender.core.poll_transmit(now);
        sender.collect(now);
        let Some(next) = next else { return Ok(None) };
        let value = PacelinePacket {
            sequence: next.head.number,
            token: next.packet.unwrap_or(0),
            size_bytes: next.size.as_bytes(),
            probe: next.probe.map_or(PACELINE_NO_PROBE, i32::from),
            kind: if next.packet.is_some() { PACELINE_KIND_MEDIA } else { PACELINE_KIND_PADDING },
            ..PacelinePacket::default()
        };
        write_sized(packet, "packet", value).map(Some)
    })
}

/// Handles per-packet feedback of any format, one entry for each packet. Unknown packets, and those that have arrived before, are ignored.
/// Pass a whole report, of all streams: packets below its lowest number that no report has named are no longer in flight. Returns
/// `PACELINE_ERROR_CONTROLLER` if the controller uses none (`paceline_controller_needs`).
///
/// # Safety
/// `arrivals` is null or points to `count` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_feedback(
    sender: *mut PacelineSender,
    now_ns: i64,
    arrivals: *const PacelineArrival,
    count: usize,
) -> PacelineStatus {
    with(sender, |sender| {
        let now = values::time(now_ns)?;
        let arrivals = slice(arrivals, count, "arrivals")?;
        let valid = |packet: &PacelineArrival| -> Result<_, Failure> {
            let arrival = match packet.arrived {
                0 => None,
                _ => Some(values::remote_time(packet.arrival_ns, "arrival_ns")?),
            };
            Ok((packet.sequence, arrival, values::ecn(packet.ecn)?))
        };
        let packets: Vec<_> = arrivals.iter().map(valid).collect::<Result<_, _>>()?;
        sender.handle_feedback(now, packets.into_iter())
    })
}

/// Handles an RTCP compound: transport-wide feedback (TWCC), RFC 8888 feedback, REMB, and the messages of Paceline's receivers.
/// Receiver reports count as proof that packets arrive; pass their loss and round-trip time to `paceline_sender_loss` and
/// `paceline_sender_rtt`. Other packets are skipped. Returns `PACELINE_ERROR_RTCP` for invalid bytes, and
/// `PACELINE_ERROR_ARGUMENT` for RFC 8888 feedback if `paceline_sender_rtp_number` was never called.
///
/// # Safety
/// `bytes` is null or points to `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_rtcp(
    sender: *mut PacelineSender,
    now_ns: i64,
    bytes: *const u8,
    length: usize,
) -> PacelineStatus {
    with(sender, |sender| {
        let now = values::time(now_ns)?;
        sender.handle_rtcp(now, slice(bytes, length, "bytes")?)
    })
}

/// Handles a sample of the round-trip time, above 0 and at most an hour.
///
/// # Safety
/// `sender` is null or a sender.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_rtt(sender: *mut PacelineSender, now_ns: i64, rtt_ns: i64) -> PacelineStatus {
    at(sender, now_ns, |sender, now| {
        sender.core.handle_rtt(now, values::rtt(rtt_ns)?);
        Ok(())
    })
}

/// Handles the fraction of packets that receiver reports give as lost, 0 to 1. A call should cover at least 20 packets.
///
/// # Safety
/// `sender` is null or a sender.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_loss(
    sender: *mut PacelineSender,
    now_ns: i64,
    fraction: f64,
) -> PacelineStatus {
    at(sender, now_ns, |sender, now| {
        let valid = Fraction::new(fraction).ok_or_else(|| argument("`fraction` must be from 0 to 1"))?;
        sender.core.handle_loss(now, valid);
        Ok(())
    })
}

/// Handles a receiver estimated maximum bitrate (REMB), bit/s. Controllers that need none take it as a limit, or ignore it.
///
/// # Safety
/// `sender` is null or a sender.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_remb(
    sender: *mut PacelineSender,
    now_ns: i64,
    rate_bps: u64,
) -> PacelineStatus {
    at(sender, now_ns, |sender, now| {
        sender.core.handle_message(now, &Message::Remb(values::rate(rate_bps, "rate_bps")?));
        Ok(())
    })
}

/// Sets the lowest and the highest target, bit/s. They apply at once. Probes above the highest target are dropped.
///
/// # Safety
/// `sender` is null or a sender.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_bounds(
    sender: *mut PacelineSender,
    now_ns: i64,
    min_bps: u64,
    max_bps: u64,
) -> PacelineStatus {
    at(sender, now_ns, |sender, now| {
        let bounds = values::bounds(min_bps, max_bps)?;
        sender.core.set_bounds(now, &bounds);
        Ok(())
    })
}

/// Handles a change of the network route: what was measured says nothing about the new path. Feedback on packets that left before
/// is ignored; packets in the queue and the numbers of packets stay.
///
/// # Safety
/// Each pointer is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_route_change(
    sender: *mut PacelineSender,
    now_ns: i64,
    limits: *const PacelineLimits,
) -> PacelineStatus {
    at(sender, now_ns, |sender, now| {
        let setup = values::setup(&read_sized(limits, "limits")?)?;
        sender.core.handle_route_change(now, &setup);
        Ok(())
    })
}

/// Handles the loss (0) and the return (1) of the network. In between `paceline_sender_poll_packet` returns no packet and
/// `paceline_sender_push_frame` rejects frames. A change of the route does not bring the network back.
///
/// # Safety
/// `sender` is null or a sender.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_availability(
    sender: *mut PacelineSender,
    now_ns: i64,
    available: u8,
) -> PacelineStatus {
    at(sender, now_ns, |sender, now| {
        sender.core.set_available(now, available != 0);
        Ok(())
    })
}

/// Handles the passing of time. Call it at `paceline_sender_next_timeout`, or more often.
///
/// # Safety
/// `sender` is null or a sender.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_on_timeout(sender: *mut PacelineSender, now_ns: i64) -> PacelineStatus {
    at(sender, now_ns, |sender, now| {
        sender.core.handle_timeout(now);
        Ok(())
    })
}

/// Returns the time at which to call `paceline_sender_on_timeout` and then `paceline_sender_poll_packet`; it may be in the past.
/// `PACELINE_NEVER` for none, for null and after a defect.
///
/// # Safety
/// `sender` is null or a sender.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_next_timeout(sender: *const PacelineSender) -> i64 {
    read(sender, PACELINE_NEVER, |sender| sender.core.poll_timeout().map_or(PACELINE_NEVER, Time::as_nanos))
}

/// Returns the sending rate of the flow, bit/s, IP and UDP headers included; 0 for null and after a defect.
///
/// # Safety
/// `sender` is null or a sender.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_target(sender: *const PacelineSender) -> u64 {
    read(sender, 0, |sender| sender.core.target().as_bps())
}

/// Returns the pacing rate, bit/s; 0 for null and after a defect.
///
/// # Safety
/// `sender` is null or a sender.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_pacing(sender: *const PacelineSender) -> u64 {
    read(sender, 0, |sender| sender.core.decision().pacing.as_bps())
}

/// Writes the decision in force, for a program with a pacer of its own.
///
/// # Safety
/// Each pointer is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_decision(
    sender: *const PacelineSender,
    decision: *mut PacelineDecision,
) -> PacelineStatus {
    with_const(sender, |sender| {
        let value = values::decision(sender.core.decision(), sender.core.controller_timeout());
        write_sized(decision, "decision", value)
    })
}

/// Writes the state of the sender.
///
/// # Safety
/// Each pointer is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_snapshot(
    sender: *const PacelineSender,
    snapshot: *mut PacelineSnapshot,
) -> PacelineStatus {
    with_const(sender, |sender| {
        let (core, flight) = (&sender.core, sender.core.flight());
        let (packets_arrived, packets_lost) = core.packets_reported();
        let value = PacelineSnapshot {
            now_ns: sender.now.as_nanos(),
            outstanding_bytes: flight.outstanding.as_bytes(),
            after_highest_bytes: flight.after_highest.as_bytes(),
            queued_bytes: core.queued().as_bytes(),
            rtt_ns: core.rtt().map_or(0, |rtt| rtt.smoothed.as_nanos()),
            packets_sent: core.packets_sent(),
            packets_arrived,
            packets_lost,
            ..PacelineSnapshot::default()
        };
        write_sized(snapshot, "snapshot", value)
    })
}
