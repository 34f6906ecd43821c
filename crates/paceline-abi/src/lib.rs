// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C types of Paceline: what programs in C pass to the controllers of the library (crate `paceline-c`), and the table of
//! functions by which a shared library gives the laboratory a controller of its own (`lib:`, `external` of `paceline-live`).
//!
//! Times are nanoseconds, rates bits per second, sizes bytes with IP and UDP headers. Choices are integers, because an
//! `enum` of Rust must not receive a value that it does not have. `cargo xtask c` writes these types into `paceline.h`, whose first
//! lines have the rule for structs that may grow. A new member of a sized struct follows the old end: the padding of an older struct may
//! contain anything.
#![allow(unsafe_code, reason = "a table holds pointers, and statics must be shareable between threads")]

use core::ffi::{c_char, c_void};

/// The version of [`PacelineControllerV1`]. It changes with the members that a table had, and with the structs without a `size` that its
/// functions take; a table to which functions are added keeps its version.
pub const PACELINE_CONTROLLER_VERSION: u32 = 3;

/// A time that never comes: no timeout, no limit.
pub const PACELINE_NEVER: i64 = i64::MAX;

/// No probe cluster, in `probe`.
pub const PACELINE_NO_PROBE: i32 = -1;

/// The first transmission of media, in `kind`.
pub const PACELINE_KIND_MEDIA: u8 = 0;
/// A retransmission.
pub const PACELINE_KIND_RETRANSMISSION: u8 = 1;
/// Forward error correction.
pub const PACELINE_KIND_FEC: u8 = 2;
/// Padding alone.
pub const PACELINE_KIND_PADDING: u8 = 3;

/// The ECN field of a packet that is not ECN-capable.
pub const PACELINE_ECN_NOT_ECT: u8 = 0;
/// The ECN codepoint ECT(1), for L4S.
pub const PACELINE_ECN_ECT1: u8 = 1;
/// The ECN codepoint ECT(0).
pub const PACELINE_ECN_ECT0: u8 = 2;
/// The ECN codepoint CE, congestion experienced.
pub const PACELINE_ECN_CE: u8 = 3;
/// The feedback does not contain the ECN field.
pub const PACELINE_ECN_UNKNOWN: u8 = 255;

/// There is no bound on bytes in flight, in `window`.
pub const PACELINE_WINDOW_NONE: u8 = 0;
/// A bound on the bytes that are neither acknowledged nor lost.
pub const PACELINE_WINDOW_OUTSTANDING: u8 = 1;
/// A bound on the bytes sent after the highest acknowledged packet (RFC 8298).
pub const PACELINE_WINDOW_AFTER_HIGHEST: u8 = 2;

/// Transport-wide feedback, without ECN, in `feedback`.
pub const PACELINE_FEEDBACK_TRANSPORT_WIDE: u32 = 0;
/// Feedback of RFC 8888, with ECN.
pub const PACELINE_FEEDBACK_RFC8888: u32 = 1;
/// No per-packet feedback.
pub const PACELINE_FEEDBACK_NONE: u32 = 2;

/// The receiver estimated maximum bitrate, in `kind` of a message.
pub const PACELINE_MESSAGE_REMB: u32 = 1;
/// The report of a NADA receiver.
pub const PACELINE_MESSAGE_NADA: u32 = 3;
/// An application-defined message (RFC 3550, section 6.7).
pub const PACELINE_MESSAGE_APP: u32 = 4;

/// A struct that begins with its size, as the program that allocated it knows it.
///
/// # Safety
/// The struct has the representation of C, its first member is `size: usize`, and any bytes are a value of it.
pub unsafe trait SizedStruct: Copy + Default {}

/// Declares structs that begin with their size. Their default is 0 in each other member.
#[macro_export]
macro_rules! sized_structs {
    ($($name:ident),+) => { $(
        impl Default for $name {
            fn default() -> Self {
                // SAFETY: zeros are a value of it.
                Self { size: size_of::<Self>(), ..unsafe { core::mem::zeroed() } }
            }
        }
        // SAFETY: its declaration above.
        unsafe impl $crate::SizedStruct for $name {}
    )+ };
}

sized_structs!(PacelineLimits, PacelineProbe, PacelineDecision);

/// Limits of a flow.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacelineLimits {
    /// The size of the struct in the caller's header: `sizeof`.
    pub size: usize,
    /// The first target, bit/s; above 0.
    pub start_bps: u64,
    /// The lowest target, bit/s; at most `start_bps` and `max_bps`.
    pub min_bps: u64,
    /// The highest rate that the sources can use, bit/s; above 0.
    pub max_bps: u64,
    /// The size of the largest RTP packet, without IP and UDP headers; 0 stands for 1200.
    pub packet_size_bytes: u64,
}

