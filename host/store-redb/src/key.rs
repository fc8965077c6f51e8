//! Key bytes. Numbers are big-endian and names are escaped, so that the order of the bytes is the
//! order of the keys; `docs/storage-format.md` documents each.
//!
//! A name inside a key ends with `00 01`, and a zero byte within it is written `00 ff`: a name
//! that is a prefix of another sorts first, whatever follows it in the key.

use steadfast_model::{
    EventNumber, LetterKey, LetterKind, Namespace, RunKey, Seq, TaskQueue, Timestamp,
};
use steadfast_model::{WorkflowId, WorkflowType};
use steadfast_ports::store::{TaskKey, TimerKey, TimerKind};

/// Key of a row per run.
pub(crate) type RunBytes = [u8; 8];
/// Key of a history chunk: run, number of the first event.
pub(crate) type EventBytes = [u8; 16];
/// Key of a pending activity: run, seq.
pub(crate) type ActivityBytes = [u8; 12];
/// Key of a due time: due, run, kind, seq.
pub(crate) type TimerBytes = [u8; 21];
/// Key of a letter: run, seq, kind.
pub(crate) type LetterBytes = [u8; 13];
/// Key of a piece of a component: digest, index.
pub(crate) type PieceBytes = [u8; 36];

/// Key of a row per run.
pub(crate) fn run(run: RunKey) -> RunBytes {
    run.0.to_be_bytes()
}

/// Key of a history chunk.
pub(crate) fn event(run: RunKey, first: EventNumber) -> EventBytes {
    let mut key = [0; 16];
    put(&mut key, 0, &run.0.to_be_bytes());
    put(&mut key, 8, &first.0.to_be_bytes());
    key
}

/// The number of the first event out of a chunk's key.
pub(crate) fn event_number(key: &EventBytes) -> EventNumber {
    EventNumber(number(key, 8))
}

/// Key of a pending activity.
pub(crate) fn activity(run: RunKey, seq: Seq) -> ActivityBytes {
    let mut key = [0; 12];
    put(&mut key, 0, &run.0.to_be_bytes());
    put(&mut key, 8, &seq.0.to_be_bytes());
    key
}

/// Key of an admitted update: run, number.
pub(crate) fn update(run: RunKey, number: u32) -> ActivityBytes {
    activity(run, Seq(number))
}

/// Key of a due time.
pub(crate) fn timer(timer: &TimerKey) -> TimerBytes {
    let mut key = [0; 21];
    put(&mut key, 0, &timer.due.0.to_be_bytes());
    put(&mut key, 8, &timer.run.0.to_be_bytes());
    put(&mut key, 16, &[timer.kind.to_byte()]);
    put(&mut key, 17, &timer.seq.0.to_be_bytes());
    key
}

/// The key after every due time up to `until`.
pub(crate) fn timer_end(until: Timestamp) -> TimerBytes {
    let mut key = [0xff; 21];
    put(&mut key, 0, &until.0.to_be_bytes());
    key
}

/// Reads a due time back; `None` when the kind is unknown.
pub(crate) fn read_timer(key: &TimerBytes) -> Option<TimerKey> {
    Some(TimerKey {
        due: Timestamp(number(key, 0)),
        run: RunKey(number(key, 8)),
        kind: TimerKind::from_byte(key.get(16).copied()?)?,
        seq: Seq(short(key, 17)),
    })
}

/// Key of a letter.
pub(crate) fn letter(letter: &LetterKey) -> LetterBytes {
    let mut key = [0; 13];
    put(&mut key, 0, &letter.run.0.to_be_bytes());
    put(&mut key, 8, &letter.seq.0.to_be_bytes());
    put(&mut key, 12, &[letter.kind.to_byte()]);
    key
}

/// Reads a letter back; `None` when the kind is unknown.
pub(crate) fn read_letter(key: &LetterBytes) -> Option<LetterKey> {
    Some(LetterKey {
        run: RunKey(number(key, 0)),
        seq: Seq(short(key, 8)),
        kind: LetterKind::from_byte(key.get(12).copied()?)?,
    })
}

/// Key of a piece of a component.
pub(crate) fn piece(digest: &[u8; 32], index: u32) -> PieceBytes {
    let mut key = [0; 36];
    put(&mut key, 0, digest);
    put(&mut key, 32, &index.to_be_bytes());
    key
}

/// Key of a task: queue, ready, run, seq.
pub(crate) fn task(task: &TaskKey) -> Vec<u8> {
    let mut key = Vec::with_capacity(task.queue.as_str().len() + 22);
    push_name(&mut key, task.queue.as_str());
    key.extend_from_slice(&task.ready.0.to_be_bytes());
    key.extend_from_slice(&task.run.0.to_be_bytes());
    key.extend_from_slice(&task.seq.0.to_be_bytes());
    key
}

/// Reads a task back; `None` when the bytes are not one.
pub(crate) fn read_task(key: &[u8]) -> Option<TaskKey> {
    let (name, rest) = read_name(key)?;
    if rest.len() != 20 {
        return None;
    }
    Some(TaskKey {
        queue: TaskQueue::new(name).ok()?,
        ready: Timestamp(number(rest, 0)),
        run: RunKey(number(rest, 8)),
        seq: Seq(short(rest, 16)),
    })
}

/// Key of the current run: namespace, workflow id.
pub(crate) fn current(namespace: &Namespace, workflow_id: &WorkflowId) -> Vec<u8> {
    let mut key = Vec::with_capacity(namespace.as_str().len() + workflow_id.as_str().len() + 4 + 8);
    push_name(&mut key, namespace.as_str());
    push_name(&mut key, workflow_id.as_str());
    key
}

