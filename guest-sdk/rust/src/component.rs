//! The component's exports: wire types in, wire types out, the run in between.
//!
//! Read next: `run.rs`, `workflow.rs`.

use std::collections::BTreeMap;

use crate::bindings::steadfast::workflow::description as wire_description;
use crate::bindings::steadfast::workflow::events as wire;
use crate::bindings::steadfast::workflow::types as wire_types;
use crate::continue_as_new::Continued;
use crate::failure::{Failure, FailureKind, Frame};
use crate::operation::UnknownOperation;
use crate::payload::Payload;
use crate::run::{self, End, Run};
use crate::workflow::{Definition, MessageDescription};
use crate::{host, panic};

/// The most events that the host should deliver in one call: enough to make the call's own cost
/// disappear, few enough to keep the list small.
const RESUME_BATCH_MAX: u32 = 256;

/// Answers the export `describe`.
#[must_use]
pub fn describe(definitions: &[Definition]) -> wire_description::ComponentDescription {
    panic::install_hook();
    wire_description::ComponentDescription {
        sdk: concat!("steadfast-sdk/", env!("CARGO_PKG_VERSION")).to_owned(),
        resume_batch_max: RESUME_BATCH_MAX,
        workflows: definitions.iter().map(describe_workflow).collect(),
    }
}

fn describe_workflow(definition: &Definition) -> wire_description::WorkflowDescription {
    wire_description::WorkflowDescription {
        name: definition.name.to_owned(),
        doc: definition.doc.to_owned(),
        input_schema: (definition.input_schema)(),
        output_schema: (definition.output_schema)(),
        signals: (definition.signals)()
            .into_iter()
            .map(describe_message)
            .collect(),
        queries: (definition.queries)()
            .into_iter()
            .map(describe_message)
            .collect(),
        updates: (definition.updates)()
            .into_iter()
            .map(describe_message)
            .collect(),
    }
}

fn describe_message(message: MessageDescription) -> wire_description::MessageDescription {
    wire_description::MessageDescription {
        name: message.name,
        doc: message.doc,
        input_schema: message.input_schema,
        output_schema: message.output_schema,
    }
}

/// Answers the export `start`.
///
/// # Panics
///
/// When the component has no such workflow, or the instance has a run already: the host's
/// mistakes, which must block the run and not fail it.
#[must_use]
#[allow(
    clippy::panic,
    reason = "an unknown type must block the run, not end it"
)]
pub fn start(
    definitions: &[Definition],
    workflow_type: &str,
    input: wire_types::Payload,
) -> wire::Step {
    panic::install_hook();
    let Some(definition) = definitions.iter().find(|known| known.name == workflow_type) else {
        panic!("the component has no workflow type {workflow_type:?}");
    };
    run::with(|run| {
        run.now_ms.set(host::now_ms());
        run.event.set(1);
        run.start((definition.run)(from_wire(input)));
        run.run_until_blocked();
        run.take_end()
            .map_or(wire::Step::Blocked, |end| end_to_wire(run, end))
    })
}

/// Answers the export `resume`: delivers the events one after the other, letting every task run
/// until it waits in between. Events after the workflow's end are ignored.
///
/// # Panics
///
/// When the run has not been started or has ended in an earlier call.
#[must_use]
pub fn resume(events: Vec<wire::Event>) -> wire::Step {
    run::with(|run| {
        assert!(run.is_open(), "only a run that is blocked is resumed");
        for event in events {
            run.now_ms.set(event.time_ms);
            run.event.set(event.number);
            if let Err(UnknownOperation(number)) = deliver(run, event.kind) {
                return wire::Step::UnknownOperation(number);
            }
            run.run_until_blocked();
            if let Some(end) = run.take_end() {
                return end_to_wire(run, end);
            }
        }
        wire::Step::Blocked
    })
}

/// Answers the export `query`, also after the workflow's end.
///
/// # Errors
///
/// The handler's failure, or one that names the known queries.
pub fn query(
    name: &str,
    input: wire_types::Payload,
) -> Result<wire_types::Payload, wire_types::Failure> {
    run::with(|run| run.handlers.query(name, from_wire(input)))
        .map(to_wire)
        .map_err(failure_to_wire)
}

/// Answers the export `validate-update`.
///
/// # Errors
///
/// Why the update is refused.
pub fn validate_update(name: &str, input: wire_types::Payload) -> Result<(), wire_types::Failure> {
    run::with(|run| run.handlers.validate(name, from_wire(input))).map_err(failure_to_wire)
}

