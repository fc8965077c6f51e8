//! Any bytes, given to every decoder of stored values.
#![no_main]

#[path = "../checks/decoders.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| decoders::decode_everything(bytes));
