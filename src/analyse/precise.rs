//! placeholder
use crate::record::Window;
/// x
#[must_use]
pub fn is_precise(_windows: &[Window], _precision: f64) -> bool {
    false
}