/// A packet that left the pacer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacelineSentPacket {
    /// The number within the flow, from 0. Its low 16 bits are the transport-wide sequence number.
    pub sequence: u64,
    /// The size on the network.
    pub size_bytes: u64,
    /// The bytes that were neither acknowledged nor lost before this packet left; negative without per-packet feedback.
    pub in_flight_bytes: i64,
    /// The probe cluster that the packet belongs to, or `PACELINE_NO_PROBE`.
    pub probe: i32,
    /// The stream.
    pub stream: u8,
    /// The purpose: `PACELINE_KIND_…`.
    pub kind: u8,
}

/// The receiver's report on one packet, joined with the sender's record of it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacelinePacketReport {
    /// The number within the flow.
    pub sequence: u64,
    /// The time at which the packet left the pacer.
    pub sent_ns: i64,
    /// The time at which it arrived, on the receiver's clock, whose origin is unknown; without meaning if it did not arrive.
    pub arrival_ns: i64,
    /// The size on the network.
    pub size_bytes: u64,
    /// The bytes that were neither acknowledged nor lost before this packet left.
    pub in_flight_bytes: u64,
    /// The probe cluster that the packet belongs to, or `PACELINE_NO_PROBE`.
    pub probe: i32,
    /// The stream.
    pub stream: u8,
    /// The purpose: `PACELINE_KIND_…`.
    pub kind: u8,
    /// 1 if the packet arrived, 0 if it is reported lost.
    pub arrived: u8,
    /// The ECN field on arrival: `PACELINE_ECN_…`.
    pub ecn: u8,
}

/// The round-trip time, without the time for which the receiver held the report.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacelineRoundTrip {
    /// The last sample.
    pub last_ns: i64,
    /// The smoothed time: each sample has a weight of 1/8.
    pub smoothed_ns: i64,
}

/// One per-packet feedback message.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PacelineFeedback {
    /// The packets whose state changed, by sequence number. Valid during the call.
    pub packets: *const PacelinePacketReport,
    /// The number of packets.
    pub packet_count: usize,
    /// The bytes that are neither acknowledged nor lost.
    pub outstanding_bytes: u64,
    /// The bytes sent after the highest acknowledged packet.
    pub after_highest_bytes: u64,
    /// The round-trip time, if `has_rtt`.
    pub rtt: PacelineRoundTrip,
    /// 1 if the format contains the round-trip time.
    pub has_rtt: u8,
}

/// A message of the receive half.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacelineMessage {
    /// `PACELINE_MESSAGE_…`. It decides which of the other fields have a meaning.
    pub kind: u32,
    /// NADA: 1 in accelerated ramp-up, 0 in gradual update.
    pub ramp_up: u8,
    /// APP: the subtype.
    pub subtype: u8,
    /// APP: the name of four ASCII characters, without a zero at the end.
    pub name: [u8; 4],
    /// REMB: the rate. NADA: the incoming rate.
    pub rate_bps: u64,
    /// NADA: the congestion signal `x_curr`.
    pub signal_ns: i64,
    /// APP: the number of words.
    pub word_count: u32,
    /// APP: the data.
    pub words: [u32; 16],
}

/// The state of a stream.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PacelineStream {
    /// The size of its packets in the pacer's queue.
    pub queued_bytes: u64,
    /// The rate that was allocated to the stream and that its source did not use.
    pub unused_bps: u64,
    /// The weight when streams share the target.
    pub priority: f64,
    /// The lowest rate of the source.
    pub min_bps: u64,
    /// The highest rate of the source.
    pub max_bps: u64,
    /// The stream.
    pub stream: u8,
}

/// A frame whose packets are in the pacer's queue.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacelineFrame {
    /// The size of its packets on the network.
    pub size_bytes: u64,
    /// The number of its packets.
    pub packets: u32,
    /// The stream.
    pub stream: u8,
    /// 1 if it can be decoded without earlier frames.
    pub key: u8,
}

/// A probe cluster to send.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacelineProbe {
    /// The size of the struct in the caller's header: `sizeof`.
    pub size: usize,
    /// The rate of its packets; above 0.
    pub rate_bps: u64,
    /// The cluster ends when this much time's worth of bytes at its rate has left.
    pub duration_ns: u64,
    /// A number of the controller's choice. The packets of the cluster have it.
    pub id: u16,
    /// The least number of packets.
    pub packets: u16,
}

