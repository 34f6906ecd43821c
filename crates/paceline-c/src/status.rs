// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results of functions, the text of the last error, and the border that no panic crosses.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of a function: `PACELINE_OK`, `PACELINE_NOTHING`, or an error, which is negative.
pub type PacelineStatus = i32;

/// Done.
pub const PACELINE_OK: PacelineStatus = 0;
/// There is nothing to do or to return now. Not an error.
pub const PACELINE_NOTHING: PacelineStatus = 1;
/// A pointer is null that must not be.
pub const PACELINE_ERROR_NULL: PacelineStatus = -1;
/// A value is out of range.
pub const PACELINE_ERROR_ARGUMENT: PacelineStatus = -2;
/// There is no controller of this name, or it has no such half.
pub const PACELINE_ERROR_CONTROLLER: PacelineStatus = -3;
/// The pacer takes no frame now, because its queue is full or there is no network: drop the frame.
pub const PACELINE_ERROR_FULL: PacelineStatus = -4;
/// The buffer is too small.
pub const PACELINE_ERROR_BUFFER: PacelineStatus = -5;
/// The bytes are not valid RTCP.
pub const PACELINE_ERROR_RTCP: PacelineStatus = -6;
/// A defect of the library. The object answers every later call with this status; destroy it.
pub const PACELINE_ERROR_DEFECT: PacelineStatus = -7;
/// The controller has no parameter of this name.
pub const PACELINE_ERROR_PARAMETER: PacelineStatus = -8;

/// An error: its status and a text.
pub(crate) type Failure = (PacelineStatus, String);

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// Stores the text of an error, and returns its status.
pub(crate) fn fail((status, text): Failure) -> PacelineStatus {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    // During the destruction of a thread there is no text any more.
    let _ = LAST.try_with(|last| last.replace(text));
    status
}

/// Returns the address of the text of the last error on this thread.
pub(crate) fn last() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

pub(crate) fn argument(text: impl Into<String>) -> Failure {
    (PACELINE_ERROR_ARGUMENT, text.into())
}

pub(crate) fn null(name: &str) -> Failure {
    (PACELINE_ERROR_NULL, format!("`{name}` must not be null"))
}

/// The status of a function that succeeded.
pub(crate) struct Status(PacelineStatus);

impl From<()> for Status {
    fn from((): ()) -> Self {
        Self(PACELINE_OK)
    }
}

/// `PACELINE_NOTHING` if there was nothing to return.
impl From<Option<()>> for Status {
    fn from(found: Option<()>) -> Self {
        Self(if found.is_some() { PACELINE_OK } else { PACELINE_NOTHING })
    }
}

/// Calls `work`, and turns a panic into an error.
pub(crate) fn catch<R: Into<Status>>(work: impl FnOnce() -> Result<R, Failure>) -> PacelineStatus {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(status)) => status.into().0,
        Ok(Err(failure)) => fail(failure),
        Err(_) => fail(defect()),
    }
}

pub(crate) fn defect() -> Failure {
    (PACELINE_ERROR_DEFECT, "the library has a defect; destroy this object".to_owned())
}

/// An object behind a pointer of the caller. It stays unusable after a panic in one of its methods.
#[derive(Clone, Debug)]
pub(crate) struct Object<T> {
    inner: T,
    busy: bool,
}

impl<T> Object<T> {
    pub fn new(inner: T) -> Box<Self> {
        Box::new(Self { inner, busy: false })
    }

    /// Calls `work`. A panic leaves `busy` set.
    pub fn with<R: Into<Status>>(&mut self, work: impl FnOnce(&mut T) -> Result<R, Failure>) -> PacelineStatus {
        if self.busy {
            return fail(defect());
        }
        self.busy = true;
        let status = catch(|| work(&mut self.inner));
        self.busy = status == PACELINE_ERROR_DEFECT;
        status
    }

    /// Calls `work`, which changes nothing.
    pub fn with_const<R: Into<Status>>(&self, work: impl FnOnce(&T) -> Result<R, Failure>) -> PacelineStatus {
        if self.busy { fail(defect()) } else { catch(|| work(&self.inner)) }
    }

    /// Reads a value; `None` after a panic, which may have left the object half changed, and if reading it panics.
    pub fn read<V>(&self, value: impl FnOnce(&T) -> V) -> Option<V> {
        let mut result = None;
        if !self.busy {
            catch(|| {
                result = Some(value(&self.inner));
                Ok(())
            });
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_is_unusable_after_a_panic() {
        let mut object = Object::new((1, 1));
        let add = |pair: &mut (i32, i32)| {
            pair.0 += 1;
            pair.1 += 1;
            Ok(())
        };
        assert_eq!((object.with(add), object.read(|pair| *pair)), (PACELINE_OK, Some((2, 2))));
        let panics = |pair: &mut (i32, i32)| -> Result<(), Failure> {
            pair.0 += 1;
            panic!("in the middle of a change")
        };
        assert_eq!(object.with(panics), PACELINE_ERROR_DEFECT);
        assert_eq!(object.read(|pair| *pair), None);
        assert_eq!(object.with(add), PACELINE_ERROR_DEFECT);
        assert_eq!(object.clone().read(|pair| *pair), None, "a copy");
    }

    #[test]
    fn errors_leave_an_object_usable() {
        let mut object = Object::new(1);
        assert_eq!(object.with(|_| Err::<(), _>(argument("invalid"))), PACELINE_ERROR_ARGUMENT);
        assert_eq!(object.read(|value| *value), Some(1));
        assert_eq!(object.read(|_| -> i32 { panic!("while reading") }), None);
    }
}
