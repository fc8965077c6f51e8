//! Carries letters between runs: finds the receiver, gives it the letter, and turns what it says
//! into the sender's answer. Without state, so that the driver and the simulator share it.
//!
//! Everything here may happen twice. A start is known by the child's parent, a signal and a cancel
//! request by its request id, also in a run that has ended since; a termination changes nothing the
//! second time.

use std::collections::BTreeSet;

use steadfast_engine::Rejection;
use steadfast_engine::chain::{Minted, first_events};
use steadfast_engine::child::{Answer, Undeliverable, outcome};
use steadfast_engine::decide::Request;
use steadfast_model::child::{ExternalTarget, FailedCause, Parent, ParentClosePolicy, Ward};
use steadfast_model::event::Started;
use steadfast_model::{
    ChildOptions, Event, EventKind, EventNumber, ExecutionRecord, LetterKey, LetterKind, Namespace,
    RequestId, RunId, RunKey, Seq, Timestamp, WorkflowId,
};
use steadfast_ports::Store;
use steadfast_ports::store::{self, ListQuery};

use crate::chain::record;
use crate::handle::DEFAULT_NAMESPACE;
use crate::message::{CallError, NewRun};
use crate::outbox::{Carried, Content, Letter};
use crate::recorded::read_history;
use crate::starting::child_link;

/// Runs of a workflow id that are looked at for a child that was started before.
const RUNS_SEARCHED: usize = 100;

/// Runs of a workflow id that are looked at for a message that was delivered before.
const RUNS_READ: usize = 10;

/// What the courier does with a letter.
#[derive(Debug)]
pub enum Step {
    /// It is answered: nobody needs to be asked.
    Answer(Option<Box<Answer>>),
    /// Another letter comes first.
    Later,
    /// This run is to begin.
    Start(Box<NewRun>),
    /// This reaches a run.
    Give {
        /// Which.
        run: RunKey,
        /// What.
        request: Box<Request>,
    },
}

/// What follows from what the receiver said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// The sender learns this.
    Carried(Carried),
    /// The receiver is not the right one any more: look again.
    Again,
}

/// Looks for a letter's receiver. `mint` makes what a new run is known by.
///
/// # Errors
/// [`store::Error`] of a read: to be carried later.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "few events ask for a letter"
)]
pub fn step(
    store: &dyn Store,
    letter: &Letter,
    mint: impl FnOnce() -> Minted,
    now: Timestamp,
) -> Result<Step, store::Error> {
    let seq = letter.key.seq;
    match &letter.content {
        Content::Outcome(close) => to_parent(store, letter, close),
        Content::ParentClosed(ward) => to_child_of_closed(store, letter, ward),
        Content::Command(command) => match &**command {
            EventKind::StartChildWorkflowExecutionInitiated { .. } => {
                start(store, letter, command, mint, now)
            }
            EventKind::SignalExternalWorkflowExecutionInitiated {
                target,
                name,
                input,
                ..
            } => {
                let request = Request::Signal {
                    name: name.clone(),
                    input: input.clone(),
                    request_id: request_id(letter),
                    identity: identity(letter),
                };
                let answer = |result| Answer::Signaled { seq, result };
                message(store, letter, target, request, answer)
            }
            EventKind::RequestCancelExternalWorkflowExecutionInitiated {
                target,
                reason,
                of_child,
                ..
            } => {
                let of_child = of_child.is_some();
                let answer = |result| Answer::CancelRequested {
                    seq,
                    of_child,
                    result,
                };
                let request = cancel(letter, reason.clone());
                message(store, letter, target, request, answer)
            }
            // No other event asks for a letter.
            _ => Ok(Step::Answer(None)),
        },
    }
}

/// What the sender learns from the receiver's answer. `began` is the run that was to begin.
#[must_use]
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "most rejections mean that the receiver has ended"
)]
pub fn said<T>(letter: &Letter, began: Option<RunId>, result: &Result<T, CallError>) -> Said {
    let answered = |answer: Option<Answer>| Said::Carried(Carried::Answered(answer.map(Box::new)));
    let seq = letter.key.seq;
    match result {
        Ok(_) => answered(match letter.key.kind {
            LetterKind::StartChild => began.map(|run_id| Answer::ChildStarted {
                seq,
                result: Ok(run_id),
            }),
            LetterKind::Signal => Some(Answer::Signaled {
                seq,
                result: Ok(()),
            }),
            LetterKind::Cancel | LetterKind::CancelChild => Some(Answer::CancelRequested {
                seq,
                of_child: letter.key.kind == LetterKind::CancelChild,
                result: Ok(()),
            }),
            LetterKind::Outcome | LetterKind::ParentClosed | LetterKind::ChainClosed => None,
        }),
        Err(CallError::Rejected(rejection)) => match rejection {
            Rejection::TooManySignals => answered(Some(Answer::Signaled {
                seq,
                result: Err(Undeliverable {
                    cause: FailedCause::SignalCountLimitExceeded,
                    message: rejection.to_string(),
                }),
            })),
            // It has ended meanwhile: perhaps another run follows it.
            _ => Said::Again,
        },
        // Somebody else took the workflow id, or the run was never there.
        Err(CallError::Conflict(_) | CallError::NoSuchRun(_)) => Said::Again,
        Err(CallError::Unavailable(_)) => Said::Carried(Carried::Later),
    }
}

