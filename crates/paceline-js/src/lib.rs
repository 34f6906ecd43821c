//! Controllers for JavaScript. `js/paceline.mjs` wraps this interface.
//!
//! Every argument and result is a number: times in ms, rates in bit/s, sizes in bytes. A sender has a handle. Times of one sender
//! never decrease. Names and error messages go through one buffer of text.
#![allow(unsafe_code, reason = "exported names must not be mangled")]

mod sender;

use sender::Sender;
use std::sync::{Mutex, MutexGuard, PoisonError};

static TEXT: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static SENDERS: Mutex<Vec<Option<Sender>>> = Mutex::new(Vec::new());

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `work` with the sender of a handle. Returns `absent` if it was freed.
fn with<T>(handle: usize, absent: T, work: impl FnOnce(&mut Sender) -> T) -> T {
    lock(&SENDERS).get_mut(handle).and_then(Option::as_mut).map_or(absent, work)
}

/// Makes room for a text of `length` bytes, and returns its address.
#[unsafe(no_mangle)]
pub extern "C" fn text(length: usize) -> *const u8 {
    let mut text = lock(&TEXT);
    *text = vec![0; length];
    text.as_ptr()
}

/// Returns the length of the text, bytes.
#[unsafe(no_mangle)]
pub extern "C" fn text_length() -> usize {
    lock(&TEXT).len()
}

/// Returns the address of the text.
#[unsafe(no_mangle)]
pub extern "C" fn text_address() -> *const u8 {
    lock(&TEXT).as_ptr()
}

/// Sets the text to the names of all controllers, separated by spaces.
#[unsafe(no_mangle)]
pub extern "C" fn controllers() {
    *lock(&TEXT) = sender::names().join(" ").into_bytes();
}

/// Creates a sender whose controller the text names. Returns its handle, or -1 with a message in the text.
#[unsafe(no_mangle)]
pub extern "C" fn create(start_bps: f64, min_bps: f64, max_bps: f64) -> i32 {
    let name = String::from_utf8_lossy(&lock(&TEXT)).into_owned();
    match Sender::new(&name, start_bps, min_bps, max_bps) {
        Ok(sender) => {
            let mut senders = lock(&SENDERS);
            let free = senders.iter().position(Option::is_none).unwrap_or(senders.len());
            let length = senders.len().max(free + 1);
            senders.resize_with(length, || None);
            senders[free] = Some(sender);
            i32::try_from(free).unwrap_or(-1)
        }
        Err(message) => {
            *lock(&TEXT) = message.into_bytes();
            -1
        }
    }
}

/// Frees a sender.
#[unsafe(no_mangle)]
pub extern "C" fn free(handle: usize) {
    if let Some(sender) = lock(&SENDERS).get_mut(handle) {
        *sender = None;
    }
}

/// Records a packet that leaves, and returns its number from 0.
#[unsafe(no_mangle)]
pub extern "C" fn handle_sent(handle: usize, now_ms: f64, bytes: f64) -> f64 {
    with(handle, f64::NAN, |sender| sender.handle_sent(now_ms, bytes))
}

/// Adds a packet to the next feedback: its arrival on the receiver's clock, or NaN if it is lost.
#[unsafe(no_mangle)]
pub extern "C" fn add_report(handle: usize, number: f64, arrival_ms: f64) {
    with(handle, (), |sender| sender.add_report(number, arrival_ms));
}

/// Passes the added packets to the controller.
#[unsafe(no_mangle)]
pub extern "C" fn handle_feedback(handle: usize, now_ms: f64) {
    with(handle, (), |sender| sender.handle_feedback(now_ms));
}

/// Handles a round-trip time.
#[unsafe(no_mangle)]
pub extern "C" fn handle_rtt(handle: usize, now_ms: f64, rtt_ms: f64) {
    with(handle, (), |sender| sender.handle_rtt(now_ms, rtt_ms));
}

/// Handles the fraction of packets that a receiver report gives as lost, 0 to 1.
#[unsafe(no_mangle)]
pub extern "C" fn handle_loss(handle: usize, now_ms: f64, fraction: f64) {
    with(handle, (), |sender| sender.handle_loss(now_ms, fraction));
}

/// Handles the passing of time.
#[unsafe(no_mangle)]
pub extern "C" fn handle_timeout(handle: usize, now_ms: f64) {
    with(handle, (), |sender| sender.handle_timeout(now_ms));
}

/// Returns when `handle_timeout` is due, ms; infinite for never.
#[unsafe(no_mangle)]
pub extern "C" fn poll_timeout(handle: usize) -> f64 {
    with(handle, f64::INFINITY, |sender| sender.poll_timeout())
}

/// Returns the target rate, bit/s.
#[unsafe(no_mangle)]
pub extern "C" fn target(handle: usize) -> f64 {
    with(handle, f64::NAN, |sender| sender.decision().target.as_bps_f64())
}

/// Returns the pacing rate, bit/s.
#[unsafe(no_mangle)]
pub extern "C" fn pacing(handle: usize) -> f64 {
    with(handle, f64::NAN, |sender| sender.decision().pacing.as_bps_f64())
}
