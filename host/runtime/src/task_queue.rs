//! Tasks that wait for workers outside this process, in the order in which they became ready.
//!
//! Only names are kept: the task is in its run. A name that is out of date costs one refused claim.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_model::TaskQueue;
use steadfast_ports::store::TaskKey;

/// All queues.
#[derive(Debug, Default)]
pub struct TaskQueues {
    queues: BTreeMap<TaskQueue, BTreeSet<TaskKey>>,
}

impl TaskQueues {
    /// Adds a task; again is the same.
    pub fn offer(&mut self, key: TaskKey) {
        self.queues
            .entry(key.queue.clone())
            .or_default()
            .insert(key);
    }

    /// Removes a task.
    pub fn withdraw(&mut self, key: &TaskKey) {
        if let Some(queue) = self.queues.get_mut(&key.queue) {
            queue.remove(key);
            if queue.is_empty() {
                self.queues.remove(&key.queue);
            }
        }
    }

    /// Takes the oldest tasks of a queue, at most `max`.
    pub fn take(&mut self, queue: &TaskQueue, max: usize) -> Vec<TaskKey> {
        let Some(waiting) = self.queues.get_mut(queue) else {
            return Vec::new();
        };
        let mut taken = Vec::new();
        while taken.len() < max
            && let Some(key) = waiting.pop_first()
        {
            taken.push(key);
        }
        if waiting.is_empty() {
            self.queues.remove(queue);
        }
        taken
    }

    /// How many tasks wait in a queue.
    #[must_use]
    pub fn backlog(&self, queue: &TaskQueue) -> usize {
        self.queues.get(queue).map_or(0, BTreeSet::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_model::{RunKey, Seq, Timestamp};

    fn key(queue: &str, ready: u64, run: u64) -> TaskKey {
        let queue = TaskQueue::new(queue).unwrap();
        TaskKey {
            queue,
            ready: Timestamp(ready),
            run: RunKey(run),
            seq: Seq(1),
        }
    }

    #[test]
    fn oldest_first_and_each_once() {
        let mut queues = TaskQueues::default();
        for (ready, run) in [(2, 1), (1, 2), (2, 1), (3, 3)] {
            queues.offer(key("a", ready, run));
        }
        queues.offer(key("b", 0, 9));
        queues.withdraw(&key("a", 3, 3));
        let queue = TaskQueue::new("a").unwrap();
        assert_eq!(queues.backlog(&queue), 2);
        assert_eq!(queues.take(&queue, 1), [key("a", 1, 2)]);
        assert_eq!(queues.take(&queue, 9), [key("a", 2, 1)]);
        assert_eq!(queues.take(&queue, 9), []);
    }
}
