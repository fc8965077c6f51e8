//! Nouns of Steadfast: ids, events, commands, failures, payloads, limits and their stored form.
//!
//! Everything here is plain data. The crate is `no_std`, so no clock, file, environment or thread
//! can be named, and nothing in it allocates behind the caller's back. Read [`event`] and
//! [`codec`] next.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod activity;
pub mod chain;
pub mod child;
pub mod codec;
pub mod command;
pub mod component;
pub mod event;
pub mod execution;
pub mod failure;
pub mod id;
pub mod limits;
pub mod marker;
pub mod payload;
pub mod retry;
pub mod time;
pub mod update;

pub use activity::{ActivityOptions, ActivityTask, Cancellation, Control, Paused, TaskState};
pub use chain::{ChainOptions, IdReusePolicy, Initiator, Link};
pub use child::{ChildOptions, LetterKey, LetterKind};
pub use command::Command;
pub use component::{ComponentDescription, ComponentRecord};
pub use event::{Event, EventKind};
pub use execution::{ExecutionRecord, Status};
pub use failure::{Failure, FailureKind, Frame, RetryState};
pub use id::{
    ActivityType, ComponentDigest, EventNumber, MarkerName, Namespace, QueryName, RequestId, RunId,
    RunKey, Seq, SignalName, TaskQueue, UpdateId, UpdateName, WorkflowId, WorkflowType,
};
pub use marker::{Marker, MarkerKind};
pub use payload::Payload;
pub use retry::RetryPolicy;
pub use time::{Millis, Timestamp};
pub use update::AdmittedUpdate;
