//! What a caller must show: access keys, and what is known of their families.
//!
//! Pure: verifying takes the moment as an argument. No secret is ever part of
//! an error, a log line or a `Debug` text.

pub mod admin;
mod cloudflare;
pub mod families;
pub mod ip;
pub mod jwt;
pub mod keys;
pub mod names;
pub mod policy;
pub mod refresh;
pub mod refused;
pub mod trail;
