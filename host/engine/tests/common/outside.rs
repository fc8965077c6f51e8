//! Short ways to write what concerns other executions.

use steadfast_engine::child::Undeliverable;
use steadfast_model::child::{
    ChildCancellation, ExternalTarget, FailedCause, IdReusePolicy, Parent, ParentClosePolicy,
    ParentCloseScope,
};
use steadfast_model::command::Command;
use steadfast_model::{
    ChildOptions, Namespace, Payload, RunId, Seq, SignalName, TaskQueue, WorkflowId, WorkflowType,
};

/// The first run of every child here.
pub const CHILD_RUN: RunId = RunId::from_bytes([3; 16]);

pub fn child_options(id: &str) -> ChildOptions {
    ChildOptions {
        namespace: Namespace::new("default").expect("valid"),
        workflow_id: WorkflowId::new(id).expect("valid"),
        task_queue: TaskQueue::new("default").expect("valid"),
        parent_close_policy: ParentClosePolicy::Terminate,
        parent_close_scope: ParentCloseScope::Run,
        cancellation: ChildCancellation::WaitCancellationCompleted,
        id_reuse: IdReusePolicy::AllowDuplicate,
        execution_timeout: None,
        run_timeout: None,
        retry: None,
        cron: String::new(),
        summary: String::new(),
    }
}

/// A child of the type `part`.
pub fn child(id: &str) -> Command {
    child_with(id, |_| {})
}

pub fn child_with(id: &str, change: impl FnOnce(&mut ChildOptions)) -> Command {
    let mut options = child_options(id);
    change(&mut options);
    Command::StartChild {
        workflow_type: WorkflowType::new("part").expect("valid"),
        input: Payload::json("2"),
        options: Box::new(options),
    }
}

fn target(id: &str) -> Box<ExternalTarget> {
    Box::new(ExternalTarget {
        namespace: Namespace::new("default").expect("valid"),
        workflow_id: WorkflowId::new(id).expect("valid"),
        run_id: None,
        child_only: false,
    })
}

pub fn signal_to(id: &str, name: &str) -> Command {
    Command::SignalExternal {
        target: target(id),
        name: SignalName::new(name).expect("valid"),
        input: Payload::json("4"),
    }
}

pub fn cancel_to(id: &str) -> Command {
    Command::RequestCancelExternal {
        target: target(id),
        reason: "enough".into(),
    }
}

pub fn taken() -> Undeliverable {
    Undeliverable {
        cause: FailedCause::WorkflowAlreadyExists,
        message: "the name is taken".into(),
    }
}

pub fn parent() -> Parent {
    let run_id = RunId::from_bytes([2; 16]);
    Parent {
        namespace: Namespace::new("default").expect("valid"),
        workflow_id: WorkflowId::new("parent").expect("valid"),
        run_id,
        first_run_id: run_id,
        seq: Seq(4),
        root_workflow_id: WorkflowId::new("parent").expect("valid"),
        root_run_id: run_id,
    }
}
