//! One file a verb: flags become values, help is here, and only this room prints. It measures nothing.

pub mod check;