/// Key of a run in the index of workflow ids: namespace, workflow id, run.
pub(crate) fn by_id(namespace: &Namespace, workflow_id: &WorkflowId, run: RunKey) -> Vec<u8> {
    let mut key = current(namespace, workflow_id);
    key.extend_from_slice(&run.0.to_be_bytes());
    key
}

/// The run out of a key of the index of workflow ids.
pub(crate) fn read_by_id(key: &[u8]) -> Option<RunKey> {
    let start = key.len().checked_sub(8)?;
    Some(RunKey(number(key, start)))
}

/// Key of a route: namespace, workflow type.
pub(crate) fn route(namespace: &Namespace, workflow_type: &WorkflowType) -> Vec<u8> {
    let mut key = Vec::new();
    push_name(&mut key, namespace.as_str());
    push_name(&mut key, workflow_type.as_str());
    key
}

/// Eight bytes of a key as a number; 0 when they are not there, which the callers' lengths rule
/// out.
pub(crate) fn number(key: &[u8], at: usize) -> u64 {
    key.get(at..)
        .and_then(<[u8]>::first_chunk)
        .map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

fn short(key: &[u8], at: usize) -> u32 {
    key.get(at..)
        .and_then(<[u8]>::first_chunk)
        .map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

fn put(key: &mut [u8], at: usize, bytes: &[u8]) {
    for (to, from) in key.iter_mut().skip(at).zip(bytes) {
        *to = *from;
    }
}

fn push_name(key: &mut Vec<u8>, name: &str) {
    for &byte in name.as_bytes() {
        key.push(byte);
        if byte == 0 {
            key.push(0xff);
        }
    }
    key.extend_from_slice(&[0, 1]);
}

fn read_name(key: &[u8]) -> Option<(String, &[u8])> {
    let mut name = Vec::new();
    let mut rest = key;
    loop {
        match rest {
            [0, 1, after @ ..] => return Some((String::from_utf8(name).ok()?, after)),
            [0, 0xff, after @ ..] => {
                name.push(0);
                rest = after;
            }
            [0, ..] | [] => return None,
            [byte, after @ ..] => {
                name.push(*byte);
                rest = after;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks() -> Vec<TaskKey> {
        let names = [
            "a", "a\0", "a\0\u{1}", "a\u{1}", "ab", "b", "\u{e9}", "\0", "\0\0",
        ];
        let numbers = [0, 1, 255, 256, u64::MAX];
        let mut tasks = Vec::new();
        for name in names {
            for ready in numbers {
                for run in numbers {
                    let queue = TaskQueue::new(name).unwrap();
                    let (ready, run) = (Timestamp(ready), RunKey(run));
                    tasks.push(TaskKey {
                        queue,
                        ready,
                        run,
                        seq: Seq(u32::MAX),
                    });
                }
            }
        }
        tasks
    }

    #[test]
    fn bytes_of_tasks_sort_as_the_tasks_do_and_read_back() {
        let mut tasks = tasks();
        tasks.sort();
        let keys: Vec<Vec<u8>> = tasks.iter().map(task).collect();
        assert!(keys.is_sorted());
        for (task, key) in tasks.iter().zip(&keys) {
            assert_eq!(read_task(key).as_ref(), Some(task));
        }
    }

    #[test]
    fn bytes_of_timers_sort_as_the_timers_do_and_read_back() {
        let mut timers = Vec::new();
        for due in [0, 1, 256, u64::MAX] {
            for run in [0, 1, 256, u64::MAX] {
                for kind in [
                    TimerKind::Activation,
                    TimerKind::Activity,
                    TimerKind::Workflow,
                ] {
                    let (due, run) = (Timestamp(due), RunKey(run));
                    timers.push(TimerKey {
                        due,
                        run,
                        kind,
                        seq: Seq(258),
                    });
                }
            }
        }
        timers.sort();
        let keys: Vec<TimerBytes> = timers.iter().map(timer).collect();
        assert!(keys.is_sorted());
        for (timer, key) in timers.iter().zip(&keys) {
            assert_eq!(read_timer(key).as_ref(), Some(timer));
            assert!(*key <= timer_end(timer.due));
        }
    }

    #[test]
    fn bytes_of_letters_sort_as_the_letters_do_and_read_back() {
        let mut letters = Vec::new();
        for run in [0, 1, 256, u64::MAX] {
            for seq in [0, 1, 256, u32::MAX] {
                for kind in (1..=7).filter_map(LetterKind::from_byte) {
                    let (run, seq) = (RunKey(run), Seq(seq));
                    letters.push(LetterKey { run, seq, kind });
                }
            }
        }
        letters.sort();
        let keys: Vec<LetterBytes> = letters.iter().map(letter).collect();
        assert!(keys.is_sorted());
        for (letter, key) in letters.iter().zip(&keys) {
            assert_eq!(read_letter(key).as_ref(), Some(letter));
        }
    }

    #[test]
    fn malformed_keys_read_as_nothing() {
        for bytes in [&[][..], &[0], &[0, 2], b"a", b"a\0\x01", b"\xff\0\x01"] {
            assert_eq!(read_task(bytes), None);
        }
        assert_eq!(read_by_id(&[1, 2]), None);
        assert_eq!(read_timer(&[9; 21]), None);
        assert_eq!(read_letter(&[9; 13]), None);
    }
}
