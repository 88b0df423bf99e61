//! What the fuzz targets share with `cargo test`, compiled for them.

#[path = "../../tests/support/mod.rs"]
pub mod support;
pub mod targets;
