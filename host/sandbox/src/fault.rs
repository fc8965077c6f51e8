//! From wasmtime's errors to ours.

use std::fmt::Write;

use steadfast_ports::guest::{Error, Stop};
use wasmtime::{Trap, WasmBacktrace};

use crate::abi::exports::NotDelivered;
use crate::limit::TRANSFER_BYTES_MAX;
use crate::options::Options;
use crate::state::{State, Unanswerable};

/// Module name of the glue that `wit-component` adds; its frames say nothing to anybody.
const SHIM_MODULE: &str = "wit-component:shim";

/// How wasmtime's error about `Store::set_hostcall_fuel` begins; its type is private.
const TRANSFER_PREFIX: &str = "too much data";

/// Why a call of the guest failed. The order matters: what the host decided comes before what the
/// guest did about it, because a guest that was denied memory usually panics next.
pub(crate) fn classify(error: &wasmtime::Error, state: &mut State, options: &Options) -> Error {
    if let Some(stop) = error.downcast_ref::<Stop>() {
        return Error::Stopped(stop.clone());
    }
    if let Some(bug) = error.downcast_ref::<NotDelivered>() {
        return Error::Unavailable(bug.to_string());
    }
    if let Some(early) = error.downcast_ref::<Unanswerable>() {
        return Error::Unavailable(early.to_string());
    }
    let trap = error.downcast_ref::<Trap>();
    if trap == Some(&Trap::Interrupt) {
        return Error::Timeout {
            limit: options.activation_time_max,
        };
    }
    if let Some(denied) = state.limiter.take_denied() {
        return Error::LimitExceeded(denied);
    }
    if trap == Some(&Trap::StackOverflow) {
        let bytes = options.stack_bytes_max;
        return Error::LimitExceeded(format!(
            "the guest's call stack exceeds its limit of {bytes} bytes"
        ));
    }
    let text = text(error);
    if text.starts_with(TRANSFER_PREFIX) {
        let limit = TRANSFER_BYTES_MAX;
        return Error::LimitExceeded(format!(
            "one call moves too much data from the guest to the host; the limit is {limit} bytes"
        ));
    }
    let message = state.panic_line.take().unwrap_or(text);
    let backtrace = error
        .downcast_ref::<WasmBacktrace>()
        .map(backtrace)
        .unwrap_or_default();
    Error::Trap { message, backtrace }
}

/// What happened, without the backtrace that wasmtime wraps around it.
pub(crate) fn text(error: &wasmtime::Error) -> String {
    let text = error.root_cause().to_string();
    text.strip_prefix("wasm trap: ")
        .map(str::to_owned)
        .unwrap_or(text)
}

/// Every layer of an error, outermost first.
pub(crate) fn chain(error: &wasmtime::Error) -> String {
    let layers: Vec<String> = error.chain().map(ToString::to_string).collect();
    layers.join(": ")
}

fn backtrace(trace: &WasmBacktrace) -> String {
    let mut lines = String::new();
    for frame in trace.frames() {
        if frame.module().name() == Some(SHIM_MODULE) {
            continue;
        }
        if !lines.is_empty() {
            lines.push('\n');
        }
        // Writing into a string cannot fail.
        let _written = match frame.func_name() {
            // The alternate form leaves the hash out.
            Some(name) => write!(lines, "  at {:#}", rustc_demangle::demangle(name)),
            None => write!(lines, "  at function {}", frame.func_index()),
        };
    }
    lines
}
