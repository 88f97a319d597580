//! How results look: text for people, data for programs, Orion's own files, fio's job files.
//!
//! Goes in: a journal that was read. Comes out: text. Pure: it opens nothing, and asks no clock what time it is.

pub mod advice;
pub mod calibration;
mod chart;
pub mod classic;
pub mod comparison;
mod csv;
pub mod curve;
pub mod data;
pub mod fio;
#[cfg(test)]
pub(crate) mod golden;
pub mod html;
pub mod imported;
pub mod layers;
pub mod openmetrics;
pub mod soak;
pub mod sql;
pub mod table;
