// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of functions of a shared library, behind safe methods.
//!
//! Loading a library runs its code in this process. It may do anything: the user permits it by name. What can be checked is
//! checked: version, size, null functions, texts, results.
#![allow(unsafe_code, reason = "calls the functions of a shared library")]
#![deny(unsafe_op_in_unsafe_fn)]

use crate::external::failure::Cause;
use crate::external::protocol::{FeedbackFormat, Hello, ParameterDeclaration, SignalDeclaration};
use libloading::Library;
use paceline_abi::*;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::NonNull;

/// The name of the exported function.
const SYMBOL: &str = "paceline_controller_v1";
/// The least size of a table: that with every function which a controller needs.
const LEAST: usize = std::mem::offset_of!(PacelineControllerV1, poll_probe);
/// The most parameters.
const PARAMETERS_MAX: usize = 256;
/// The most signals.
const SIGNALS_MAX: usize = 256;

fn broken(problem: impl std::fmt::Display) -> Cause {
    Cause::Library(format!("is not a controller: {problem}"))
}

/// Loads a library and returns its table. The library stays loaded until the process ends.
pub(super) fn load(path: &str) -> Result<&'static PacelineControllerV1, Cause> {
    // A path without a slash would be searched for in the folders of the system.
    let path = std::path::absolute(path).map_err(|error| broken(format!("`{path}`: {error}")))?;
    // SAFETY: runs the initialisers of the library, as the user asked for by its name.
    let library = unsafe { Library::new(&path) }.map_err(|error| {
        let reason = std::error::Error::source(&error).map_or_else(String::new, |source| format!(": {source}"));
        Cause::Library(format!("does not load: {error}{reason}"))
    })?;
    let library: &'static Library = Box::leak(Box::new(library));
    // SAFETY: the header declares the function with this type.
    let symbol = unsafe { library.get::<unsafe extern "C" fn() -> *const PacelineControllerV1>(SYMBOL) };
    let Ok(function) = symbol else {
        return Err(broken(format!("it has no function `{SYMBOL}`; paceline.h declares it")));
    };
    // SAFETY: as above.
    let table = unsafe { function() };
    if table.is_null() || !table.is_aligned() {
        return Err(broken(format!("`{SYMBOL}` returned an invalid address")));
    }
    // The version is read before the rest, whose extent depends on it.
    // SAFETY: the first two members exist in every version.
    let (version, size) = unsafe { ((*table).version, (*table).size) };
    let (size, own) = (size as usize, size_of::<PacelineControllerV1>());
    if version != PACELINE_CONTROLLER_VERSION || size < LEAST || size % align_of::<PacelineControllerV1>() != 0 {
        return Err(broken(format!(
            "its table has version {version} and {size} bytes; this program needs version {PACELINE_CONTROLLER_VERSION} and {LEAST} bytes \
             or more. Compile it with the paceline.h of this version"
        )));
    }
    // What an older table lacks is null, and what a newer one has besides is not called.
    let mut whole = PacelineControllerV1::EMPTY;
    // SAFETY: both have this size, which ends at a member.
    unsafe { table.cast::<u8>().copy_to_nonoverlapping((&raw mut whole).cast(), size.min(own)) };
    let table: &'static PacelineControllerV1 = Box::leak(Box::new(whole));
    for (name, is_missing) in
        [("create", table.create.is_none()), ("destroy", table.destroy.is_none()), ("decide", table.decide.is_none())]
    {
        if is_missing {
            return Err(broken(format!("the function `{name}` is null")));
        }
    }
    Ok(table)
}

fn text(pointer: *const c_char, what: &str) -> Result<Option<String>, Cause> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: a text of the table ends with a zero, by its contract.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map(|text| Some(text.to_owned())).map_err(|_| broken(format!("{what} is not UTF-8")))
}

