// SPDX-License-Identifier: MIT OR Apache-2.0
//! Controllers for JavaScript. `js/paceline.mjs` wraps this interface.
//!
//! Every argument and result is a number: times in ms, rates in bit/s, sizes in bytes. A sender has a handle, which is never used
//! again. A call that cannot be taken has no effect, returns a negative number, or NaN, and leaves a message in the buffer of text, by which
//! names come in, too. Lists come in through the buffer of numbers, which the next call takes.
#![allow(unsafe_code, reason = "exported names must not be mangled")]

mod sender;

use paceline::{PacketKind, SenderEvent, Transmit, Window};
use paceline_units::{Fraction, TimeDelta};
use sender::{Sender, bounds, setup, time};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

static TEXT: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static SENDERS: Mutex<BTreeMap<u32, Sender>> = Mutex::new(BTreeMap::new());
static NUMBERS: Mutex<Vec<f64>> = Mutex::new(Vec::new());
/// The packet that `poll_transmit` returned.
static PACKET: Mutex<Option<Transmit<f64>>> = Mutex::new(None);

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn text_of_caller() -> String {
    String::from_utf8_lossy(&lock(&TEXT)).into_owned()
}

/// Returns the result of a call, or -1 with the message of an error.
fn status(result: Result<i32, String>) -> i32 {
    result.unwrap_or_else(|message| {
        *lock(&TEXT) = message.into_bytes();
        -1
    })
}

/// Calls `work` with the sender of a handle.
fn with<T>(handle: u32, work: impl FnOnce(&mut Sender) -> Result<T, String>) -> Result<T, String> {
    match lock(&SENDERS).get_mut(&handle) {
        Some(sender) => work(sender),
        None => Err("this sender was freed".to_owned()),
    }
}

/// Calls `work`, which returns nothing.
fn run(handle: u32, work: impl FnOnce(&mut Sender) -> Result<(), String>) -> i32 {
    status(with(handle, |sender| work(sender).map(|()| 0)))
}

/// Returns a value, or NaN with the message of an error.
fn read(handle: u32, value: impl FnOnce(&mut Sender) -> Result<f64, String>) -> f64 {
    with(handle, value).unwrap_or_else(|message| {
        *lock(&TEXT) = message.into_bytes();
        f64::NAN
    })
}

/// Makes room for a text of `length` bytes, and returns its address.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn text(length: usize) -> *const u8 {
    let mut text = lock(&TEXT);
    *text = vec![0; length];
    text.as_ptr()
}

/// Makes room for a list of `count` numbers, and returns its address.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn numbers(count: usize) -> *const f64 {
    let mut numbers = lock(&NUMBERS);
    *numbers = vec![0.0; count];
    numbers.as_ptr()
}

/// Takes the list of numbers.
fn take_numbers() -> Vec<f64> {
    core::mem::take(&mut lock(&NUMBERS))
}

/// Returns the length of the text, bytes.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn text_length() -> usize {
    lock(&TEXT).len()
}

/// Returns the address of the text.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn text_address() -> *const u8 {
    lock(&TEXT).as_ptr()
}

/// Sets the text to the names of all controllers, separated by spaces.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn controllers() {
    *lock(&TEXT) = sender::names().join(" ").into_bytes();
}

/// Returns what the controller that the text names needs: 1 for reports on packets, 2 for their ECN field, 4 for REMB, 8 for messages
/// that only a receiver of Paceline sends.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn needs() -> i32 {
    status(sender::needs(&text_of_caller()))
}

/// Creates a sender. The text has the name of its controller and those of changed parameters, separated by zeros; the numbers are their
/// values. Returns its handle.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn create(start_bps: f64, min_bps: f64, max_bps: f64) -> i32 {
    let (text, values) = (text_of_caller(), take_numbers());
    let mut names = text.split('\0');
    let name = names.next().unwrap_or_default();
    // A name with a zero in it is more names than there are values, and NaN is the value of none.
    let parameters: Vec<_> =
        names.map(str::to_owned).zip(values.into_iter().chain(core::iter::repeat(f64::NAN))).collect();
    let created = setup(start_bps, min_bps, max_bps).and_then(|setup| Sender::new(name, &setup, &parameters));
    status(created.and_then(|sender| {
        let mut senders = lock(&SENDERS);
        static LAST: Mutex<i32> = Mutex::new(0);
        let mut last = lock(&LAST);
        *last = last.checked_add(1).ok_or("too many senders")?;
        senders.insert(last.unsigned_abs(), sender);
        Ok(*last)
    }))
}

