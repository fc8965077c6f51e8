//! When a run of the simulator is over.

use steadfast_model::RunKey;
use steadfast_ports::Store;

use super::World;

impl World {
    /// True for a run that was begun, durably, and has not ended.
    fn is_open(&self, run: RunKey) -> bool {
        let record = self.store.execution(run).expect("readable");
        record.is_some_and(|record| !record.status.is_closed())
    }

    /// True if every run has ended, children included, and none owes another anything.
    pub(super) fn all_closed(&self) -> bool {
        let last = self.store.last_run().expect("readable").0;
        self.is_up
            && (1..=last).all(|run| !self.is_open(RunKey(run)))
            && self.store.letters(None, 1).expect("readable").is_empty()
    }

    pub(super) fn open_runs(&self) -> String {
        let last = self.store.last_run().expect("readable").0;
        let open: Vec<_> = (1..=last)
            .map(RunKey)
            .filter(|run| self.is_open(*run))
            .map(|run| {
                let record = self.store.execution(run).expect("readable");
                let history = steadfast_runtime::read_history(
                    &*self.store,
                    run,
                    steadfast_model::EventNumber(u64::MAX),
                )
                .expect("readable");
                let last: Vec<_> = history
                    .iter()
                    .rev()
                    .take(4)
                    .map(|e| (e.number, e.kind.name()))
                    .collect();
                let blocked = record.and_then(|record| record.blocked);
                format!("run {run}: blocked {blocked:?}, last events {last:?}")
            })
            .collect();
        format!(
            "client done: {}, open: {}",
            self.client.is_done(),
            open.join("\n")
        )
    }
}