/// The instructions for encoder and pacer.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacelineDecision {
    /// The size of the struct in the caller's header: `sizeof`.
    pub size: usize,
    /// The sending rate of the flow.
    pub target_bps: u64,
    /// A rate up to the target that changes more slowly; from a controller, 0 stands for the target.
    pub stable_target_bps: u64,
    /// The rate at which the pacer empties its queue; from a controller, 0 stands for the target.
    pub pacing_bps: u64,
    /// Padding should fill what media leaves free up to this rate. The laboratory does so, and so does
    /// `paceline_sender_poll_packet`; a program with a pacer of its own makes these packets itself.
    pub padding_bps: u64,
    /// If above 0, packets leave in bursts of this length.
    pub burst_ns: u64,
    /// If above 0, packets leave at multiples of this time only.
    pub tick_ns: u64,
    /// The bound on bytes in flight, if `window` is not `PACELINE_WINDOW_NONE`.
    pub window_bytes: u64,
    /// The longest wait of a frame in the pacer's queue; `PACELINE_NEVER` for the limit of the flow. What waits longer is
    /// discarded.
    pub queue_max_ns: i64,
    /// The time of the next timeout; `PACELINE_NEVER` for none. A time in the past is due at once.
    pub timeout_ns: i64,
    /// `PACELINE_WINDOW_…`.
    pub window: u8,
    /// The ECN codepoint of RTP packets: `PACELINE_ECN_…`, not CE.
    pub ecn: u8,
}

/// A variable of a controller over time. Plots and result tables show it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PacelineSignal {
    /// The name; UTF-8.
    pub name: *const c_char,
    /// The unit; null for pure numbers.
    pub unit: *const c_char,
}

/// A number of a controller that `--set flow.ID.config.NAME=VALUE` changes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PacelineParameter {
    /// The name; UTF-8.
    pub name: *const c_char,
    /// The unit; null for pure numbers.
    pub unit: *const c_char,
    /// One line of description, or null.
    pub description: *const c_char,
    /// The value if none is set.
    pub default_value: f64,
    /// The lowest value.
    pub min: f64,
    /// The highest value.
    pub max: f64,
}

