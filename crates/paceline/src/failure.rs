// SPDX-License-Identifier: MIT OR Apache-2.0
//! The failure of a half.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::error::Error;
use core::fmt::{self, Display, Formatter};

/// The failure of a half whose decisions other code makes, such as another process. It ends the run.
#[derive(Clone, Debug)]
pub struct Failure(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl Failure {
    /// Creates a failure from a predicate of the controller, such as "gave no answer within 2 s".
    pub fn new(message: impl Into<String>) -> Self {
        Self(Arc::new(Inner { message: message.into(), source: None }))
    }

    /// Adds what the other code says about the failure. [`source`](Error::source) returns it, so that callers can downcast it.
    #[must_use]
    pub fn with_source(self, source: impl Error + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner { message: self.0.message.clone(), source: Some(Box::new(source)) }))
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn source_keeps_its_type() {
        let plain = Failure::new("gave no answer");
        assert!(plain.source().is_none());
        let failure = plain.with_source(fmt::Error).clone();
        assert_eq!(failure.to_string(), "gave no answer");
        let source = failure.source().unwrap();
        assert!(source.is::<fmt::Error>() && !source.is::<Failure>());
    }
}
