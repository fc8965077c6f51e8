//! Write durable workflows in ordinary async Rust.
//!
//! A workflow is an `async fn` whose only doors to the world are the activities, timers, signals,
//! clock and random numbers of its [`Context`]. The host records what each of them answered and can
//! rebuild a run at any time, on any machine, by running the same code again on those answers.
//!
//! ```
//! use std::time::Duration;
//! use steadfast_sdk::{Context, Failure, workflow};
//!
//! /// Charges an order after a pause.
//! #[workflow]
//! async fn order(ctx: Context, cents: u64) -> Result<String, Failure> {
//!     ctx.sleep(Duration::from_secs(60)).await;
//!     let payment: String = ctx.activity("charge", &cents).await?;
//!     Ok(payment)
//! }
//!
//! steadfast_sdk::component!(order);
//! # fn main() {}
//! ```
//!
//! # What happens when
//!
//! - An [`Activity`] is scheduled when it is awaited, started, or given to a combinator; a [`Timer`]
//!   starts at the call of [`Context::sleep`].
//! - Dropping what has been started and not resolved cancels it: so do the losers of
//!   [`select!`], [`race`] and [`timeout`], and the rest of a failed [`try_join_all`]. `detach` lets
//!   it go on.
//! - Events are delivered one at a time; after each, every task runs until it waits. Tasks go on in
//!   the order in which they were woken. The clock stands still in between.
//! - A panic blocks the run until the code is fixed; return a [`Failure`] to end it.
//!
//! # What to keep away from
//!
//! The target has no clock, threads or files of its own: `std::time::Instant::now`,
//! `std::time::SystemTime::now` and `std::thread::spawn` panic, and `println!` writes nowhere. Use
//! [`Context::now`], [`Context::spawn`] and [`info!`]. `std::collections::HashMap` works and always
//! iterates in the same order in the same component; another build may order it differently, so let
//! no order of iteration decide what is scheduled.
//!
//! Read next: `context.rs`, `run.rs`.

mod activity;
#[doc(hidden)]
pub mod bindings;
mod cancel;
#[doc(hidden)]
mod child;
pub mod component;
mod condition;
mod context;
mod continue_as_new;
mod execution;
mod executor;
mod failure;
mod handler;
mod host;
mod join;
pub mod log;
mod operation;
mod panic;
mod payload;
mod random;
mod run;
mod saga;
mod scope;
mod signal;
mod spawn;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
mod time;
mod timer;
mod waiters;
mod workflow;

pub use activity::{Activity, ActivityHandle, Cancellation, RetryPolicy};
pub use cancel::Cancelled;
pub use child::{Child, ChildCancellation, ChildHandle, IdReusePolicy, ParentClosePolicy};
pub use condition::WaitUntil;
pub use context::Context;
pub use continue_as_new::ContinueAsNew;
pub use execution::{Execution, Message};
pub use failure::{Failure, FailureKind, Frame};
pub use handler::{Answer, HandlersFinished};
pub use host::{ChainInfo, WorkflowInfo};
pub use join::{Elapsed, join_all, race, timeout, try_join_all};
pub use payload::{Decode, Encode, NoInput, Payload};
pub use random::Random;
pub use saga::Saga;
#[cfg(feature = "schema")]
pub use schemars;
pub use scope::{Scope, ScopeRun, Shielded};
pub use signal::{Recv, RecvAny, Signal, SignalSet};
pub use spawn::JoinHandle;
pub use steadfast_sdk_macros::{join, select, try_join, workflow};
pub use time::Timestamp;
pub use timer::Timer;
#[cfg(feature = "schema")]
#[doc(hidden)]
pub use workflow::json_schema;
#[doc(hidden)]
pub use workflow::{Definition, WorkflowResult};
pub use workflow::{MessageDescription, Workflow};

/// Makes the crate a component that holds these workflows: `component!(order, refund::refund);`.
/// Used once, in a crate of type `cdylib`.
#[macro_export]
macro_rules! component {
    ($($workflow:ty),+ $(,)?) => {
        const _: () = {
            const DEFINITIONS: &[$crate::Definition] =
                &[$($crate::Definition::of::<$workflow>()),+];

            // Natively nothing is exported: the table keeps the workflows from being unused.
            #[cfg(not(target_arch = "wasm32"))]
            const _: &[$crate::Definition] = DEFINITIONS;

            struct Component;

            impl $crate::bindings::Guest for Component {
                fn describe() -> $crate::bindings::ComponentDescription {
                    $crate::component::describe(DEFINITIONS)
                }

                fn start(
                    workflow_type: ::std::string::String,
                    input: $crate::bindings::Payload,
                ) -> $crate::bindings::Step {
                    $crate::component::start(DEFINITIONS, &workflow_type, input)
                }

                fn resume(
                    events: ::std::vec::Vec<$crate::bindings::Event>,
                ) -> $crate::bindings::Step {
                    $crate::component::resume(events)
                }

                fn query(
                    name: ::std::string::String,
                    input: $crate::bindings::Payload,
                ) -> ::core::result::Result<$crate::bindings::Payload, $crate::bindings::Failure>
                {
                    $crate::component::query(&name, input)
                }

                fn validate_update(
                    name: ::std::string::String,
                    input: $crate::bindings::Payload,
                ) -> ::core::result::Result<(), $crate::bindings::Failure> {
                    $crate::component::validate_update(&name, input)
                }
            }

            #[cfg(target_arch = "wasm32")]
            $crate::bindings::export!(Component with_types_in $crate::bindings);
        };
    };
}