/// A controller in a shared library. The library exports
/// `const PacelineControllerV1 *paceline_controller_v1(void);`, which returns a table that lives as long as the process.
///
/// Set the members by name and leave the others zero: a null function handles nothing, and so does one behind `size`. Functions that the
/// laboratory does not know are not called. Only `version`, `size`, `create`,
/// `destroy` and `decide` are needed. A handler returns 0, or another number to end the run with an error. After each
/// handler the laboratory calls `decide`. Times never decrease. Runs on several threads have a state each, which one thread at
/// a time uses; anything that states share needs protection. Equal calls must cause equal decisions: read no clock.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PacelineControllerV1 {
    /// `PACELINE_CONTROLLER_VERSION`.
    pub version: u32,
    /// `sizeof(PacelineControllerV1)`.
    pub size: u32,
    /// One line of description, or null.
    pub summary: *const c_char,
    /// The document that the controller follows, or null.
    pub source: *const c_char,
    /// A controller of Paceline whose receive half runs at the receiver, or null. With `gcc-2016`, `on_message` gets REMBs.
    pub receive_of: *const c_char,
    /// The format of per-packet feedback: `PACELINE_FEEDBACK_…`.
    pub feedback: u32,
    /// The time between two feedback messages; 0 stands for 50 ms.
    pub feedback_interval_ms: u32,
    /// The longest time between two feedback messages; 0 stands for 250 ms.
    pub feedback_longest_ms: u32,
    /// 1 if the laboratory must not lower the rate when feedback stops, because the controller does so itself.
    pub unguarded: u32,
    /// The signals, up to 256, or null.
    pub signals: *const PacelineSignal,
    /// The number of signals.
    pub signal_count: usize,
    /// The parameters, or null.
    pub parameters: *const PacelineParameter,
    /// The number of parameters.
    pub parameter_count: usize,
    /// Creates the state of a flow. Receives the value of each parameter in the order of the table. Null is an error.
    pub create: Option<
        unsafe extern "C" fn(
            limits: *const PacelineLimits,
            parameters: *const f64,
            parameter_count: usize,
        ) -> *mut c_void,
    >,
    /// Frees a state.
    pub destroy: Option<unsafe extern "C" fn(state: *mut c_void)>,
    /// Copies a state. Null: flows of this controller cannot be copied.
    pub copy: Option<unsafe extern "C" fn(state: *const c_void) -> *mut c_void>,
    /// Handles a packet that left the pacer.
    pub on_packet_sent:
        Option<unsafe extern "C" fn(state: *mut c_void, now_ns: i64, packet: *const PacelineSentPacket) -> i32>,
    /// Handles per-packet feedback.
    pub on_feedback:
        Option<unsafe extern "C" fn(state: *mut c_void, now_ns: i64, feedback: *const PacelineFeedback) -> i32>,
    /// Handles a sample of the round-trip time.
    pub on_rtt: Option<unsafe extern "C" fn(state: *mut c_void, now_ns: i64, rtt: *const PacelineRoundTrip) -> i32>,
    /// Handles the fraction of packets lost in receiver reports, 0 to 1, over at least 20 packets.
    pub on_report: Option<unsafe extern "C" fn(state: *mut c_void, now_ns: i64, fraction_lost: f64) -> i32>,
    /// Handles a message of the receive half.
    pub on_message:
        Option<unsafe extern "C" fn(state: *mut c_void, now_ns: i64, message: *const PacelineMessage) -> i32>,
    /// Handles proof that packets arrive.
    pub on_liveness: Option<unsafe extern "C" fn(state: *mut c_void, now_ns: i64) -> i32>,
    /// Handles the state of a stream, before each of its frames.
    pub on_stream: Option<unsafe extern "C" fn(state: *mut c_void, now_ns: i64, stream: *const PacelineStream) -> i32>,
    /// Handles a frame that was queued in the pacer.
    pub on_frame: Option<unsafe extern "C" fn(state: *mut c_void, now_ns: i64, frame: *const PacelineFrame) -> i32>,
    /// Handles that the application began (1) or ceased (0) to limit the flow.
    pub on_application_limit: Option<unsafe extern "C" fn(state: *mut c_void, now_ns: i64, limited: u8) -> i32>,
    /// Handles the end of a stream.
    pub on_stream_removed: Option<unsafe extern "C" fn(state: *mut c_void, now_ns: i64, stream: u8) -> i32>,
    /// Handles new limits of the target.
    pub on_bounds: Option<unsafe extern "C" fn(state: *mut c_void, now_ns: i64, min_bps: u64, max_bps: u64) -> i32>,
    /// Handles a change of the network route: what was measured says nothing about the new path.
    pub on_route: Option<unsafe extern "C" fn(state: *mut c_void, now_ns: i64, limits: *const PacelineLimits) -> i32>,
    /// Handles the loss (0) and the return (1) of the network.
    pub on_availability: Option<unsafe extern "C" fn(state: *mut c_void, now_ns: i64, available: u8) -> i32>,
    /// Handles the time `timeout_ns` of the decision, which may have passed a while ago. The next one must be later than that time,
    /// not than `now_ns`.
    pub on_timeout: Option<unsafe extern "C" fn(state: *mut c_void, now_ns: i64) -> i32>,
    /// Writes the decision. It arrives with the start rate as the target, without timeout, window, padding and ECN.
    pub decide: Option<unsafe extern "C" fn(state: *mut c_void, decision: *mut PacelineDecision) -> i32>,
    /// Writes the next probe cluster to send and returns 1, or returns 0. Called until it returns 0, up to 64 times.
    pub poll_probe: Option<unsafe extern "C" fn(state: *mut c_void, now_ns: i64, probe: *mut PacelineProbe) -> i32>,
    /// Writes the rate of a stream and returns 1, or returns 0 if the laboratory divides the target.
    pub stream_rate: Option<unsafe extern "C" fn(state: *mut c_void, stream: u8, rate_bps: *mut u64) -> i32>,
    /// Writes the value of each signal in the order of the table. They arrive as NaN, which stands for no value.
    pub read_signals: Option<unsafe extern "C" fn(state: *mut c_void, values: *mut f64, signal_count: usize) -> i32>,
}

// SAFETY: a table is never written after it was made, and its pointers are to constants.
unsafe impl Sync for PacelineControllerV1 {}
// SAFETY: as above.
unsafe impl Send for PacelineControllerV1 {}

impl PacelineControllerV1 {
    /// A table that handles nothing.
    pub const EMPTY: Self = Self {
        version: PACELINE_CONTROLLER_VERSION,
        size: size_of::<Self>() as u32,
        summary: core::ptr::null(),
        source: core::ptr::null(),
        receive_of: core::ptr::null(),
        feedback: PACELINE_FEEDBACK_TRANSPORT_WIDE,
        feedback_interval_ms: 0,
        feedback_longest_ms: 0,
        unguarded: 0,
        signals: core::ptr::null(),
        signal_count: 0,
        parameters: core::ptr::null(),
        parameter_count: 0,
        create: None,
        destroy: None,
        copy: None,
        on_packet_sent: None,
        on_feedback: None,
        on_rtt: None,
        on_report: None,
        on_message: None,
        on_liveness: None,
        on_stream: None,
        on_frame: None,
        on_application_limit: None,
        on_stream_removed: None,
        on_bounds: None,
        on_route: None,
        on_availability: None,
        on_timeout: None,
        decide: None,
        poll_probe: None,
        stream_rate: None,
        read_signals: None,
    };
}
