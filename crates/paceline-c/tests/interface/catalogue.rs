// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parameters of controllers, and the lists of them and of signals.

use crate::harness::*;
use paceline::{Registry, SignalShape};
use paceline_abi::{PacelineParameter, PacelineSignal};
use paceline_c::*;
use std::ffi::{CStr, CString, c_char};
use std::ptr::{null, null_mut};

/// Returns a text of the interface.
fn text(text: *const c_char) -> &'static str {
    if text.is_null() { "" } else { unsafe { CStr::from_ptr(text) }.to_str().unwrap() }
}

/// Returns the parameter with this index, unless there is none.
fn parameter(controller: &CStr, index: usize) -> Option<PacelineParameter> {
    let mut found =
        PacelineParameter { name: null(), unit: null(), description: null(), default_value: 0.0, min: 0.0, max: 0.0 };
    let status = unsafe { paceline_controller_parameter(controller.as_ptr(), index, &mut found) };
    assert!([PACELINE_OK, PACELINE_NOTHING].contains(&status), "{}", last_error());
    (status == PACELINE_OK).then_some(found)
}

fn signal(controller: &CStr, half: u8, index: usize) -> Option<PacelineSignal> {
    let mut found = PacelineSignal { name: null(), unit: null() };
    let status = unsafe { paceline_controller_signal(controller.as_ptr(), half, index, &mut found) };
    assert!([PACELINE_OK, PACELINE_NOTHING].contains(&status), "{}", last_error());
    (status == PACELINE_OK).then_some(found)
}

fn states(controller: &CStr, half: u8, index: usize) -> Vec<&'static str> {
    let mut name = null();
    let mut state = |state| {
        unsafe { paceline_controller_signal_state(controller.as_ptr(), half, index, state, &mut name) == PACELINE_OK }
            .then(|| text(name))
    };
    (0..).map_while(&mut state).collect()
}

#[test]
fn lists_are_those_of_the_registry() {
    let (mut parameters, mut signals) = (0, 0);
    for entry in Registry::standard().iter() {
        let name = CString::new(entry.name()).unwrap();
        let fields = entry.fields();
        for (index, field) in fields.iter().enumerate() {
            let found = parameter(&name, index).expect("a parameter");
            assert_eq!((text(found.name), text(found.unit)), (field.name, field.unit));
            assert_eq!(text(found.description), field.source);
            assert_eq!((found.default_value, (found.min, found.max)), (field.default, field.range));
        }
        assert!(parameter(&name, fields.len()).is_none());
        let tables = entry.signals();
        for (half, table) in [(PACELINE_HALF_SEND, tables.0), (PACELINE_HALF_RECEIVE, tables.1)] {
            for (index, spec) in table.iter().enumerate() {
                let found = signal(&name, half, index).expect("a signal");
                assert_eq!((text(found.name), text(found.unit)), (spec.name, spec.unit));
                let expected = if let SignalShape::State(states) = spec.shape { states } else { &[] };
                assert_eq!(states(&name, half, index), expected);
            }
            assert!(signal(&name, half, table.len()).is_none());
            signals += table.len();
        }
        parameters += fields.len();
    }
    assert!(parameters > 100 && signals > 50, "{parameters} parameters, {signals} signals");
}

#[test]
fn lists_reject_unknown_controllers_halves_and_null() {
    let mut found = PacelineSignal { name: null(), unit: null() };
    let mut list = |name: *const c_char, half, out: bool| {
        let out = if out { &raw mut found } else { null_mut() };
        unsafe { paceline_controller_signal(name, half, 0, out) }
    };
    let googcc = c"googcc".as_ptr();
    assert_eq!(list(googcc, PACELINE_HALF_SEND, true), PACELINE_OK);
    assert_eq!(list(googcc, 2, true), PACELINE_ERROR_ARGUMENT);
    assert!(last_error().contains("`half` must be 0 or 1, not 2"), "{}", last_error());
    assert_eq!(list(googcc, PACELINE_HALF_SEND, false), PACELINE_ERROR_NULL);
    assert_eq!(list(null(), PACELINE_HALF_SEND, true), PACELINE_ERROR_NULL);
    assert_eq!(list(c"google".as_ptr(), PACELINE_HALF_SEND, true), PACELINE_ERROR_CONTROLLER);
    assert!(last_error().contains("no controller `google`; known: gcc-2016"), "{}", last_error());
}

#[test]
fn settings_change_the_controller() {
    let target = |settings: &[(&str, f64)]| {
        let mut sender = Sender::configured("fixed", settings).expect("a sender");
        sender.decision().target_bps
    };
    let name = text(parameter(c"fixed", 0).unwrap().name);
    assert_eq!((name, target(&[])), ("rate_bps", LIMITS.max_bps), "0 stands for the maximum");
    assert_eq!(target(&[(name, 700_000.0)]), 700_000);
    assert_eq!(target(&[(name, 700_000.0), (name, 800_000.0)]), 800_000, "the later one counts");
}

#[test]
fn settings_with_unknown_names_and_values_out_of_range_are_rejected() {
    let error = |settings: &[(&str, f64)]| Sender::configured("gcc-2016", settings).err();
    assert_eq!(error(&[("k_u", 0.01)]), None);
    assert_eq!(error(&[("k_u", 0.01), ("k_x", 1.0)]), Some(PACELINE_ERROR_PARAMETER));
    let message = last_error();
    assert!(message.contains("gcc-2016 has no parameter `k_x`; known: ") && message.contains("k_u"), "{message}");
    for value in [-1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(error(&[("k_u", value)]), Some(PACELINE_ERROR_ARGUMENT), "{value}");
        assert!(last_error().contains("k_u = ") && last_error().contains("is outside 0 to"), "{}", last_error());
    }
    assert_eq!(Receiver::configured("gcc-2016", &[("k_x", 1.0)]).err(), Some(PACELINE_ERROR_PARAMETER));
}
