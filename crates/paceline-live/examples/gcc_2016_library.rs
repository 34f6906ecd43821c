// SPDX-License-Identifier: MIT OR Apache-2.0
//! The send half of `gcc-2016` as a shared library: the half of the library of controllers, behind the table of functions. Its
//! runs have the trace hashes of `gcc-2016` itself.
#![allow(unsafe_code, reason = "the table is an interface of C")]
#![allow(clippy::missing_safety_doc, reason = "paceline.h has the contract")]

use paceline::Gcc2016Config;
use paceline::{Bounds, Config, Event, Guard, Message, ReceiverReport, RoundTrip, SendHalf, Setup, Signals};
use paceline_abi::*;
use paceline_units::{DataSize, Fraction, Rate, Time, TimeDelta};
use std::ffi::c_void;

type Half = Guard;

const TABLE: PacelineControllerV1 = PacelineControllerV1 {
    summary: c"gcc-2016 in a library".as_ptr(),
    receive_of: c"gcc-2016".as_ptr(),
    create: Some(create),
    destroy: Some(destroy),
    copy: Some(copy),
    on_rtt: Some(on_rtt),
    on_report: Some(on_report),
    on_message: Some(on_message),
    on_bounds: Some(on_bounds),
    on_route: Some(on_route),
    decide: Some(decide),
    ..PacelineControllerV1::EMPTY
};

/// Returns the table.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_controller_v1() -> *const PacelineControllerV1 {
    static STORED: PacelineControllerV1 = TABLE;
    &STORED
}

fn setup(limits: &PacelineLimits) -> Setup {
    let [start, min, max] = [limits.start_bps, limits.min_bps, limits.max_bps].map(Rate::from_bps);
    Setup::new(start, min, max).with_packet_size(DataSize::from_bytes(limits.packet_size_bytes))
}

/// # Safety
/// The state is one of `create`.
unsafe fn half<'a>(state: *mut c_void) -> &'a mut Half {
    // SAFETY: `create` made it, and one thread at a time uses it.
    unsafe { &mut *state.cast::<Half>() }
}

/// # Safety
/// The state is one of `create`.
unsafe fn handle(state: *mut c_void, now_ns: i64, event: &Event<'_>) -> i32 {
    // SAFETY: `create` made it.
    unsafe { half(state) }.handle_event(Time::from_nanos(now_ns), event, &mut Signals::disabled());
    0
}

unsafe extern "C" fn create(limits: *const PacelineLimits, _: *const f64, _: usize) -> *mut c_void {
    // SAFETY: the laboratory passes a valid address.
    let setup = setup(unsafe { &*limits });
    // The laboratory has the guard around it, so the half has none of its own.
    Gcc2016Config::default()
        .halves(&setup)
        .send
        .map_or(std::ptr::null_mut(), |half| Box::into_raw(Box::new(half)).cast())
}

unsafe extern "C" fn destroy(state: *mut c_void) {
    // SAFETY: `create` or `copy` made it from a box.
    drop(unsafe { Box::from_raw(state.cast::<Half>()) });
}

unsafe extern "C" fn copy(state: *const c_void) -> *mut c_void {
    // SAFETY: `create` made it.
    Box::into_raw(Box::new(unsafe { half(state.cast_mut()) }.clone())).cast()
}

unsafe extern "C" fn on_rtt(state: *mut c_void, now_ns: i64, rtt: *const PacelineRoundTrip) -> i32 {
    // SAFETY: the laboratory passes valid addresses.
    let rtt = unsafe { &*rtt };
    let [last, smoothed] = [rtt.last_ns, rtt.smoothed_ns].map(TimeDelta::from_nanos);
    // SAFETY: `create` made the state, also below.
    unsafe { handle(state, now_ns, &Event::RoundTrip(&RoundTrip::new(last, smoothed))) }
}

unsafe extern "C" fn on_report(state: *mut c_void, now_ns: i64, fraction_lost: f64) -> i32 {
    let Some(fraction_lost) = Fraction::new(fraction_lost) else { return 1 };
    // SAFETY: as above.
    unsafe { handle(state, now_ns, &Event::Report(&ReceiverReport::new(fraction_lost))) }
}

unsafe extern "C" fn on_message(state: *mut c_void, now_ns: i64, message: *const PacelineMessage) -> i32 {
    // SAFETY: the laboratory passes valid addresses.
    let message = unsafe { &*message };
    if message.kind != PACELINE_MESSAGE_REMB {
        return 0;
    }
    let remb = Message::Remb(Rate::from_bps(message.rate_bps));
    // SAFETY: as above.
    unsafe { handle(state, now_ns, &Event::Message(&remb)) }
}

unsafe extern "C" fn on_bounds(state: *mut c_void, now_ns: i64, min_bps: u64, max_bps: u64) -> i32 {
    let [min, max] = [min_bps, max_bps].map(Rate::from_bps);
    // SAFETY: as above.
    unsafe { handle(state, now_ns, &Event::Bounds(&Bounds::new(min, max))) }
}

unsafe extern "C" fn on_route(state: *mut c_void, now_ns: i64, limits: *const PacelineLimits) -> i32 {
    // SAFETY: the laboratory passes valid addresses, and `create` made the state.
    unsafe { handle(state, now_ns, &Event::RouteChange(&setup(&*limits))) }
}

unsafe extern "C" fn decide(state: *mut c_void, decision: *mut PacelineDecision) -> i32 {
    // SAFETY: the laboratory passes valid addresses.
    let (half, out) = unsafe { (half(state), &mut *decision) };
    let decision = half.decision();
    out.target_bps = decision.target.as_bps();
    out.stable_target_bps = decision.stable_target.as_bps();
    out.pacing_bps = decision.pacing.as_bps();
    out.padding_bps = decision.padding.as_bps();
    0
}