/// Frees a sender.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn free(handle: u32) {
    lock(&SENDERS).remove(&handle);
}

/// Records a packet that leaves, and returns its number from 0. `kind` is 0 for media, 1 for a retransmission, 2 for FEC, 3 for padding;
/// `probe` is the id of its probe cluster, or NaN.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn handle_sent(handle: u32, now_ms: f64, bytes: f64, kind: i32, probe: f64) -> f64 {
    read(handle, |sender| sender.handle_sent(now_ms, bytes, kind, probe))
}

/// Handles reports on packets. The numbers are, for each packet, its number, its arrival on the receiver's clock, or NaN if it is lost, and
/// its ECN field, or NaN.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn handle_feedback(handle: u32, now_ms: f64) -> i32 {
    let reports = take_numbers();
    run(handle, |sender| sender.handle_feedback(now_ms, &reports))
}

/// Handles a round-trip time.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn handle_rtt(handle: u32, now_ms: f64, rtt_ms: f64) -> i32 {
    run(handle, |sender| {
        if !(rtt_ms > 0.0 && rtt_ms <= 3.6e6) {
            return Err(format!("`rttMs` must be above 0 and at most an hour, not {rtt_ms}"));
        }
        sender.core.handle_rtt(time(now_ms)?, TimeDelta::from_millis_f64(rtt_ms));
        Ok(())
    })
}

/// Handles the fraction of packets that a receiver report gives as lost, 0 to 1.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn handle_loss(handle: u32, now_ms: f64, fraction: f64) -> i32 {
    run(handle, |sender| {
        let lost = Fraction::new(fraction).ok_or_else(|| format!("`fraction` must be from 0 to 1, not {fraction}"))?;
        sender.core.handle_loss(time(now_ms)?, lost);
        Ok(())
    })
}

/// Handles a receiver estimated maximum bitrate (REMB).
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn handle_remb(handle: u32, now_ms: f64, bps: f64) -> i32 {
    run(handle, |sender| sender.handle_remb(now_ms, bps))
}

/// Sets the lowest and the highest target.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn set_bounds(handle: u32, now_ms: f64, min_bps: f64, max_bps: f64) -> i32 {
    run(handle, |sender| {
        sender.core.set_bounds(time(now_ms)?, &bounds(min_bps, max_bps)?);
        Ok(())
    })
}

/// Handles a change of the network route.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn handle_route_change(handle: u32, now_ms: f64, start_bps: f64, min_bps: f64, max_bps: f64) -> i32 {
    run(handle, |sender| {
        sender.core.handle_route_change(time(now_ms)?, &setup(start_bps, min_bps, max_bps)?);
        Ok(())
    })
}

/// Sets whether there is a network.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn set_available(handle: u32, now_ms: f64, available: i32) -> i32 {
    run(handle, |sender| {
        sender.core.set_available(time(now_ms)?, available != 0);
        Ok(())
    })
}

/// Handles the passing of time.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn handle_timeout(handle: u32, now_ms: f64) -> i32 {
    run(handle, |sender| {
        sender.core.handle_timeout(time(now_ms)?);
        Ok(())
    })
}

/// Queues a frame. The numbers are, for each packet, a number of the caller's choice, and its size. Returns 1, or 0 if the frame is dropped.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn push_frame(handle: u32, now_ms: f64, key: i32) -> i32 {
    let packets = take_numbers();
    status(with(handle, |sender| sender.push_frame(now_ms, key != 0, &packets).map(i32::from)))
}

/// Takes the next packet that may leave. Returns 1, or 0 for none; `packet_…` then have its values.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn poll_transmit(handle: u32, now_ms: f64) -> i32 {
    status(with(handle, |sender| {
        let packet = sender.core.poll_transmit(time(now_ms)?);
        let is_some = packet.is_some();
        *lock(&PACKET) = packet;
        Ok(i32::from(is_some))
    }))
}

/// Returns a value of the packet that `poll_transmit` took: 0 for its number, 1 for its token (NaN for padding), 2 for its size, 3 for its
/// probe cluster (-1 for none), 4 for its ECN codepoint.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn packet_value(index: i32) -> f64 {
    let packet = lock(&PACKET);
    let Some(packet) = packet.as_ref() else { return f64::NAN };
    match index {
        0 => packet.head.number as f64,
        1 if packet.head.kind == PacketKind::Padding => f64::NAN,
        1 => packet.packet.unwrap_or(f64::NAN),
        2 => packet.size.as_bytes() as f64,
        3 => packet.probe.map_or(-1.0, f64::from),
        _ => f64::from(packet.ecn as u8),
    }
}

