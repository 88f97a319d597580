//! A run as one HTML file that needs nothing else: no network, no other file.
//!
//! Goes in: a journal that was read. Comes out: a page. What a page says is put together here in the words of
//! [`page`]; how it looks is the business of the renderer.

pub mod page;
mod render;

pub use render::render;
