// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interface of the WebAssembly module: one buffer for the request and one for the answer. No address is dereferenced here;
//! the caller writes and reads the linear memory.
#![allow(unsafe_code, reason = "exported names must not be mangled")]

use std::sync::{Mutex, MutexGuard, PoisonError};

static REQUEST: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static ANSWER: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn lock(buffer: &Mutex<Vec<u8>>) -> MutexGuard<'_, Vec<u8>> {
    buffer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes room for a request of `length` bytes, and returns its address.
#[unsafe(no_mangle)]
pub extern "C" fn request(length: usize) -> *const u8 {
    let mut request = lock(&REQUEST);
    *request = vec![0; length];
    request.as_ptr()
}

/// Answers the request, and returns the address of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> *const u8 {
    // If the engine panics, the answer is the message of the panic.
    std::panic::set_hook(Box::new(|panic| *lock(&ANSWER) = panic.to_string().into_bytes()));
    let request = std::mem::take(&mut *lock(&REQUEST));
    let bytes = crate::playground::answer(&request);
    let mut answer = lock(&ANSWER);
    *answer = bytes;
    answer.as_ptr()
}

/// Returns the address of the last answer.
#[unsafe(no_mangle)]
pub extern "C" fn answer_address() -> *const u8 {
    lock(&ANSWER).as_ptr()
}

/// Returns the length of the last answer, bytes.
#[unsafe(no_mangle)]
pub extern "C" fn answer_length() -> usize {
    lock(&ANSWER).len()
}