/// Takes a number of a packet that was discarded because its frame waited for too long; NaN for none.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn poll_discarded(handle: u32) -> f64 {
    with(handle, |sender| Ok(sender.core.poll_discarded())).ok().flatten().unwrap_or(f64::NAN)
}

/// Takes the next probe cluster for a program that paces. Sets the text to it, in JSON. Returns 1, or 0 for none.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn poll_probe(handle: u32) -> i32 {
    status(with(handle, |sender| {
        let Some(cluster) = sender.core.poll_probe() else { return Ok(0) };
        let (id, rate, packets) = (cluster.id, cluster.rate.as_bps(), cluster.packets);
        let ms = cluster.duration.as_millis_f64();
        let text = format!(r#"{{"id":{id},"rateBps":{rate},"durationMs":{ms},"packets":{packets}}}"#);
        *lock(&TEXT) = text.into_bytes();
        Ok(1)
    }))
}

/// Takes the next event. Sets the text to it, in JSON. Returns 1, or 0 for none. Samples that the program passed are no events here.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn poll_event(handle: u32) -> i32 {
    status(with(handle, |sender| {
        while let Some(event) = sender.core.poll_event() {
            let (kind, members) = match event {
                SenderEvent::Decision(_) => ("decision", String::new()),
                SenderEvent::StreamRates => {
                    ("stream-rates", format!(r#","rateBps":{}"#, sender.encoder_rate().as_bps()))
                }
                SenderEvent::ProbeResult { id, rate } => {
                    ("probe-result", format!(r#","probe":{id},"rateBps":{}"#, rate.as_bps()))
                }
                SenderEvent::FrameDropped(_) => ("frame-dropped", String::new()),
                SenderEvent::KeyFrameRequested(_) => ("key-frame-requested", String::new()),
                SenderEvent::FeedbackLost => ("feedback-lost", String::new()),
                SenderEvent::FeedbackResumed => ("feedback-resumed", String::new()),
                SenderEvent::ClockSteppedBack(_) => ("clock-stepped-back", String::new()),
                SenderEvent::ControllerFailed => ("controller-failed", String::new()),
                _ => continue,
            };
            *lock(&TEXT) = format!(r#"{{"type":"{kind}"{members}}}"#).into_bytes();
            return Ok(1);
        }
        Ok(0)
    }))
}

/// Returns a value of the sender: 0 for the target, 1 for the pacing rate, 2 for the padding rate, 3 for the time of the next timeout in ms
/// (infinite for never), 4 for the bound on bytes in flight (infinite for none), 5 for the bytes in flight that it bounds, 6 for the longest
/// wait in the queue in ms (infinite for no own limit), 7 for the ECN codepoint, 8 for whether the window is open, 9 for the bytes in
/// the queue, 10 for the stable target.
#[cfg_attr(target_family = "wasm", unsafe(no_mangle))]
pub extern "C" fn value(handle: u32, index: i32) -> f64 {
    read(handle, |sender| {
        let (core, decision, flight) = (&sender.core, sender.core.decision(), sender.core.flight());
        Ok(match index {
            0 => decision.target.as_bps_f64(),
            1 => decision.pacing.as_bps_f64(),
            2 => decision.padding.as_bps_f64(),
            3 => core.poll_timeout().map_or(f64::INFINITY, |at| at.as_nanos() as f64 / 1e6),
            4 => match decision.window {
                Some(Window::Outstanding(size) | Window::AfterHighest(size)) => size.as_bytes() as f64,
                None => f64::INFINITY,
            },
            5 => match decision.window {
                Some(Window::AfterHighest(_)) => flight.after_highest.as_bytes() as f64,
                _ => flight.outstanding.as_bytes() as f64,
            },
            6 if decision.queue_max == TimeDelta::MAX => f64::INFINITY,
            6 => decision.queue_max.as_millis_f64(),
            7 => f64::from(decision.ecn as u8),
            8 => f64::from(u8::from(core.window_is_open())),
            9 => core.queued().as_bytes() as f64,
            10 => decision.stable_target.as_bps_f64(),
            _ => f64::NAN,
        })
    })
}
