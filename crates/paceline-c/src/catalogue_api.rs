//! The functions that list controllers, their parameters and their signals.

use crate::catalogue::{address, declared};
use crate::status::{self, Failure, PACELINE_NOTHING, PACELINE_OK, PacelineStatus, argument};
use crate::{copy_out, text, write};
use paceline_abi::{PacelineParameter, PacelineSignal};
use std::ffi::c_char;

/// The half at the sender, in `half`.
pub const PACELINE_HALF_SEND: u8 = 0;
/// The half at the receiver.
pub const PACELINE_HALF_RECEIVE: u8 = 1;

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
        let Some(entry) = registry.iter().nth(index) else { return Ok(PACELINE_NOTHING) };
        let name = [entry.name().as_bytes(), &[0]].concat();
        // SAFETY: the caller's promise is that of this function.
        unsafe { copy_out(&name, buffer.cast(), capacity, "buffer") }?;
        Ok(PACELINE_OK)
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
        // SAFETY: the caller's promise is that of this function.
        let controller = declared(unsafe { text(controller, "controller") }?)?;
        let Some(found) = controller.parameters.get(index) else { return Ok(PACELINE_NOTHING) };
        let value = PacelineParameter {
            name: found.name.as_ptr(),
            unit: address(found.unit.as_ref()),
            description: found.description.as_ptr(),
            default_value: found.default,
            min: found.range.0,
            max: found.range.1,
        };
        // SAFETY: as above.
        unsafe { write(parameter, "parameter", value) }?;
        Ok(PACELINE_OK)
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
        // SAFETY: the caller's promise is that of this function.
        let signals = signals(unsafe { text(controller, "controller") }?, half)?;
        let Some(found) = signals.get(index) else { return Ok(PACELINE_NOTHING) };
        let value = PacelineSignal { name: found.name.as_ptr(), unit: address(found.unit.as_ref()) };
        // SAFETY: as above.
        unsafe { write(signal, "signal", value) }?;
        Ok(PACELINE_OK)
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
        // SAFETY: the caller's promise is that of this function.
        let signals = signals(unsafe { text(controller, "controller") }?, half)?;
        let Some(found) = signals.get(index).and_then(|signal| signal.states.get(state)) else {
            return Ok(PACELINE_NOTHING);
        };
        // SAFETY: as above.
        unsafe { write(name, "name", found.as_ptr()) }?;
        Ok(PACELINE_OK)
    })
}

/// Returns the signals of a half.
fn signals(controller: &str, half: u8) -> Result<&'static [crate::catalogue::Signal], Failure> {
    let signals = declared(controller)?.signals.get(usize::from(half));
    signals.map(Vec::as_slice).ok_or_else(|| argument(format!("`half` must be 0 or 1, not {half}")))
}
