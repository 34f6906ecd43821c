// SPDX-License-Identifier: MIT OR Apache-2.0
//! Controllers for C and C++. `include/paceline.h` declares this interface; `cargo xtask c` writes it.
//!
//! A sender is a send half with its packet history, pacer and probes; a receiver is a receive half with the feedback that the
//! sender needs. Neither does I/O or reads a clock: every time is an argument. A function checks its pointers, lengths and
//! ranges, returns a status, and never unwinds into the caller. One thread at a time may use an object; different
//! objects are independent.
#![allow(unsafe_code, reason = "pointers of the caller are read")]
#![deny(unsafe_op_in_unsafe_fn)]

mod catalogue;
mod catalogue_api;
mod receiver;
mod receiver_api;
mod sender;
mod sender_api;
mod signals;
mod signals_api;
mod status;
mod values;

pub use catalogue_api::*;
pub use receiver_api::*;
pub use sender::*;
pub use sender_api::*;
pub use signals_api::*;
pub use status::{
    PACELINE_ERROR_ARGUMENT, PACELINE_ERROR_BUFFER, PACELINE_ERROR_CONTROLLER, PACELINE_ERROR_DEFECT,
    PACELINE_ERROR_FULL, PACELINE_ERROR_NULL, PACELINE_ERROR_PARAMETER, PACELINE_ERROR_RTCP, PACELINE_NOTHING,
    PACELINE_OK, PacelineStatus,
};

use paceline_abi::SizedStruct;
use status::{Failure, Object, Status, argument, catch, fail, null};
use std::ffi::{CStr, c_char};

/// The version of this header. `paceline_version` returns that of the library.
pub const PACELINE_VERSION_MAJOR: u32 = 0;
/// The minor version. Before 1.0 another one may change the interface, so it is a part of the name of the shared library.
pub const PACELINE_VERSION_MINOR: u32 = 1;
/// The patch version.
pub const PACELINE_VERSION_PATCH: u32 = 0;

/// The most elements of an array in a call.
const COUNT_MAX: usize = 65_536;

/// Returns the text of the last error on this thread. It is valid until the next error on this thread.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_last_error() -> *const c_char {
    status::last()
}

/// Returns the version of the library, as in `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_version() -> *const c_char {
    const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version has no zero"),
    };
    VERSION.as_ptr()
}

/// A type of which C sees the address alone: behind it is an [`Object`] that its `create` function made.
trait Opaque {
    type Inner;
    const NAME: &str;
}

/// Calls `work` with an object.
///
/// # Safety
/// `object` is null or an object that is in no other call.
unsafe fn with<O: Opaque, R: Into<Status>>(
    object: *mut O,
    work: impl FnOnce(&mut O::Inner) -> Result<R, Failure>,
) -> PacelineStatus {
    // SAFETY: the contract of this function.
    match unsafe { object.cast::<Object<O::Inner>>().as_mut() } {
        Some(object) => object.with(work),
        None => fail(null(O::NAME)),
    }
}

/// Calls `work` with an object that it does not change.
///
/// # Safety
/// `object` is null or an object that is in no call that changes it.
unsafe fn with_const<O: Opaque, R: Into<Status>>(
    object: *const O,
    work: impl FnOnce(&O::Inner) -> Result<R, Failure>,
) -> PacelineStatus {
    // SAFETY: the contract of this function.
    match unsafe { object.cast::<Object<O::Inner>>().as_ref() } {
        Some(object) => object.with_const(work),
        None => fail(null(O::NAME)),
    }
}

/// Reads a value of an object, without the cost of an error; `absent` for null and after a defect.
///
/// # Safety
/// `object` is null or an object that is in no other call.
unsafe fn read<O: Opaque, T>(object: *const O, absent: T, value: impl FnOnce(&O::Inner) -> T) -> T {
    // SAFETY: the contract of this function.
    let object = unsafe { object.cast::<Object<O::Inner>>().as_ref() };
    object.and_then(|object| object.read(value)).unwrap_or(absent)
}

/// Frees an object.
///
/// # Safety
/// `object` is null or an object that is in no call. It must not be used afterwards.
unsafe fn destroy<O: Opaque>(object: *mut O) {
    catch(|| {
        if !object.is_null() {
            // SAFETY: its `create` function made it from a box.
            drop(unsafe { Box::from_raw(object.cast::<Object<O::Inner>>()) });
        }
        Ok(())
    });
}

