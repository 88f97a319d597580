//! Files of people: results that are written, and texts that are read from wherever somebody names them.
//!
//! Goes in: a path. Comes out: a directory held open in which files are made ([`Directory`]), or a text of bounded
//! length ([`read_text`]). This room assumes that other users of the machine are hostile and that Rigel may run as
//! root. It knows nothing of what is in the files.

mod directory;
mod reading;

pub use directory::{Directory, refuse_unsafe, replace};
pub use reading::{HAND_WRITTEN_MAX, open, read, read_secret, read_text};
