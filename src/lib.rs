pub mod access;
#[cfg(target_arch = "wasm32")]
mod edge;
pub mod fields;
pub mod governor;
pub mod outcome;
pub mod protocol;
pub mod wire;
