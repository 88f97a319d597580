//! The formulas, on figures whose answers are known.