fn request_id(letter: &Letter) -> RequestId {
    let text = format!("{}/{}", letter.sender.run_id, letter.key.seq);
    // A run id and a number are far shorter than the limit.
    RequestId::new(text).unwrap_or_else(|_| letter.sender.request_id.clone())
}

fn identity(letter: &Letter) -> String {
    format!("workflow {}", letter.sender.workflow_id)
}

fn cancel(letter: &Letter, reason: String) -> Request {
    Request::Cancel {
        reason,
        identity: identity(letter),
        request_id: request_id(letter),
    }
}

/// The first run of the chain that a run belongs to.
fn first_run(started: &Started) -> RunId {
    started.link.first_run_id.unwrap_or(started.run_id)
}

/// The first event of a run; `None`: there is no such run.
fn started(store: &dyn Store, run: RunKey) -> Result<Option<Box<Started>>, store::Error> {
    let first = read_history(store, run, EventNumber::FIRST)?;
    Ok(first.into_iter().next().and_then(|event| {
        if let EventKind::WorkflowExecutionStarted { started } = event.kind {
            Some(started)
        } else {
            None
        }
    }))
}

/// True if a run is the child that this command of the sender started, or follows it.
fn is_child(started: &Started, sender: &Started, seq: Option<Seq>) -> bool {
    started.parent.as_ref().is_some_and(|parent| {
        let is_seq = seq.is_none_or(|seq| seq == parent.seq && parent.run_id == sender.run_id);
        is_seq && parent.first_run_id == first_run(sender)
    })
}

fn current(
    store: &dyn Store,
    namespace: &Namespace,
    workflow_id: &WorkflowId,
) -> Result<Option<(ExecutionRecord, Box<Started>)>, store::Error> {
    let Some(run) = store.current_run(namespace, workflow_id)? else {
        return Ok(None);
    };
    let record = store.execution(run)?;
    Ok(record.zip(started(store, run)?))
}

/// Starts a child, unless it was started before or its name is taken.
fn start(
    store: &dyn Store,
    letter: &Letter,
    command: &EventKind,
    mint: impl FnOnce() -> Minted,
    now: Timestamp,
) -> Result<Step, store::Error> {
    let EventKind::StartChildWorkflowExecutionInitiated {
        seq,
        workflow_type,
        input,
        options,
    } = command
    else {
        return Ok(Step::Answer(None));
    };
    let answer = |result| {
        let seq = *seq;
        Ok(Step::Answer(Some(Box::new(Answer::ChildStarted {
            seq,
            result,
        }))))
    };
    let refuse = |cause, message: String| answer(Err(Undeliverable { cause, message }));
    if let Some(refusal) = other_namespace(&options.namespace) {
        return answer(Err(refusal));
    }
    if letter.is_again
        && let Some(first) = started_before(store, letter, options)?
    {
        return answer(Ok(first));
    }
    let replaces = match current(store, &options.namespace, &options.workflow_id)? {
        None => None,
        Some((record, _))
            if record.status.is_closed() && options.id_reuse.allows(record.status) =>
        {
            Some(record.run)
        }
        Some((record, _)) => {
            let (id, run, how) = (&record.workflow_id, record.run_id, record.status.name());
            let message = format!("the workflow id {id} is taken by run {run}, which is {how}");
            return refuse(FailedCause::WorkflowAlreadyExists, message);
        }
    };
    let Some(component) = store.route(&options.namespace, workflow_type)? else {
        let message = format!("no component has the workflow type {workflow_type}: deploy one");
        return refuse(FailedCause::WorkflowTypeNotFound, message);
    };
    let (chain, link) = match child_link(options, now) {
        Ok(link) => link,
        Err(message) => return refuse(FailedCause::InvalidArgument, message),
    };
    let minted = mint();
    let started = Started {
        namespace: options.namespace.clone(),
        workflow_id: options.workflow_id.clone(),
        run_id: minted.run_id,
        workflow_type: workflow_type.clone(),
        component,
        task_queue: options.task_queue.clone(),
        input: input.clone(),
        random_seed: minted.random_seed,
        request_id: request_id(letter),
        identity: identity(letter),
        attempt: 1,
        options: chain,
        link,
        parent: Some(Box::new(parent(&letter.sender, *seq))),
    };
    Ok(Step::Start(Box::new(NewRun {
        record: record(minted.run, &started, now),
        events: first_events(started, Vec::new(), None, now),
        replaces,
        first: None,
    })))
}

