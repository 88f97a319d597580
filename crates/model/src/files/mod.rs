//! Files of users: results to write, and texts to read from any named path.
//!
//! Input: a path. Output: an open directory for creating files ([`Directory`]), or a text of
//! limited length ([`read_text`]). This module assumes that other users of the machine are hostile
//! and that Rigel may run as root. It knows nothing about the contents of files.

mod directory;
mod reading;

pub use directory::{
    Directory, append, existing, existing_to_append, is_mounted_alone, mount_of, refuse_unsafe,
    replace,
};
pub use reading::{HAND_WRITTEN_MAX, open, read, read_secret, read_text};
