// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions of a receiver.
#![allow(unsafe_op_in_unsafe_fn, reason = "the contract of each function covers its whole body")]

use crate::PacelineSetting;
use crate::receiver::{BUFFER_MIN, Receiver};
use crate::status::{Object, PACELINE_ERROR_BUFFER, PacelineStatus, argument, catch};
use crate::{Opaque, copy_out, read, read_sized, text, values, with, writable, write};
use paceline::{MediaKind, RtpArrival};
use paceline_abi::{PACELINE_NEVER, PacelineLimits};
use paceline_units::{Ecn, RemoteTime, StreamId};
use paceline_wire::{AbsSendTime, RtpHeader};
use std::ffi::c_char;
use std::ptr;

/// A receiver. Opaque.
#[derive(Debug)]
pub struct PacelineReceiver(#[allow(dead_code, reason = "C sees the address alone")] Object<Receiver>);

impl Opaque for PacelineReceiver {
    type Inner = Receiver;
    const NAME: &str = "receiver";
}

/// A packet as it arrives.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PacelineReceivedPacket {
    /// The size of the struct in the caller's header: `sizeof`.
    pub size: usize,
    /// The size on the network, 1 to 65,535 bytes.
    pub size_bytes: u64,
    /// The transport-wide sequence number; negative if the packet has none. RFC 8888 feedback does without it.
    pub transport_sequence: i32,
    /// The 24 bits of the abs-send-time extension; negative if the packet has none. A controller that estimates at the receiver
    /// ignores a packet without it, or measures no delay.
    pub abs_send_time: i32,
    /// The RTP timestamp, which the packets of a frame share.
    pub rtp_timestamp: u32,
    /// The SSRC, which RFC 8888 feedback names; 0 for the `media_ssrc` of the receiver.
    pub ssrc: u32,
    /// The RTP sequence number.
    pub rtp_sequence: u16,
    /// The stream, a number of the caller's choice.
    pub stream: u8,
    /// 1 for audio, 0 for video.
    pub audio: u8,
    /// The purpose: `PACELINE_KIND_…`.
    pub kind: u8,
    /// The ECN field: `PACELINE_ECN_…`.
    pub ecn: u8,
}

paceline_abi::sized_structs!(PacelineReceivedPacket);

/// Creates a receiver for senders with the controller `name`, and writes its address to `receiver`. `own_ssrc` is written
/// into its RTCP as the sender of the packets, `media_ssrc` as the stream. Its feedback is transport-wide, or that of RFC 8888 for
/// a controller that uses ECN. Errors: as `paceline_sender_create`, and a controller that needs neither a receive half nor
/// feedback.
///
/// # Safety
/// Each pointer is null or valid; `name` ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_receiver_create(
    name: *const c_char,
    limits: *const PacelineLimits,
    own_ssrc: u32,
    media_ssrc: u32,
    receiver: *mut *mut PacelineReceiver,
) -> PacelineStatus {
    paceline_receiver_create_with(name, limits, own_ssrc, media_ssrc, ptr::null(), 0, receiver)
}

/// Creates a receiver as `paceline_receiver_create` does, with some parameters of the controller changed. Pass the settings of the
/// sender: a parameter of the send half has no effect here. Errors, besides: as `paceline_sender_create_with`.
///
/// # Safety
/// Each pointer is null or valid; names end with a zero; `settings` points to `count` settings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_receiver_create_with(
    name: *const c_char,
    limits: *const PacelineLimits,
    own_ssrc: u32,
    media_ssrc: u32,
    settings: *const PacelineSetting,
    count: usize,
    receiver: *mut *mut PacelineReceiver,
) -> PacelineStatus {
    catch(|| {
        writable(receiver, "receiver")?;
        let (name, limits) = (text(name, "name")?, read_sized(limits, "limits")?);
        let settings = crate::settings(settings, count)?;
        let object = Object::new(Receiver::new(name, &values::setup(&limits)?, &settings, [own_ssrc, media_ssrc])?);
        write(receiver, "receiver", Box::into_raw(object).cast())
    })
}

