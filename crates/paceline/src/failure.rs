//! The failure of a half.

use alloc::string::String;
use alloc::sync::Arc;
use core::error::Error;
use core::fmt::{self, Display, Formatter};

/// The failure of a half whose decisions other code makes, such as another process. It ends the run.
#[derive(Clone, Debug)]
pub struct Failure {
    message: String,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl Failure {
    /// Creates a failure from a predicate of the controller, such as "gave no answer within 2 s".
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), source: None }
    }

    /// Adds what the other code says about the failure. [`source`](Error::source) returns it, so that callers can downcast it.
    #[must_use]
    pub fn with_source(self, source: impl Error + Send + Sync + 'static) -> Self {
        Self { source: Some(Arc::new(source)), ..self }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
