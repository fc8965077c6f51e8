//! What one instance may hold, and the bounds of admission that no other crate needs.

use wasmtime::ResourceLimiter;

use crate::options::Options;

/// Bytes that one call may move from guest to host before it fails. Twice what fits into the
/// largest valid payload and failure together, so that those are refused by name elsewhere.
pub(crate) const TRANSFER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Most entries of an activity's `settings`.
pub(crate) const SETTINGS_MAX: usize = 256;

/// Most bytes of all names and values of an activity's `settings`.
pub(crate) const SETTINGS_BYTES_MAX: usize = 64 * 1024;

/// Most text in a component's description, in bytes.
pub(crate) const DESCRIPTION_BYTES_MAX: usize = 1024 * 1024;

/// Most core instances, memories and tables, each, of one component instance.
pub(crate) const PARTS_MAX: usize = 64;

/// Counts the memories and tables of one instance and refuses growth past the limits.
#[derive(Debug)]
pub(crate) struct Limiter {
    memory_bytes_max: usize,
    table_elements_max: usize,
    /// All linear memories, now.
    memory_bytes: usize,
    /// What they were made with.
    initial_bytes: usize,
    table_elements: usize,
    /// What was refused in this activation, for the message.
    denied: Option<String>,
}

impl Limiter {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            memory_bytes_max: options.memory_bytes_max,
            table_elements_max: options.table_elements_max,
            memory_bytes: 0,
            initial_bytes: 0,
            table_elements: 0,
            denied: None,
        }
    }

    /// Bytes of linear memory now.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Bytes of linear memory right after instantiation.
    pub(crate) fn initial_bytes(&self) -> usize {
        self.initial_bytes
    }

    /// Takes the last refusal, in words.
    pub(crate) fn take_denied(&mut self) -> Option<String> {
        self.denied.take()
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let total = self
            .memory_bytes
            .saturating_sub(current)
            .saturating_add(desired);
        if total > self.memory_bytes_max {
            let limit = self.memory_bytes_max;
            self.denied = Some(format!(
                "the guest asked for {total} bytes of memory; the limit is {limit}"
            ));
            return Ok(false);
        }
        if current == 0 {
            self.initial_bytes += desired;
        }
        self.memory_bytes = total;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        // Also called after a refusal above, whose words are better.
        if self.denied.is_none() {
            self.denied = Some(format!("the guest's memory could not grow: {error}"));
        }
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let total = self
            .table_elements
            .saturating_sub(current)
            .saturating_add(desired);
        if total > self.table_elements_max {
            let limit = self.table_elements_max;
            self.denied = Some(format!(
                "the guest asked for {total} table elements; the limit is {limit}"
            ));
            return Ok(false);
        }
        self.table_elements = total;
        Ok(true)
    }

    fn instances(&self) -> usize {
        PARTS_MAX
    }

    fn tables(&self) -> usize {
        PARTS_MAX
    }

    fn memories(&self) -> usize {
        PARTS_MAX
    }
}