/// Frees a receiver. Null is allowed.
///
/// # Safety
/// `receiver` is null or a receiver that is in no call. It must not be used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_receiver_destroy(receiver: *mut PacelineReceiver) {
    crate::destroy(receiver)
}

/// Handles a packet that arrives at `now_ns` on the receiver's clock.
///
/// # Safety
/// Each pointer is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_receiver_packet(
    receiver: *mut PacelineReceiver,
    now_ns: i64,
    packet: *const PacelineReceivedPacket,
) -> PacelineStatus {
    with(receiver, |receiver| {
        let now = values::remote_time(now_ns, "now_ns")?;
        let packet = read_sized(packet, "packet")?;
        let (transport, sent) = (u16::try_from(packet.transport_sequence), u32::try_from(packet.abs_send_time));
        if packet.transport_sequence > u16::MAX.into() || packet.abs_send_time >= 1 << 24 {
            return Err(argument("`transport_sequence` has 16 bits and `abs_send_time` 24"));
        }
        let (kind, size) = (values::kind(packet.kind)?, values::packet_size(packet.size_bytes)?);
        let ecn = values::ecn(packet.ecn)?.unwrap_or(Ecn::NotEct);
        let media = if packet.audio == 0 { MediaKind::Video } else { MediaKind::Audio };
        let header = RtpHeader {
            sequence: packet.rtp_sequence,
            timestamp: packet.rtp_timestamp,
            ssrc: if packet.ssrc == 0 { receiver.media_ssrc } else { packet.ssrc },
            abs_send_time: sent.ok().map(AbsSendTime::from_bits),
            transport_sequence: transport.ok(),
            ..RtpHeader::default()
        };
        let arrival = RtpArrival::new(kind, size, ecn).with_stream(StreamId(packet.stream), media);
        receiver.handle_packet(now, &header, &arrival);
        Ok(())
    })
}

/// Handles the passing of time. Call it at `paceline_receiver_next_timeout`, or more often.
///
/// # Safety
/// `receiver` is null or a receiver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_receiver_on_timeout(receiver: *mut PacelineReceiver, now_ns: i64) -> PacelineStatus {
    with(receiver, |receiver| {
        receiver.handle_timeout(values::remote_time(now_ns, "now_ns")?);
        Ok(())
    })
}

/// Returns the time at which to call `paceline_receiver_on_timeout` and then `paceline_receiver_poll_rtcp`; it may be in the
/// past. `PACELINE_NEVER` for none, for null and after a defect.
///
/// # Safety
/// `receiver` is null or a receiver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_receiver_next_timeout(receiver: *const PacelineReceiver) -> i64 {
    let due = read(receiver, None, |receiver| receiver.core.poll_timeout());
    due.map_or(PACELINE_NEVER, RemoteTime::as_nanos)
}

/// Writes the next RTCP compound to send to the sender: a receiver report, with blocks once a second, then REMB and other messages, or
/// transport-wide or RFC 8888 feedback. Returns `PACELINE_NOTHING` if none is due. Call it until then. `capacity` must be at least 1200.
///
/// # Safety
/// `buffer` is null or has room for `capacity` bytes; `length` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_receiver_poll_rtcp(
    receiver: *mut PacelineReceiver,
    now_ns: i64,
    buffer: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> PacelineStatus {
    with(receiver, |receiver| {
        let now = values::remote_time(now_ns, "now_ns")?;
        writable(length, "length")?;
        if capacity < BUFFER_MIN {
            return Err((PACELINE_ERROR_BUFFER, format!("the buffer needs at least {BUFFER_MIN} bytes")));
        }
        writable(buffer, "buffer")?;
        let mut bytes = [0; BUFFER_MIN];
        let Some(written) = receiver.poll_rtcp(now, &mut bytes)? else { return Ok(None) };
        copy_out(&bytes[..written], buffer, capacity, "buffer")?;
        write(length, "length", written).map(Some)
    })
}