/// Returns the elements of a list of the table.
fn list<T>(first: *const T, count: usize, max: usize, what: &str) -> Result<&'static [T], Cause> {
    match count {
        0 => Ok(&[]),
        _ if first.is_null() || !first.is_aligned() => Err(broken(format!("the address of its {what} is invalid"))),
        _ if count > max => Err(broken(format!("it has {count} {what}; at most {max}"))),
        // SAFETY: the table states the count, and its lists live as long as the process.
        _ => Ok(unsafe { std::slice::from_raw_parts(first, count) }),
    }
}

/// Returns the declarations of a table as a program would write them.
pub(super) fn hello(table: &PacelineControllerV1) -> Result<Hello, Cause> {
    let optional = |pointer, what: &str| Ok(text(pointer, what)?.unwrap_or_default());
    let named = |pointer, what: &str| {
        let name = text(pointer, what)?.filter(|name| !name.is_empty());
        name.ok_or_else(|| broken(format!("{what} has no name")))
    };
    let signals = list(table.signals, table.signal_count, SIGNALS_MAX, "signals")?;
    let parameters = list(table.parameters, table.parameter_count, PARAMETERS_MAX, "parameters")?;
    let signal = |s: &PacelineSignal| {
        let (name, unit) = (named(s.name, "a signal")?, optional(s.unit, "a unit")?);
        Ok(SignalDeclaration { name, unit, states: Vec::new() })
    };
    let parameter = |p: &PacelineParameter| {
        let (name, unit) = (named(p.name, "a parameter")?, optional(p.unit, "a unit")?);
        let (description, default) = (optional(p.description, "a description")?, p.default_value);
        Ok(ParameterDeclaration { name, default, min: p.min, max: p.max, unit, description })
    };
    // Its other members have defaults.
    let mut hello: Hello = serde_json::from_str(r#"{"protocol":1}"#).expect("a program may write this");
    hello.feedback = match table.feedback {
        PACELINE_FEEDBACK_TRANSPORT_WIDE => FeedbackFormat::TransportWide,
        PACELINE_FEEDBACK_RFC8888 => FeedbackFormat::Rfc8888,
        PACELINE_FEEDBACK_NONE => FeedbackFormat::None,
        other => return Err(Cause::Library(format!("is invalid: feedback must be 0, 1 or 2, not {other}"))),
    };
    let or = |ms, default| if ms == 0 { default } else { ms };
    hello.feedback_interval_ms = or(table.feedback_interval_ms, hello.feedback_interval_ms);
    hello.feedback_longest_ms = or(table.feedback_longest_ms, hello.feedback_longest_ms);
    hello.summary = optional(table.summary, "the summary")?;
    hello.source = optional(table.source, "the source")?;
    hello.receive_of = text(table.receive_of, "receive_of")?;
    hello.guard = table.unguarded == 0;
    hello.signals = signals.iter().map(signal).collect::<Result<_, Cause>>()?;
    hello.parameters = parameters.iter().map(parameter).collect::<Result<_, Cause>>()?;
    Ok(hello)
}

/// The state of one flow in a library.
#[derive(Debug)]
pub(super) struct Instance {
    table: &'static PacelineControllerV1,
    state: NonNull<c_void>,
}

// SAFETY: the contract of the table lets a state move between threads, one of which uses it at a time.
unsafe impl Send for Instance {}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Some(destroy) = self.table.destroy {
            // SAFETY: `create` or `copy` made the state, and nothing uses it afterwards.
            unsafe { destroy(self.state.as_ptr()) }
        }
    }
}

/// A struct that a library writes, with room for members of a newer header whose `size` the library did not compare.
#[repr(C)]
struct Roomy<T> {
    value: T,
    room: [u64; 32],
}

impl<T> Roomy<T> {
    fn new(value: T) -> Self {
        Self { value, room: [0; 32] }
    }
}

/// The result of a handler: it ran or is absent, or it failed.
pub(super) type Handled = Result<bool, String>;

/// Declares methods that call a function of the table, if it is there.
macro_rules! handlers {
    ($($name:ident($($argument:ident: $type:ty => $value:expr),*);)+) => { $(
        pub fn $name(&mut self, now_ns: i64 $(, $argument: $type)*) -> Handled {
            let Some(function) = self.table.$name else { return Ok(false) };
            // SAFETY: the state is valid, and each address that is passed is valid during the call.
            match unsafe { function(self.state.as_ptr(), now_ns $(, $value)*) } {
                0 => Ok(true),
                code => Err(format!(concat!("`", stringify!($name), "` returned {}, an error"), code)),
            }
        }
    )+ };
}

