//! Sagas: undo, in reverse order, what was done before something failed.

use crate::activity::Activity;
use crate::context::Context;
use crate::failure::Failure;
use crate::payload::{Encode, Payload};

/// A stack of compensations, each an activity that undoes one step.
///
/// Nothing happens by itself: a saga that is dropped compensates nothing. Register a compensation
/// before its step when the step may have worked though it reported a failure, and make it
/// harmless when there is nothing to undo.
#[derive(Debug)]
pub struct Saga {
    ctx: Context,
    compensations: Vec<Activity<Payload>>,
}

impl Saga {
    /// Returns a saga with nothing to undo.
    #[must_use]
    pub fn new(ctx: &Context) -> Self {
        Self {
            ctx: *ctx,
            compensations: Vec::new(),
        }
    }

    /// Registers an activity with the host's default options.
    pub fn compensate(&mut self, activity_type: &'static str, input: &(impl Encode + ?Sized)) {
        self.push(self.ctx.activity(activity_type, input));
    }

    /// Registers an activity with options of its own. What it returns is ignored.
    pub fn push(&mut self, compensation: Activity<Payload>) {
        self.compensations.push(compensation);
    }

    /// Returns the number of compensations registered and not yet run.
    #[must_use]
    pub fn len(&self) -> usize {
        self.compensations.len()
    }

    /// Returns true when there is nothing to undo.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.compensations.is_empty()
    }

    /// Runs the compensations, last registered first, one after the other, as ordinary recorded
    /// activities. A failing one does not stop the rest; their failures are returned in the order
    /// in which they happened, so an empty list means that all is undone.
    #[must_use = "the list tells which compensations failed"]
    pub async fn run_compensations(&mut self) -> Vec<Failure> {
        let mut failures = Vec::new();
        while let Some(compensation) = self.compensations.pop() {
            if let Err(failure) = compensation.await {
                failures.push(failure);
            }
        }
        failures
    }
}
