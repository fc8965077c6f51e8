//! Who waits for an update to get on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use steadfast_model::{RunKey, UpdateId};
use tokio::sync::watch;

use crate::driver::{Shared, lock};
use crate::message::UpdateProgress;

type Sender = watch::Sender<Option<UpdateProgress>>;

/// Everybody who waits for an update.
#[derive(Default)]
pub(crate) struct UpdateFollowers(Mutex<BTreeMap<(RunKey, UpdateId), Sender>>);

impl UpdateFollowers {
    /// Tells those who wait for this update.
    pub(crate) fn advanced(&self, run: RunKey, update_id: &UpdateId, progress: UpdateProgress) {
        if let Some(sender) = lock(&self.0).get(&(run, update_id.clone())) {
            sender.send_replace(Some(progress));
        }
    }

    /// Tells those who wait for any update of the run that they must ask again.
    pub(crate) fn unknown(&self, run: RunKey) {
        for ((found, _), sender) in lock(&self.0).iter() {
            if *found == run {
                sender.send_replace(Some(UpdateProgress::Unknown));
            }
        }
    }
}

/// Somebody who waits for an update.
pub(crate) struct UpdateFollower {
    progress: Option<watch::Receiver<Option<UpdateProgress>>>,
    shared: Arc<Shared>,
    key: (RunKey, UpdateId),
}

impl UpdateFollower {
    pub(crate) fn new(shared: Arc<Shared>, run: RunKey, update_id: UpdateId) -> Self {
        let key = (run, update_id);
        let receiver = lock(&shared.updates.0)
            .entry(key.clone())
            .or_insert_with(|| watch::Sender::new(None))
            .subscribe();
        Self {
            progress: Some(receiver),
            shared,
            key,
        }
    }

    /// Waits until the update has come so far; `None` when the host stops.
    pub(crate) async fn wait_for(
        &mut self,
        mut is_there: impl FnMut(&UpdateProgress) -> bool,
    ) -> Option<UpdateProgress> {
        let progress = self.progress.as_mut()?;
        let found = progress
            .wait_for(|progress| progress.as_ref().is_some_and(&mut is_there))
            .await
            .ok()?;
        found.clone()
    }

    /// The last that was told.
    pub(crate) fn latest(&self) -> Option<UpdateProgress> {
        let progress = self.progress.as_ref()?;
        let latest = progress.borrow();
        latest.clone()
    }
}

impl Drop for UpdateFollower {
    /// The last follower of an update takes its entry away.
    fn drop(&mut self) {
        self.progress = None;
        let mut followers = lock(&self.shared.updates.0);
        let is_last = |sender: &Sender| sender.receiver_count() == 0;
        if followers.get(&self.key).is_some_and(is_last) {
            followers.remove(&self.key);
        }
    }
}
