//! Random events about children and other executions.

use proptest::prelude::*;
use steadfast_model::child::{
    ChildCancellation, ExternalTarget, FailedCause, IdReusePolicy, Parent, ParentClosePolicy,
    ParentCloseScope, Ward,
};
use steadfast_model::{
    ChildOptions, EventKind, Millis, Namespace, RunId, Seq, SignalName, TaskQueue, WorkflowId,
    WorkflowType,
};

use super::{failure, name, payload, retry};

fn workflow_id() -> impl Strategy<Value = WorkflowId> {
    name().prop_map(|name| WorkflowId::new(name).expect("a name"))
}

fn namespace() -> impl Strategy<Value = Namespace> {
    name().prop_map(|name| Namespace::new(name).expect("a name"))
}

fn run_id() -> impl Strategy<Value = RunId> {
    any::<[u8; 16]>().prop_map(RunId::from_bytes)
}

pub(super) fn parent() -> impl Strategy<Value = Parent> {
    let ids = (namespace(), workflow_id(), workflow_id());
    let runs = (run_id(), run_id(), run_id());
    (ids, runs, any::<u32>()).prop_map(|(ids, runs, seq)| Parent {
        namespace: ids.0,
        workflow_id: ids.1,
        run_id: runs.0,
        first_run_id: runs.1,
        seq: Seq(seq),
        root_workflow_id: ids.2,
        root_run_id: runs.2,
    })
}

pub(super) fn ward() -> impl Strategy<Value = Ward> {
    let policy = prop::sample::select(ParentClosePolicy::ALL.to_vec());
    (namespace(), workflow_id(), run_id(), any::<u32>(), policy).prop_map(
        |(namespace, workflow_id, run_id, seq, parent_close_policy)| Ward {
            namespace,
            workflow_id,
            run_id,
            seq: Seq(seq),
            parent_close_policy,
        },
    )
}

fn options() -> impl Strategy<Value = ChildOptions> {
    let limit = || prop::option::of(any::<u64>().prop_map(Millis));
    let names = (namespace(), workflow_id(), name());
    let ways = (
        prop::sample::select(ParentClosePolicy::ALL.to_vec()),
        prop::sample::select(ParentCloseScope::ALL.to_vec()),
        prop::sample::select(ChildCancellation::ALL.to_vec()),
        prop::sample::select(IdReusePolicy::ALL.to_vec()),
    );
    let retry = prop::option::of(retry());
    (names, ways, limit(), limit(), retry, (".*", ".*")).prop_map(
        |(names, ways, execution_timeout, run_timeout, retry, texts)| ChildOptions {
            namespace: names.0,
            workflow_id: names.1,
            task_queue: TaskQueue::new(names.2).expect("a name"),
            parent_close_policy: ways.0,
            parent_close_scope: ways.1,
            cancellation: ways.2,
            id_reuse: ways.3,
            execution_timeout,
            run_timeout,
            retry,
            cron: texts.0,
            summary: texts.1,
        },
    )
}

fn target() -> impl Strategy<Value = Box<ExternalTarget>> {
    let run_id = prop::option::of(run_id());
    (namespace(), workflow_id(), run_id, any::<bool>()).prop_map(
        |(namespace, workflow_id, run_id, child_only)| {
            Box::new(ExternalTarget {
                namespace,
                workflow_id,
                run_id,
                child_only,
            })
        },
    )
}

fn cause() -> impl Strategy<Value = FailedCause> {
    prop::sample::select(vec![
        FailedCause::WorkflowAlreadyExists,
        FailedCause::NamespaceNotFound,
        FailedCause::ExternalWorkflowExecutionNotFound,
        FailedCause::SignalCountLimitExceeded,
        FailedCause::WorkflowTypeNotFound,
        FailedCause::InvalidArgument,
    ])
}

fn seq() -> impl Strategy<Value = Seq> {
    any::<u32>().prop_map(Seq)
}

pub(super) fn event() -> impl Strategy<Value = EventKind> {
    prop_oneof![of_child(), of_message()]
}

fn of_child() -> impl Strategy<Value = EventKind> {
    prop_oneof![
        (seq(), name(), payload(), options()).prop_map(|(seq, name, input, options)| {
            EventKind::StartChildWorkflowExecutionInitiated {
                seq,
                workflow_type: WorkflowType::new(name).expect("a name"),
                input,
                options: Box::new(options),
            }
        }),
        (seq(), cause(), failure()).prop_map(|(seq, cause, failure)| {
            EventKind::StartChildWorkflowExecutionFailed {
                seq,
                cause,
                failure,
            }
        }),
        (seq(), run_id())
            .prop_map(|(seq, run_id)| EventKind::ChildWorkflowExecutionStarted { seq, run_id }),
        (seq(), payload())
            .prop_map(|(seq, result)| EventKind::ChildWorkflowExecutionCompleted { seq, result }),
        (seq(), failure())
            .prop_map(|(seq, failure)| EventKind::ChildWorkflowExecutionFailed { seq, failure }),
        (seq(), failure(), any::<bool>()).prop_map(|(seq, failure, is_left)| {
            EventKind::ChildWorkflowExecutionCanceled {
                seq,
                failure,
                is_left,
            }
        }),
        (seq(), failure())
            .prop_map(|(seq, failure)| EventKind::ChildWorkflowExecutionTimedOut { seq, failure }),
        (seq(), failure()).prop_map(|(seq, failure)| {
            EventKind::ChildWorkflowExecutionTerminated { seq, failure }
        }),
    ]
}

fn of_message() -> impl Strategy<Value = EventKind> {
    let how = prop::option::of(prop::sample::select(ChildCancellation::ALL.to_vec()));
    prop_oneof![
        (seq(), target(), name(), payload()).prop_map(|(seq, target, name, input)| {
            EventKind::SignalExternalWorkflowExecutionInitiated {
                seq,
                target,
                name: SignalName::new(name).expect("a name"),
                input,
            }
        }),
        (seq(), cause(), failure()).prop_map(|(seq, cause, failure)| {
            EventKind::SignalExternalWorkflowExecutionFailed {
                seq,
                cause,
                failure,
            }
        }),
        seq().prop_map(|seq| EventKind::ExternalWorkflowExecutionSignaled { seq }),
        (seq(), target(), ".*", how).prop_map(|(seq, target, reason, of_child)| {
            EventKind::RequestCancelExternalWorkflowExecutionInitiated {
                seq,
                target,
                reason,
                of_child,
            }
        }),
        (seq(), cause(), failure(), any::<bool>()).prop_map(|(seq, cause, failure, of_child)| {
            EventKind::RequestCancelExternalWorkflowExecutionFailed {
                seq,
                cause,
                failure,
                of_child,
            }
        }),
        (seq(), any::<bool>()).prop_map(|(seq, of_child)| {
            EventKind::ExternalWorkflowExecutionCancelRequested { seq, of_child }
        }),
    ]
}
