//! Every rule about tokens and key sets.

mod claims;
mod hostile;
mod key_sets;
mod signatures;
mod support;
