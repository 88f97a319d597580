//! Bytes that the operations of a class move.

use super::summary::ClassSummary;
use rigel_model::MIB;

impl ClassSummary {
    /// Bytes per second of its operations.
    pub fn bytes_per_s(&self) -> f64 {
        self.iops * self.operation_bytes()
    }

    /// Mean bytes of an operation, rounded: those of an I/O, or of all blocks that an operation of a
    /// database visits.
    pub fn operation_bytes(&self) -> f64 {
        if self.mib_per_s > 0.0 && self.iops > 0.0 {
            (self.mib_per_s * MIB as f64 / self.iops).round()
        } else {
            self.io_bytes.into()
        }
    }
}
