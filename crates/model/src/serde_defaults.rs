//! Numbers that files leave out, as most have them: zero, or one.

/// The default of a number that counts what is usually alone.
pub(crate) const fn one() -> u32 {
    1
}

/// True for that default.
pub(crate) fn is_one<N: From<bool> + PartialEq>(number: &N) -> bool {
    *number == N::from(true)
}

/// True for a number that is not there.
pub(crate) fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}