fn deliver(run: &Run, event: wire::EventKind) -> Result<(), UnknownOperation> {
    match event {
        wire::EventKind::Resolved(resolution) => {
            let outcome = resolution.outcome.map(from_wire).map_err(failure_from_wire);
            run.operations.resolve(resolution.operation, outcome)?;
        }
        wire::EventKind::Signaled(signal) => {
            let number = run.event.get();
            run.signals
                .deliver(number, &signal.name, from_wire(signal.input));
        }
        wire::EventKind::CancelRequested(reason) => run.cancel.deliver(&reason),
        wire::EventKind::UpdateAccepted(update) => {
            let input = from_wire(update.input);
            run.handlers.accept(update.id, &update.name, input);
        }
    }
    Ok(())
}

fn end_to_wire(run: &Run, end: End) -> wire::Step {
    match end {
        End::Completed(payload) => wire::Step::Completed(to_wire(payload)),
        End::Failed(failure) => wire::Step::Failed(failure_to_wire(failure)),
        End::Canceled(failure) => wire::Step::Canceled(failure_to_wire(failure)),
        End::Continued(next) => wire::Step::Continued(continued_to_wire(run, *next)),
    }
}

fn continued_to_wire(run: &Run, next: Continued) -> wire::ContinueAsNew {
    let unread = run.signals.take_unread().into_iter();
    wire::ContinueAsNew {
        input: to_wire(next.input),
        workflow_type: next.workflow_type,
        task_queue: next.task_queue,
        memo: next.memo.map(fields_to_wire),
        unread: unread
            .map(|(event, name, input)| wire::UnreadSignal {
                event,
                name,
                input: to_wire(input),
            })
            .collect(),
        settings: next.settings,
    }
}

pub(crate) fn fields_to_wire(
    fields: BTreeMap<String, Payload>,
) -> Vec<(String, wire_types::Payload)> {
    let fields = fields.into_iter();
    fields.map(|(name, value)| (name, to_wire(value))).collect()
}

pub(crate) fn from_wire(payload: wire_types::Payload) -> Payload {
    Payload {
        encoding: payload.encoding,
        data: payload.data,
    }
}

pub(crate) fn to_wire(payload: Payload) -> wire_types::Payload {
    wire_types::Payload {
        encoding: payload.encoding,
        data: payload.data,
    }
}

pub(crate) fn failure_from_wire(failure: wire_types::Failure) -> Failure {
    Failure::from_frames(failure.frames.into_iter().map(frame_from_wire).collect())
}

pub(crate) fn failure_to_wire(failure: Failure) -> wire_types::Failure {
    wire_types::Failure {
        frames: failure
            .into_frames()
            .into_iter()
            .map(frame_to_wire)
            .collect(),
    }
}

fn frame_from_wire(frame: wire_types::FailureFrame) -> Frame {
    Frame {
        kind: match frame.kind {
            wire_types::FailureKind::Application => FailureKind::Application,
            wire_types::FailureKind::Timeout => FailureKind::Timeout,
            wire_types::FailureKind::Canceled => FailureKind::Canceled,
            wire_types::FailureKind::Terminated => FailureKind::Terminated,
            wire_types::FailureKind::Server => FailureKind::Server,
            wire_types::FailureKind::Activity => FailureKind::Activity,
            wire_types::FailureKind::ChildWorkflow => FailureKind::ChildWorkflow,
        },
        message: frame.message,
        code: frame.code,
        is_non_retryable: frame.non_retryable,
        next_retry_delay_ms: frame.next_retry_delay_ms,
        stack_trace: frame.stack_trace,
        details: frame.details.map(from_wire),
    }
}

fn frame_to_wire(frame: Frame) -> wire_types::FailureFrame {
    wire_types::FailureFrame {
        kind: match frame.kind {
            FailureKind::Application => wire_types::FailureKind::Application,
            FailureKind::Timeout => wire_types::FailureKind::Timeout,
            FailureKind::Canceled => wire_types::FailureKind::Canceled,
            FailureKind::Terminated => wire_types::FailureKind::Terminated,
            FailureKind::Server => wire_types::FailureKind::Server,
            FailureKind::Activity => wire_types::FailureKind::Activity,
            FailureKind::ChildWorkflow => wire_types::FailureKind::ChildWorkflow,
        },
        message: frame.message,
        code: frame.code,
        non_retryable: frame.is_non_retryable,
        next_retry_delay_ms: frame.next_retry_delay_ms,
        stack_trace: frame.stack_trace,
        details: frame.details.map(to_wire),
    }
}
