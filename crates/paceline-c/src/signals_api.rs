// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions that read the signals of senders and receivers.
#![allow(unsafe_op_in_unsafe_fn, reason = "the contract of each function covers its whole body")]

use crate::status::PacelineStatus;
use crate::{PacelineReceiver, PacelineSender, with};

/// Collects the signals of the send half from now on. Without this call they cost nothing.
///
/// # Safety
/// `sender` is null or a sender.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_enable_signals(sender: *mut PacelineSender) -> PacelineStatus {
    with(sender, |sender| {
        sender.core.enable_signals();
        Ok(())
    })
}

/// Writes the last value of each signal of the send half, in the order of `paceline_controller_signal`; NaN for a signal without a
/// value since `paceline_sender_enable_signals`. Further elements of `values` stay as they are. Returns `PACELINE_ERROR_BUFFER` if
/// `capacity` is below the number of signals; 256 are enough for every controller.
///
/// # Safety
/// `values` is null or has room for `capacity` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_sender_signals(
    sender: *mut PacelineSender,
    values: *mut f64,
    capacity: usize,
) -> PacelineStatus {
    with(sender, |sender| sender.signals.write(values, capacity))
}

/// Collects the signals of the receive half from now on. Without this call they cost nothing.
///
/// # Safety
/// `receiver` is null or a receiver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_receiver_enable_signals(receiver: *mut PacelineReceiver) -> PacelineStatus {
    with(receiver, |receiver| {
        receiver.core.enable_signals();
        Ok(())
    })
}

/// Writes the last value of each signal of the receive half, as `paceline_sender_signals` does for the send half.
///
/// # Safety
/// `values` is null or has room for `capacity` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn paceline_receiver_signals(
    receiver: *mut PacelineReceiver,
    values: *mut f64,
    capacity: usize,
) -> PacelineStatus {
    with(receiver, |receiver| receiver.signals.write(values, capacity))
}