fn parent(sender: &Started, seq: Seq) -> Parent {
    let (root_workflow_id, root_run_id) = match &sender.parent {
        Some(parent) => (parent.root_workflow_id.clone(), parent.root_run_id),
        None => (sender.workflow_id.clone(), first_run(sender)),
    };
    Parent {
        namespace: sender.namespace.clone(),
        workflow_id: sender.workflow_id.clone(),
        run_id: sender.run_id,
        first_run_id: first_run(sender),
        seq,
        root_workflow_id,
        root_run_id,
    }
}

/// The first run of a child that this very command started before.
fn started_before(
    store: &dyn Store,
    letter: &Letter,
    options: &ChildOptions,
) -> Result<Option<RunId>, store::Error> {
    let runs = store.list(&ListQuery {
        namespace: options.namespace.clone(),
        status: None,
        workflow_type: None,
        workflow_id: Some(options.workflow_id.clone()),
        blocked: false,
        before: None,
        limit: RUNS_SEARCHED,
    })?;
    for record in runs {
        let seq = Some(letter.key.seq);
        if let Some(started) = started(store, record.run)?
            && is_child(&started, &letter.sender, seq)
        {
            return Ok(Some(first_run(&started)));
        }
    }
    Ok(None)
}

/// Why a message to another namespace is not delivered; `None` for the only one there is.
fn other_namespace(namespace: &Namespace) -> Option<Undeliverable> {
    (namespace.as_str() != DEFAULT_NAMESPACE).then(|| Undeliverable {
        cause: FailedCause::NamespaceNotFound,
        message: format!(
            "there is no namespace {namespace}: {DEFAULT_NAMESPACE} is the only one of this host"
        ),
    })
}

/// A signal or a cancel request to another execution.
fn message(
    store: &dyn Store,
    letter: &Letter,
    target: &ExternalTarget,
    request: Request,
    answer: impl Fn(Result<(), Undeliverable>) -> Answer,
) -> Result<Step, store::Error> {
    let refuse = |undeliverable| Ok(Step::Answer(Some(Box::new(answer(Err(undeliverable))))));
    if let Some(undeliverable) = other_namespace(&target.namespace) {
        return refuse(undeliverable);
    }
    if letter.is_again && was_delivered(store, letter, target)? {
        return Ok(Step::Answer(Some(Box::new(answer(Ok(()))))));
    }
    let of_child = letter.key.kind == LetterKind::CancelChild;
    let run = match &target.run_id {
        // A child is one child over all its runs.
        Some(run_id) if !of_child => Some(run_id.key()),
        Some(_) | None => store.current_run(&target.namespace, &target.workflow_id)?,
    };
    let record = match run {
        Some(run) => store.execution(run)?,
        None => None,
    };
    let record = record.filter(|record| {
        let is_run = target.run_id.is_none_or(|run_id| run_id == record.run_id);
        record.workflow_id == target.workflow_id && (of_child || is_run)
    });
    let id = &target.workflow_id;
    let missing = |message| Undeliverable {
        cause: FailedCause::ExternalWorkflowExecutionNotFound,
        message,
    };
    let Some(record) = record else {
        return refuse(missing(format!("there is no workflow execution {id}")));
    };
    if target.child_only {
        let seq = of_child.then_some(letter.key.seq);
        let started = started(store, record.run)?;
        if !started.is_some_and(|started| is_child(&started, &letter.sender, seq)) {
            let text = format!("the workflow execution {id} is not a child of the sender");
            return refuse(missing(text));
        }
    }
    if record.status.is_closed() {
        let how = record.status.name();
        let text = format!("the workflow execution {id} has already {how}");
        return refuse(missing(text));
    }
    Ok(Step::Give {
        run: record.run,
        request: Box::new(request),
    })
}

