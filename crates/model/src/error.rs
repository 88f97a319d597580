//! Errors of a request, in words for the user.

use super::in_line;
use std::fmt;

/// A refusal or a failure, with a sentence that names the thing and its value, and a hint. Both stay
/// in one line, whatever names they quote.
///
/// Operations that fail while measuring are not errors: they are data, see
/// [`Outcome::Failed`](super::Outcome::Failed).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The request is invalid or not allowed; nothing was opened or written. Exit status 2.
    Usage {
        /// What is wrong: the thing and its value.
        what: String,
        /// What to do about it; empty when `what` says it all.
        hint: String,
    },
    /// The request is valid but could not be carried out. Exit status 1.
    Failed {
        /// What failed, and the system's message.
        what: String,
        /// What to do about it; empty if unknown.
        hint: String,
    },
}

impl Error {
    /// An invalid request.
    pub fn usage(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage {
            what: in_line(&what.into()).into_owned(),
            hint: in_line(&hint.into()).into_owned(),
        }
    }

    /// A request that could not be carried out.
    pub fn failed(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Failed {
            what: in_line(&what.into()).into_owned(),
            hint: in_line(&hint.into()).into_owned(),
        }
    }

    /// What is wrong, without the hint.
    pub fn what(&self) -> &str {
        match self {
            Self::Usage { what, .. } | Self::Failed { what, .. } => what,
        }
    }

    /// What to do about it; empty if that is unknown or said already.
    pub fn hint(&self) -> &str {
        match self {
            Self::Usage { hint, .. } | Self::Failed { hint, .. } => hint,
        }
    }

    /// The process's exit status for this error: 1 for a failure, 2 for wrong usage.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Usage { .. } => 2,
            Self::Failed { .. } => 1,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Usage { what, hint } | Self::Failed { what, hint }) = self;
        f.write_str(what)?;
        if !hint.is_empty() {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// An [`Error::usage`] from two texts, each with variables in braces as in `format!`; what is no
/// variable gets a name behind them:
/// `usage!("'{path}' is no directory", "give one of {names}", names = names.join(", "))`.
/// The hint may also be a value.
#[macro_export]
macro_rules! usage {
    ($($text:tt)*) => { $crate::error_of!(usage, $($text)*) };
}

/// An [`Error::failed`] from two texts, as in [`usage!`](crate::usage).
#[macro_export]
macro_rules! failed {
    ($($text:tt)*) => { $crate::error_of!(failed, $($text)*) };
}

/// An error of the named kind; called by [`usage!`](crate::usage) and [`failed!`](crate::failed).
#[doc(hidden)]
#[macro_export]
macro_rules! error_of {
    ($kind:ident, $what:literal, $hint:literal $(,)?) => {
        $crate::Error::$kind(::std::format!($what), ::std::format!($hint))
    };
    ($kind:ident, $what:literal, $hint:expr $(,)?) => {
        $crate::Error::$kind(::std::format!($what), $hint)
    };
    ($kind:ident, $what:literal, $hint:literal, $($name:ident = $value:expr),+ $(,)?) => {
        match ($(&$value,)+) {
            ($($name,)+) => $crate::Error::$kind(::std::format!($what), ::std::format!($hint)),
        }
    };
    ($kind:ident, $what:literal, $hint:expr, $($name:ident = $value:expr),+ $(,)?) => {
        match ($(&$value,)+) {
            ($($name,)+) => $crate::Error::$kind(::std::format!($what), $hint),
        }
    };
}
