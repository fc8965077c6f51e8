//! What the host and a parked fiber share: whom the guest's calls reach, and its mailbox. The fiber
//! owns its wasmtime store for as long as it lives, so the host cannot reach in there.

use std::sync::{Mutex, MutexGuard, PoisonError};

use steadfast_ports::HostCalls;

use crate::mailbox::Mailbox;

/// The shared part of one blocking instance.
#[derive(Default)]
pub(crate) struct Desk {
    inner: Mutex<Inner>,
}

#[derive(Default)]
pub(crate) struct Inner {
    /// Lent for the length of an activation.
    pub(crate) calls: Option<Box<dyn HostCalls>>,
    pub(crate) mailbox: Mailbox,
    /// Linear memory of the guest, and what it began with, when it last began to wait.
    pub(crate) memory_bytes: usize,
    pub(crate) initial_bytes: usize,
    /// The tick at which the activation began.
    pub(crate) began: u64,
}

impl Desk {
    /// Everything, for a moment. Each use leaves it consistent, so a panic elsewhere is no reason
    /// to refuse.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
