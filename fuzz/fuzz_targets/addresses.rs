#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| swarmvia_locks_fuzz::targets::addresses(data));
