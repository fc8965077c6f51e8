//! The shell around the engine: shards, timers, task queues, activity dispatch, recovery.
//!
//! A [`Shard`] is a synchronous machine; only the driver, the handle and activities of this process
//! are async. Read `message.rs` (what goes in and comes out), then `shard.rs`.

pub mod activation;
pub mod asking;
mod blocked;
mod calls;
pub mod chain;
mod committed;
pub mod courier;
pub mod cron;
mod driver;
mod effects;
pub mod error;
mod follow;
pub mod handle;
mod host;
mod letters;
mod loading;
pub mod local;
pub mod message;
mod metadata;
pub mod operating;
pub mod outbox;
mod post;
mod query;
pub mod reading;
mod recorded;
mod residency;
pub mod rows;
mod run;
mod run_log;
pub mod shard;
mod starting;
pub mod task_queue;
mod timer;
mod update;
mod wanted;
pub mod worker;

pub use error::Error;
pub use handle::Handle;
pub use host::{Options, StartError, World, start};
pub use loading::{load, load_timers};
pub use local::{Activities, ActivityContext};
pub use recorded::read_history;
pub use shard::Shard;
pub use worker::TaskToken;

/// Ports and model types that appear in this crate's interface, for crates that may depend on the
/// runtime only.
pub mod reexport {
    pub use steadfast_engine::operate;
    pub use steadfast_engine::options::Patch;
    pub use steadfast_ports::guest::Refusal;
    pub use steadfast_ports::store::ListQuery;
}
