// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions that list controllers, their parameters and their signals.
#![allow(unsafe_op_in_unsafe_fn, reason = "the contract of each function covers its whole body")]

use crate::catalogue::{address, declared};
use crate::status::{self, Failure, PacelineStatus, argument};
use crate::{copy_out, text, write};
use paceline::{MessageKind, Setup};
use paceline_abi::{PacelineParameter, PacelineSignal};
use paceline_units::Rate;
use std::ffi::c_char;

/// The half at the sender, in `half`.
pub const PACELINE_HALF_SEND: u8 = 0;
/// The half at the receiver.
pub const PACELINE_HALF_RECEIVE: u8 = 1;

/// Reports on each packet: `paceline_sender_feedback`, or transport-wide or RFC 8888 feedback in `paceline_sender_rtcp`.
pub const PACELINE_NEEDS_FEEDBACK: u32 = 1;
/// The ECN field of each packet in these reports.
pub const PACELINE_NEEDS_ECN: u32 = 2;
/// REMB, of a receiver of Paceline or of another stack.
pub const PACELINE_NEEDS_REMB: u32 = 4;
/// Messages that only a receiver of Paceline sends (`paceline_receiver_create`), in `paceline_sender_rtcp`.
pub const PACELINE_NEEDS_RECEIVER: u32 = 8;

/// A parameter of a controller and the value that it gets.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PacelineSetting {
    /// The name; `paceline_controller_parameter` lists the names. It ends with a zero.
    pub name: *const c_char,
    /// The value, in the unit and the range of the parameter.
    pub value: f64,
}

/// Copies the name of the controller with this index into `buffer`, with a zero at the end. Returns `PACELINE_NOTHING` after
/// the last one, and `PACELINE_ERROR_BUFFER` if the name does not fit; 64 bytes are enough for every name.
///
/// # Safety
/// `buffer` is null or has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_controller_name(
    index: usize,
    buffer: *mut c_char,
    capacity: usize,
) -> PacelineStatus {
    status::catch(|| {
        let registry = paceline::Registry::standard();
        let Some(entry) = registry.iter().nth(index) else { return Ok(None) };
        let name = [entry.name().as_bytes(), &[0]].concat();
        copy_out(&name, buffer.cast(), capacity, "buffer").map(Some)
    })
}

/// Writes what the controller `controller` needs: the sum of `PACELINE_NEEDS_…`. A controller that does not get it stays at its start
/// rate. Receiver reports (`paceline_sender_loss`, `paceline_sender_rtt`) and `paceline_sender_on_timeout` are useful for all.
///
/// # Safety
/// Each pointer is null or valid; `controller` ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_controller_needs(controller: *const c_char, needs: *mut u32) -> PacelineStatus {
    status::catch(|| {
        let name = text(controller, "controller")?;
        let setup = Setup::new(Rate::from_kbps(300), Rate::from_kbps(50), Rate::from_kbps(2000));
        let found = crate::sender::controller(name, &setup, &[])?.0.needs();
        let messages = match found.messages {
            None => 0,
            Some(MessageKind::Remb) => PACELINE_NEEDS_REMB,
            Some(_) => PACELINE_NEEDS_RECEIVER,
        };
        let feedback = if found.feedback { PACELINE_NEEDS_FEEDBACK } else { 0 };
        let ecn = if found.ecn { PACELINE_NEEDS_ECN } else { 0 };
        write(needs, "needs", feedback + ecn + messages)
    })
}

/// Writes the parameter with this index of the controller `controller`: its name, unit, range, default and description. Its texts
/// live as long as the process. Returns `PACELINE_NOTHING` after the last one. `paceline_sender_create_with` sets parameters.
///
/// # Safety
/// Each pointer is null or valid; `controller` ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_controller_parameter(
    controller: *const c_char,
    index: usize,
    parameter: *mut PacelineParameter,
) -> PacelineStatus {
    status::catch(|| {
        let controller = declared(text(controller, "controller")?)?;
        let Some(found) = controller.parameters.get(index) else { return Ok(None) };
        let value = PacelineParameter {
            name: found.name.as_ptr(),
            unit: address(found.unit.as_ref()),
            description: found.description.as_ptr(),
            default_value: found.default,
            min: found.range.0,
            max: found.range.1,
        };
        write(parameter, "parameter", value).map(Some)
    })
}

/// Writes the signal with this index of a half of the controller `controller`: `half` is `PACELINE_HALF_…`. Its texts live as long as
/// the process. Returns `PACELINE_NOTHING` after the last one. `paceline_sender_signals` and `paceline_receiver_signals` write the values
/// in the order of these indices.
///
/// # Safety
/// Each pointer is null or valid; `controller` ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_controller_signal(
    controller: *const c_char,
    half: u8,
    index: usize,
    signal: *mut PacelineSignal,
) -> PacelineStatus {
    status::catch(|| {
        let signals = signals(text(controller, "controller")?, half)?;
        let Some(found) = signals.get(index) else { return Ok(None) };
        let value = PacelineSignal { name: found.name.as_ptr(), unit: address(found.unit.as_ref()) };
        write(signal, "signal", value).map(Some)
    })
}

/// Writes the name of a state of a signal: the values of such a signal are indices of states, from 0. Returns
/// `PACELINE_NOTHING` after the last state, and for a signal that is a number.
///
/// # Safety
/// Each pointer is null or valid; `controller` ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_controller_signal_state(
    controller: *const c_char,
    half: u8,
    index: usize,
    state: usize,
    name: *mut *const c_char,
) -> PacelineStatus {
    status::catch(|| {
        let signals = signals(text(controller, "controller")?, half)?;
        let Some(found) = signals.get(index).and_then(|signal| signal.states.get(state)) else {
            return Ok(None);
        };
        write(name, "name", found.as_ptr()).map(Some)
    })
}

/// Returns the signals of a half.
fn signals(controller: &str, half: u8) -> Result<&'static [crate::catalogue::Signal], Failure> {
    let signals = declared(controller)?.signals.get(usize::from(half));
    signals.map(Vec::as_slice).ok_or_else(|| argument(format!("`half` must be 0 or 1, not {half}")))
}