/// Reads a text of the caller.
///
/// # Safety
/// `text` is null or ends with a zero.
unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(null(name));
    }
    // SAFETY: it is not null, and the caller promises the rest.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| argument(format!("`{name}` is not UTF-8")))
}

/// Reads parameters and their values.
///
/// # Safety
/// `settings` is null or points to `count` settings, of which each name is null or ends with a zero.
unsafe fn settings(settings: *const PacelineSetting, count: usize) -> Result<Vec<(String, f64)>, Failure> {
    // SAFETY: the contract of this function.
    let settings = unsafe { slice(settings, count, "settings") }?;
    // SAFETY: as above.
    settings.iter().map(|one| Ok((unsafe { text(one.name, "name") }?.to_owned(), one.value))).collect()
}

/// Returns the size of a struct that begins with it, as its caller knows it, and checks its place before the call has an effect.
///
/// # Safety
/// `pointer` is null or points to a size.
unsafe fn sized<T: SizedStruct>(pointer: *const T, name: &str) -> Result<usize, Failure> {
    writable(pointer, name)?;
    // SAFETY: it is aligned and not null, and the caller promises the rest.
    match unsafe { pointer.cast::<usize>().read() } {
        size if size < size_of::<usize>() => Err(argument(format!("set `size` of `{name}` to its sizeof, not {size}"))),
        size => Ok(size),
    }
}

/// Reads a struct that begins with its size. Members behind it have their defaults, and what is behind the own struct is ignored.
///
/// # Safety
/// `pointer` is null or points to a struct of this size that nothing else writes during the call.
unsafe fn read_sized<T: SizedStruct>(pointer: *const T, name: &str) -> Result<T, Failure> {
    // SAFETY: the contract of this function.
    let size = unsafe { sized(pointer, name) }?.min(size_of::<T>());
    let mut value = T::default();
    // SAFETY: neither is longer than `size`, and any bytes are a value.
    unsafe { pointer.cast::<u8>().copy_to_nonoverlapping((&raw mut value).cast(), size) };
    Ok(value)
}

/// Writes a struct that begins with its size, which stays, as far as that reaches.
///
/// # Safety
/// `pointer` is null or points to a size and has room for it.
unsafe fn write_sized<T: SizedStruct>(pointer: *mut T, name: &str, value: T) -> Result<(), Failure> {
    // SAFETY: the contract of this function.
    let size = unsafe { sized(pointer, name) }?.min(size_of::<T>());
    let members = size_of::<usize>()..size;
    let (from, to) = ((&raw const value).cast::<u8>(), pointer.cast::<u8>());
    // SAFETY: neither is shorter than `size`.
    unsafe { from.add(members.start).copy_to_nonoverlapping(to.add(members.start), members.len()) };
    Ok(())
}

/// Writes a result, once the call succeeded.
///
/// # Safety
/// `pointer` is null or has room for a value.
unsafe fn write<T>(pointer: *mut T, name: &str, value: T) -> Result<(), Failure> {
    writable(pointer, name)?;
    // SAFETY: it is aligned and not null, and the caller promises the rest.
    unsafe { pointer.write(value) };
    Ok(())
}

/// Checks a place for a result before the call has an effect.
fn writable<T>(pointer: *const T, name: &str) -> Result<(), Failure> {
    match (pointer.is_null(), pointer.is_aligned()) {
        (true, _) => Err(null(name)),
        (_, false) => Err(argument(format!("`{name}` is not aligned"))),
        _ => Ok(()),
    }
}

/// # Safety
/// `pointer` is null or points to `count` values that nothing else writes during the call.
unsafe fn slice<'a, T>(pointer: *const T, count: usize, name: &str) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if count > COUNT_MAX {
        return Err(argument(format!("`{name}` has at most {COUNT_MAX} elements, not {count}")));
    }
    writable(pointer, name)?;
    // SAFETY: it is aligned, not null and not too long, and the caller promises the rest.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Copies bytes to the caller.
///
/// # Safety
/// `buffer` is null or has room for `capacity` bytes, initialised or not.
unsafe fn copy_out(bytes: &[u8], buffer: *mut u8, capacity: usize, name: &str) -> Result<(), Failure> {
    writable(buffer, name)?;
    if capacity < bytes.len() {
        return Err((PACELINE_ERROR_BUFFER, format!("`{name}` needs {} bytes, not {capacity}", bytes.len())));
    }
    // SAFETY: it is not null and has room, and the caller promises the rest.
    unsafe { buffer.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    Ok(())
}
