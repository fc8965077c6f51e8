//! Changes of the memo at the command cursor.

use alloc::string::String;

use steadfast_model::EventKind;
use steadfast_model::chain::Fields;
use steadfast_model::command::Command;

use super::{Mismatch, Replay};

impl Replay {
    /// Matches a change of the memo. `None`: it is recorded already.
    ///
    /// # Errors
    /// [`Mismatch`] when the history records something else here.
    pub fn upsert_memo(&mut self, memo: &Fields) -> Result<Option<Command>, Mismatch> {
        self.skip_optional();
        let Some(recorded) = self.commands.front() else {
            let memo = memo.clone();
            return Ok(Some(Command::UpsertMemo { memo }));
        };
        let number = recorded.number;
        if let EventKind::WorkflowPropertiesModified { memo: old } = &recorded.kind {
            if old != memo {
                self.drift(number, String::from("values of the memo"));
            }
            self.commands.pop_front();
            return Ok(None);
        }
        Err(self.differs(number, &recorded.kind, "UpsertMemo"))
    }
}