impl Instance {
    pub fn create(
        table: &'static PacelineControllerV1,
        limits: &PacelineLimits,
        values: &[f64],
    ) -> Result<Self, String> {
        let create = table.create.ok_or("`create` is null")?;
        // SAFETY: both addresses are valid during the call.
        let state = unsafe { create(limits, values.as_ptr(), values.len()) };
        let state = NonNull::new(state).ok_or("`create` returned null, an error")?;
        Ok(Self { table, state })
    }

    /// Copies the state; `None` if the library has no function for it.
    pub fn copy(&self) -> Option<Result<Self, String>> {
        // SAFETY: the state is valid.
        let state = unsafe { (self.table.copy?)(self.state.as_ptr()) };
        let state = NonNull::new(state).ok_or_else(|| "`copy` returned null, an error".to_owned());
        Some(state.map(|state| Self { table: self.table, state }))
    }

    handlers! {
        on_packet_sent(packet: &PacelineSentPacket => packet);
        on_feedback(feedback: &PacelineFeedback => feedback);
        on_rtt(rtt: &PacelineRoundTrip => rtt);
        on_report(fraction_lost: f64 => fraction_lost);
        on_message(message: &PacelineMessage => message);
        on_liveness();
        on_stream(stream: &PacelineStream => stream);
        on_frame(frame: &PacelineFrame => frame);
        on_application_limit(limited: bool => limited.into());
        on_stream_removed(stream: u8 => stream);
        on_bounds(min_bps: u64 => min_bps, max_bps: u64 => max_bps);
        on_route(limits: &PacelineLimits => limits);
        on_availability(available: bool => available.into());
        on_timeout();
    }

    /// Overwrites the decision with that of the library.
    pub fn decide(&mut self, decision: PacelineDecision) -> Result<PacelineDecision, String> {
        let decide = self.table.decide.ok_or("`decide` is null")?;
        let mut place = Roomy::new(decision);
        // SAFETY: the state and the address are valid.
        match unsafe { decide(self.state.as_ptr(), (&raw mut place).cast()) } {
            0 => Ok(place.value),
            code => Err(format!("`decide` returned {code}, an error")),
        }
    }

    pub fn poll_probe(&mut self, now_ns: i64) -> Result<Option<PacelineProbe>, String> {
        let Some(poll) = self.table.poll_probe else { return Ok(None) };
        let mut place = Roomy::new(PacelineProbe::default());
        // SAFETY: the state and the address are valid.
        let code = unsafe { poll(self.state.as_ptr(), now_ns, (&raw mut place).cast()) };
        optional("poll_probe", code, place.value)
    }

    pub fn stream_rate(&mut self, stream: u8) -> Result<Option<u64>, String> {
        let Some(rate_of) = self.table.stream_rate else { return Ok(None) };
        let mut rate = 0;
        // SAFETY: the state and the address are valid.
        optional("stream_rate", unsafe { rate_of(self.state.as_ptr(), stream, &mut rate) }, rate)
    }

    pub fn read_signals(&mut self, values: &mut [f64]) -> Result<(), String> {
        let Some(read) = self.table.read_signals.filter(|_| !values.is_empty()) else { return Ok(()) };
        values.fill(f64::NAN);
        // SAFETY: the state and the address are valid, and the length is that of the values.
        match unsafe { read(self.state.as_ptr(), values.as_mut_ptr(), values.len()) } {
            0 => Ok(()),
            code => Err(format!("`read_signals` returned {code}, an error")),
        }
    }
}

fn optional<T>(name: &str, code: i32, value: T) -> Result<Option<T>, String> {
    match code {
        0 => Ok(None),
        1 => Ok(Some(value)),
        code => Err(format!("`{name}` returned {code}; it returns 0 or 1")),
    }
}
