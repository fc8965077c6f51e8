//! What a panic leaves behind: a line of the run's log that begins with `panic: `.
//!
//! After it the instance traps. The host turns the trap into a failed activation, shows that line
//! beside it, and tries the activation again: a panic blocks a run, it never ends one.

/// Installs the hook that writes the line. Natively panics stay the test runner's business.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn install_hook() {}

/// Installs the hook that writes the line.
#[cfg(target_arch = "wasm32")]
pub(crate) fn install_hook() {
    std::panic::set_hook(Box::new(|panic| {
        let message = panic
            .payload_as_str()
            .unwrap_or("a panic without a message");
        let line = match panic.location() {
            // No backtrace here: this target has none, the host's trap has the wasm one.
            Some(location) => format!("panic: {message}, at {location}"),
            None => format!("panic: {message}"),
        };
        crate::host::write_log(crate::log::Level::Error, &line);
    }));
}
