//! Tests of the fakes themselves.

mod guests;
mod store;
