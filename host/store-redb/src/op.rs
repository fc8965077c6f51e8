//! A batch as the writer takes it: keys and values are bytes already, made by the thread that
//! submitted the batch, so that the one writer thread does not pay for encoding.

use steadfast_model::codec;
use steadfast_model::{ComponentRecord, EventNumber, ExecutionRecord, RunKey, Status};
use steadfast_ports::store::{Batch, FencingToken, Write};

use crate::key::{self, ActivityBytes, LetterBytes, RunBytes, TimerBytes};

/// Flag of an execution's row: the run is open.
pub(crate) const FLAG_OPEN: u8 = 1;
/// Flag of an execution's row: the run is blocked.
pub(crate) const FLAG_BLOCKED: u8 = 2;

/// An execution's row.
#[derive(Debug)]
pub(crate) struct ExecutionRow {
    /// One byte of flags, which tell what its indexes say, then the record.
    pub(crate) value: Vec<u8>,
    /// Its key in the index of workflow ids.
    pub(crate) by_id: Vec<u8>,
}

impl ExecutionRow {
    fn new(record: &ExecutionRecord) -> Self {
        let mut flags = 0;
        if record.status == Status::Running {
            flags |= FLAG_OPEN;
        }
        if record.blocked.is_some() {
            flags |= FLAG_BLOCKED;
        }
        let mut value = Vec::with_capacity(256);
        value.push(flags);
        codec::encode_into(record, &mut value);
        let by_id = key::by_id(&record.namespace, &record.workflow_id, record.run);
        Self { value, by_id }
    }

    /// The row's flags.
    pub(crate) fn flags(&self) -> u8 {
        self.value.first().copied().unwrap_or(0)
    }
}

/// One change, encoded.
#[derive(Debug)]
pub(crate) enum Op {
    /// Events; `end` is the number after the last.
    Append {
        run: RunKey,
        first: EventNumber,
        end: EventNumber,
        value: Vec<u8>,
    },
    /// A new current run.
    Claim {
        key: Vec<u8>,
        run: RunKey,
        replaces: Option<RunKey>,
    },
    /// A summary.
    Execution { key: RunBytes, row: ExecutionRow },
    /// A pending activity, or its removal.
    Activity {
        key: ActivityBytes,
        value: Option<Vec<u8>>,
    },
    /// An admitted update, or its removal.
    Update {
        key: ActivityBytes,
        value: Option<Vec<u8>>,
    },
    /// A due time, or its removal.
    Timer { key: TimerBytes, put: bool },
    /// A task, or its removal.
    Task { key: Vec<u8>, put: bool },
    /// A ready mark, or its removal.
    Ready { key: RunBytes, put: bool },
    /// A letter, or its removal.
    Letter { key: LetterBytes, put: bool },
    /// A component.
    Component {
        digest: [u8; 32],
        record: Vec<u8>,
        bytes: Vec<u8>,
    },
    /// A route.
    Route { key: Vec<u8>, digest: [u8; 32] },
}

/// A batch, encoded.
#[derive(Debug)]
pub(crate) struct Encoded {
    /// The writer's proof of ownership.
    pub(crate) fence: FencingToken,
    /// The changes, in order.
    pub(crate) ops: Vec<Op>,
    /// Bytes of keys and values, roughly: what the queue's limit counts.
    pub(crate) bytes: usize,
}

/// Roughly what a change costs besides its value.
const OP_BYTES: usize = 96;

/// Encodes a batch.
pub(crate) fn encode(batch: Batch) -> Encoded {
    let mut bytes = 0;
    let mut ops = Vec::with_capacity(batch.writes.len());
    for write in batch.writes {
        let op = encode_write(write);
        bytes += OP_BYTES + value_bytes(&op);
        ops.push(op);
    }
    Encoded {
        fence: batch.fence,
        ops,
        bytes,
    }
}

#[allow(clippy::too_many_lines, reason = "one short arm for each write")]
fn encode_write(write: Write) -> Op {
    match write {
        Write::Append { run, chunk } => {
            let (first, end) = (chunk.first, chunk.end());
            let mut value = chunk.bytes;
            value.extend_from_slice(&chunk.count.to_be_bytes());
            Op::Append {
                run,
                first,
                end,
                value,
            }
        }
        Write::Claim {
            namespace,
            workflow_id,
            run,
            replaces,
        } => Op::Claim {
            key: key::current(&namespace, &workflow_id),
            run,
            replaces,
        },
        Write::PutExecution(record) => Op::Execution {
            key: key::run(record.run),
            row: ExecutionRow::new(&record),
        },
        Write::PutActivity(task) => Op::Activity {
            key: key::activity(task.run, task.seq),
            value: Some(codec::encode(&*task)),
        },
        Write::DeleteActivity(run, seq) => Op::Activity {
            key: key::activity(run, seq),
            value: None,
        },
        Write::PutUpdate(update) => Op::Update {
            key: key::update(update.run, update.number),
            value: Some(codec::encode(&*update)),
        },
        Write::DeleteUpdate(run, number) => Op::Update {
            key: key::update(run, number),
            value: None,
        },
        Write::PutTimer(timer) => Op::Timer {
            key: key::timer(&timer),
            put: true,
        },
        Write::DeleteTimer(timer) => Op::Timer {
            key: key::timer(&timer),
            put: false,
        },
        Write::PutTask(task) => Op::Task {
            key: key::task(&task),
            put: true,
        },
        Write::DeleteTask(task) => Op::Task {
            key: key::task(&task),
            put: false,
        },
        Write::PutReady(run) => Op::Ready {
            key: key::run(run),
            put: true,
        },
        Write::DeleteReady(run) => Op::Ready {
            key: key::run(run),
            put: false,
        },
        Write::PutLetter(letter) => Op::Letter {
            key: key::letter(&letter),
            put: true,
        },
        Write::DeleteLetter(letter) => Op::Letter {
            key: key::letter(&letter),
            put: false,
        },
        Write::PutComponent { record, bytes } => component(&record, bytes),
        Write::PutRoute {
            namespace,
            workflow_type,
            component,
        } => Op::Route {
            key: key::route(&namespace, &workflow_type),
            digest: component.0,
        },
    }
}

fn component(record: &ComponentRecord, bytes: Vec<u8>) -> Op {
    Op::Component {
        digest: record.digest.0,
        record: codec::encode(record),
        bytes,
    }
}

fn value_bytes(op: &Op) -> usize {
    match op {
        Op::Append { value, .. } => value.len(),
        Op::Execution { row, .. } => row.value.len() + row.by_id.len(),
        Op::Activity { value, .. } | Op::Update { value, .. } => value.as_ref().map_or(0, Vec::len),
        Op::Task { key, .. } | Op::Route { key, .. } | Op::Claim { key, .. } => key.len(),
        Op::Component { record, bytes, .. } => record.len() + bytes.len(),
        Op::Timer { .. } | Op::Ready { .. } | Op::Letter { .. } => 0,
    }
}