/// True if a run has had this message: it may have ended since, and would be missed.
fn was_delivered(
    store: &dyn Store,
    letter: &Letter,
    target: &ExternalTarget,
) -> Result<bool, store::Error> {
    let own = request_id(letter);
    let runs = store.list(&ListQuery {
        namespace: target.namespace.clone(),
        status: None,
        workflow_type: None,
        workflow_id: Some(target.workflow_id.clone()),
        blocked: false,
        before: None,
        limit: RUNS_READ,
    })?;
    let has_it = |event: &Event| {
        if let EventKind::WorkflowExecutionSignaled { request_id, .. }
        | EventKind::WorkflowExecutionCancelRequested { request_id, .. } = &event.kind
        {
            *request_id == own
        } else if let EventKind::WorkflowExecutionStarted { started } = &event.kind {
            started.link.signal_ids.contains(&own)
        } else {
            false
        }
    };
    for record in runs {
        let history = read_history(store, record.run, EventNumber(u64::MAX))?;
        if history.iter().any(has_it) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A child tells its parent how it ended. A parent that has ended is not told.
fn to_parent(store: &dyn Store, letter: &Letter, close: &EventKind) -> Result<Step, store::Error> {
    let Some((parent, outcome)) = letter.sender.parent.as_deref().zip(outcome(close)) else {
        return Ok(Step::Answer(None));
    };
    let record = store.execution(parent.run_id.key())?;
    let is_open =
        |record: &ExecutionRecord| record.run_id == parent.run_id && !record.status.is_closed();
    Ok(match record.filter(is_open) {
        None => Step::Answer(None),
        Some(record) => Step::Give {
            run: record.run,
            request: Box::new(Request::Answer(Answer::ChildClosed {
                seq: parent.seq,
                run_id: first_run(&letter.sender),
                outcome,
            })),
        },
    })
}

/// A parent, or its chain, has ended: its child, and nobody else of that name, is treated as agreed.
fn to_child_of_closed(
    store: &dyn Store,
    letter: &Letter,
    ward: &Ward,
) -> Result<Step, store::Error> {
    // A run that ends takes its own starts back; those of runs before it may be on their way.
    if letter.key.kind == LetterKind::ChainClosed && is_starting(store, ward)? {
        return Ok(Step::Later);
    }
    let Some(run) = open_run(store, ward)? else {
        return Ok(Step::Answer(None));
    };
    let reason = format!("the parent {} has ended", letter.sender.workflow_id);
    let request = match ward.parent_close_policy {
        ParentClosePolicy::Abandon => return Ok(Step::Answer(None)),
        ParentClosePolicy::RequestCancel => cancel(letter, reason),
        ParentClosePolicy::Terminate => Request::Terminate {
            reason,
            identity: identity(letter),
        },
    };
    let request = Box::new(request);
    Ok(Step::Give { run, request })
}

/// True if the start of a child is on its way.
fn is_starting(store: &dyn Store, ward: &Ward) -> Result<bool, store::Error> {
    let start = LetterKey {
        run: ward.run_id.key(),
        seq: ward.seq,
        kind: LetterKind::StartChild,
    };
    // Numbers of commands begin at 1.
    let before = LetterKey {
        seq: Seq(ward.seq.0.saturating_sub(1)),
        kind: LetterKind::ChainClosed,
        ..start
    };
    Ok(store.letters(Some(before), 1)?.first() == Some(&start))
}

/// The run that a child is in; `None`: it has ended, or never began.
fn open_run(store: &dyn Store, ward: &Ward) -> Result<Option<RunKey>, store::Error> {
    let found = current(store, &ward.namespace, &ward.workflow_id)?;
    let is_it = |(record, started): &(ExecutionRecord, Box<Started>)| {
        let parent = started.parent.as_deref();
        let is_ward = |parent: &Parent| parent.run_id == ward.run_id && parent.seq == ward.seq;
        !record.status.is_closed() && parent.is_some_and(is_ward)
    };
    Ok(found.filter(is_it).map(|(record, _)| record.run))
}

/// The places of children that have ended; one that cannot be read now may go on.
pub(crate) fn ended_wards(store: &dyn Store, wards: &[Ward]) -> BTreeSet<usize> {
    // The letter first, then the child: a start that is answered between the two is seen.
    let is_over = |ward: &Ward| {
        matches!(is_starting(store, ward), Ok(false)) && matches!(open_run(store, ward), Ok(None))
    };
    let ended = wards.iter().enumerate().filter(|(_, ward)| is_over(ward));
    ended.map(|(place, _)| place).collect()
}
