//! What a workflow is: a type with a name, an input, an output and code.
//!
//! `#[workflow]` implements [`Workflow`] for a type named after the function; it can also be
//! implemented by hand. Read next: `component.rs`, `context.rs`.

use std::pin::Pin;

use crate::context::Context;
use crate::failure::Failure;
use crate::operation::Outcome;
use crate::payload::{Decode, Encode};
use crate::{Payload, run};

/// What a component tells about one of a workflow's messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageDescription {
    /// The message's name.
    pub name: String,
    /// Text for people.
    pub doc: String,
    /// JSON Schema (draft 2020-12) of the input; empty when not described.
    pub input_schema: String,
    /// JSON Schema of the answer of a query or an update; empty when not described.
    pub output_schema: String,
}

/// A workflow type.
pub trait Workflow: 'static {
    /// What a run is started with.
    type Input: Decode;
    /// What a run completes with.
    type Output: Encode + 'static;

    /// The workflow type's name, unique in its component.
    const NAME: &'static str;
    /// Text for people.
    const DOC: &'static str = "";

    /// Describes the signals that the workflow understands. Default: none.
    #[must_use]
    fn signals() -> Vec<MessageDescription> {
        Vec::new()
    }

    /// Describes the queries that the workflow answers. Default: none.
    #[must_use]
    fn queries() -> Vec<MessageDescription> {
        Vec::new()
    }

    /// Describes the updates that the workflow handles. Default: none.
    #[must_use]
    fn updates() -> Vec<MessageDescription> {
        Vec::new()
    }

    /// Returns the JSON Schema of the input. Default: not described.
    #[must_use]
    fn input_schema() -> String {
        String::new()
    }

    /// Returns the JSON Schema of the output. Default: not described.
    #[must_use]
    fn output_schema() -> String {
        String::new()
    }

    /// Runs the workflow.
    fn run(
        ctx: Context,
        input: Self::Input,
    ) -> impl Future<Output = Result<Self::Output, Failure>> + 'static;
}

/// The `Result` that a workflow function returns. Used by `#[workflow]`.
#[doc(hidden)]
pub trait WorkflowResult {
    /// The output on success.
    type Output;

    /// Turns the error into a failure.
    ///
    /// # Errors
    ///
    /// The error, as a failure.
    fn into_result(self) -> Result<Self::Output, Failure>;
}

impl<T, E: Into<Failure>> WorkflowResult for Result<T, E> {
    type Output = T;

    fn into_result(self) -> Result<T, Failure> {
        self.map_err(Into::into)
    }
}

type BoxedRun = Pin<Box<dyn Future<Output = Outcome>>>;

/// A workflow type, its Rust types forgotten: an entry of a component's table.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) signals: fn() -> Vec<MessageDescription>,
    pub(crate) queries: fn() -> Vec<MessageDescription>,
    pub(crate) updates: fn() -> Vec<MessageDescription>,
    pub(crate) input_schema: fn() -> String,
    pub(crate) output_schema: fn() -> String,
    pub(crate) run: fn(Payload) -> BoxedRun,
}

impl Definition {
    /// Returns the definition of a workflow type.
    #[must_use]
    pub const fn of<W: Workflow>() -> Self {
        Self {
            name: W::NAME,
            doc: W::DOC,
            signals: W::signals,
            queries: W::queries,
            updates: W::updates,
            input_schema: W::input_schema,
            output_schema: W::output_schema,
            run: |input| Box::pin(run_encoded::<W>(input)),
        }
    }
}

/// Runs a workflow on encoded values. An input that is not one fails the run: no retry and no
/// other version of the code can help a caller's mistake.
async fn run_encoded<W: Workflow>(input: Payload) -> Outcome {
    let input = W::Input::decode(input).map_err(|failure| {
        Failure::non_retryable("invalid-input", "the workflow's input does not decode")
            .caused_by(failure)
    })?;
    let output = W::run(Context::new(), input).await?;
    output.encode(run::spare_buffer())
}

/// Returns the JSON Schema (draft 2020-12) of a type.
#[cfg(feature = "schema")]
#[must_use]
pub fn json_schema<T: schemars::JsonSchema>() -> String {
    schemars::schema_for!(T).as_value().to_string()
}
