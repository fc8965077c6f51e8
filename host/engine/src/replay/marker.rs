//! Markers at the command cursor: patches and side effects.
//!
//! A patch asks whether this run may take a new branch of its code. A run that has gone past the
//! place without the patch, which shows in a recorded command still to be made, stays on the old
//! branch; a run that has not takes the new one, and a marker says so from then on. A *no* is not
//! recorded: the command that caused it is, so every replay answers *no* at the same place.

use alloc::format;
use alloc::string::String;

use steadfast_model::command::Command;
use steadfast_model::{Event, EventKind, Marker, MarkerKind, MarkerName, Payload};

use super::{Mismatch, Replay};

/// The answer to a call that may record a marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marked<T> {
    /// What the guest is told.
    pub answer: T,
    /// The marker to record: add it with [`Replay::issue`].
    pub command: Option<Command>,
}

impl<T> Marked<T> {
    fn old(answer: T) -> Self {
        Self {
            answer,
            command: None,
        }
    }

    fn new(answer: T, kind: MarkerKind, name: &MarkerName, details: Option<Payload>) -> Self {
        let marker = Marker {
            kind,
            name: name.clone(),
            details,
        };
        Self {
            answer,
            command: Some(Command::RecordMarker { marker }),
        }
    }
}

/// The id of a deprecated patch: a marker that the code need not ask for.
fn optional(event: &Event) -> Option<&MarkerName> {
    if let EventKind::MarkerRecorded { marker } = &event.kind
        && marker.kind == MarkerKind::DeprecatedPatch
    {
        Some(&marker.name)
    } else {
        None
    }
}

impl Replay {
    /// `markers.patched`: true if the run takes the new branch. The first answer counts: every
    /// later call with the same id gets it too.
    pub fn patched(&mut self, id: &MarkerName) -> Marked<bool> {
        self.patch(id, MarkerKind::Patch)
    }

    /// `markers.deprecate-patch`: as [`Replay::patched`], for code that has only the new branch.
    /// Its marker may be missing from later code.
    pub fn deprecate_patch(&mut self, id: &MarkerName) -> Marked<()> {
        let Marked { answer: _, command } = self.patch(id, MarkerKind::DeprecatedPatch);
        Marked {
            answer: (),
            command,
        }
    }

    /// The answer that `markers.patched` has given for this id, if it was asked before.
    #[must_use]
    pub fn patch_answer(&self, id: &MarkerName) -> Option<bool> {
        self.patches.get(id).copied()
    }

    fn patch(&mut self, id: &MarkerName, kind: MarkerKind) -> Marked<bool> {
        if let Some(answer) = self.patches.get(id) {
            return Marked::old(*answer);
        }
        self.skip_optional();
        // A deprecated marker of this id was just skipped.
        if let Some(answer) = self.patches.get(id) {
            return Marked::old(*answer);
        }
        let Some(recorded) = self.commands.front() else {
            self.patches.insert(id.clone(), true);
            return Marked::new(true, kind, id, None);
        };
        let is_recorded = matches!(&recorded.kind, EventKind::MarkerRecorded { marker }
            if marker.kind == MarkerKind::Patch && marker.name == *id);
        if is_recorded {
            self.commands.pop_front();
        }
        self.patches.insert(id.clone(), is_recorded);
        Marked::old(is_recorded)
    }

    /// Matches `markers.side-effect`: the recorded value, or `value` when the call is new.
    ///
    /// # Errors
    /// [`Mismatch`] when the history records something else here.
    pub fn side_effect(
        &mut self,
        name: &MarkerName,
        value: Payload,
    ) -> Result<Marked<Payload>, Mismatch> {
        self.skip_optional();
        let Some(recorded) = self.commands.front() else {
            let details = Some(value.clone());
            return Ok(Marked::new(value, MarkerKind::SideEffect, name, details));
        };
        if let EventKind::MarkerRecorded { marker } = &recorded.kind
            && marker.kind == MarkerKind::SideEffect
            && marker.name == *name
        {
            let recorded = marker.details.clone().unwrap_or_default();
            self.commands.pop_front();
            return Ok(Marked::old(recorded));
        }
        let actual = format!("RecordMarker {} {name:?}", MarkerKind::SideEffect.name());
        Err(self.differs(recorded.number, &recorded.kind, &actual))
    }

    /// The next recorded command that the code must make.
    pub(super) fn peek(&self) -> Option<&Event> {
        self.commands.iter().find(|event| optional(event).is_none())
    }

    /// Passes over deprecated patches at the cursor. Their answer is known, so that code which
    /// still asks gets it wherever it asks.
    pub(super) fn skip_optional(&mut self) {
        while let Some(id) = self.commands.front().and_then(optional) {
            self.patches.insert(id.clone(), true);
            self.commands.pop_front();
        }
    }
}

/// A recorded marker, for messages.
pub(super) fn describe(marker: &Marker) -> String {
    match marker.kind {
        MarkerKind::Patch => format!(
            "MarkerRecorded {marker} (a call of patched may be removed only after deprecate_patch \
             has replaced it)"
        ),
        MarkerKind::DeprecatedPatch | MarkerKind::SideEffect => format!("MarkerRecorded {marker}"),
    }
}
