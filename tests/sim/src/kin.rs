//! Parents that are children themselves, continue as new and leave children behind, and the laws
//! about the ends of parents and about messages.

use std::collections::BTreeMap;

use steadfast_model::child::{ParentClosePolicy, ParentCloseScope};
use steadfast_model::event::Started;
use steadfast_model::{ChildOptions, Event, EventKind, RequestId, RunId, RunKey, Seq, Timestamp};
use steadfast_ports::fake::{Op, Rng};
use steadfast_ports::guest::ChildCallOptions;

type Setting = (&'static str, &'static str);

const RUN: Setting = ("parent-close-scope", "run");
const CHAIN: Setting = ("parent-close-scope", "chain");
const TERMINATE: Setting = ("parent-close-policy", "terminate");
const REQUEST: Setting = ("parent-close-policy", "request-cancel");
const ABANDON: Setting = ("parent-close-policy", "abandon");
const SHARED: Setting = ("workflow-id", "shared");

/// The workflow types of parents that are children, and of the child that never ends by itself.
#[must_use]
pub fn kin() -> Vec<(&'static str, Vec<Op>)> {
    let mut kin = vec![
        ("kid-waits", vec![Op::WaitCancel, Op::AcceptCancel]),
        (
            "kin-0",
            vec![
                start("kid-waits", &[TERMINATE, RUN]),
                Op::activity("act", "\"kin\""),
                start("kid-waits", &[REQUEST, CHAIN]),
                Op::ContinueAsNew,
                Op::Complete,
            ],
        ),
        (
            "kin-1",
            vec![
                start("kid-waits", &[TERMINATE, CHAIN]),
                signal("wf-0"),
                Op::Child("kid-chain".to_owned(), "1".to_owned(), with(&[])),
                signal("wf-1"),
                start("kid-slow", &[ABANDON]),
                Op::ContinueAsNew,
                Op::Fail("kin".to_owned()),
            ],
        ),
        (
            "kin-2",
            vec![
                start(
                    "kid-waits",
                    &[TERMINATE, CHAIN, ("cancellation-type", "try-cancel")],
                ),
                Op::CancelChild,
                start(
                    "kid-waits",
                    &[REQUEST, RUN, ("cancellation-type", "abandon")],
                ),
                Op::CancelChild,
                Op::ContinueAsNew,
                Op::Complete,
            ],
        ),
    ];
    kin.extend(hasty());
    kin
}

/// Those that are over before anybody has answered, and those that want a name that others want.
fn hasty() -> Vec<(&'static str, Vec<Op>)> {
    vec![
        // Over before anybody has answered.
        (
            "kin-3",
            vec![
                Op::CancelExternal("shared".to_owned()),
                begin("kid-waits", &[TERMINATE, CHAIN]),
                begin("kid-waits", &[REQUEST, RUN]),
                begin("kid", &[ABANDON]),
                Op::ContinueAsNew,
                Op::Complete,
            ],
        ),
        // A child that ends by what it hears, and others of its name to hear it twice.
        (
            "kid-hears",
            vec![Op::WaitSignal("from-a-friend".to_owned()), Op::Complete],
        ),
        (
            "kin-5",
            vec![
                start("kid-hears", &[TERMINATE, RUN, ("workflow-id", "hears")]),
                signal("hears"),
                start("kid-hears", &[TERMINATE, CHAIN, ("workflow-id", "hears")]),
                signal("hears"),
                Op::ContinueAsNew,
                Op::Complete,
            ],
        ),
        // Strangers who want the same name.
        (
            "kin-4",
            vec![
                start("kid-waits", &[TERMINATE, CHAIN, SHARED]),
                Op::Sleep(40),
                start("kid-waits", &[REQUEST, RUN, SHARED]),
                Op::ContinueAsNew,
                Op::Complete,
            ],
        ),
    ]
}

fn signal(id: &str) -> Op {
    let (name, input) = ("from-a-friend".to_owned(), "1".to_owned());
    Op::SignalExternal(id.to_owned(), name, input)
}

fn with(settings: &[(&str, &str)]) -> ChildCallOptions {
    let settings = settings.iter();
    ChildCallOptions {
        settings: settings
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        ..ChildCallOptions::default()
    }
}

fn start(workflow_type: &str, settings: &[(&str, &str)]) -> Op {
    Op::StartChild(workflow_type.to_owned(), "0".to_owned(), with(settings))
}

fn begin(workflow_type: &str, settings: &[(&str, &str)]) -> Op {
    Op::BeginChild(workflow_type.to_owned(), "0".to_owned(), with(settings))
}

/// Puts parents into some of the scripts of some of the seeds. The random numbers are of their own,
/// so that the other seeds do what they always did; the seeds that are kept are among these.
pub fn add_kin(seed: u64, workflow: u64, ops: &mut Vec<Op>) {
    if !Rng::new(seed ^ 0x6b69_7200).chance(600) {
        return;
    }
    let mut rng = Rng::new(seed ^ 0x6b69_6e01 ^ (workflow << 32));
    if !rng.chance(400) {
        return;
    }
    for _ in 0..1 + rng.below(2) {
        let name = format!("kin-{}", rng.below(6));
        let options = ChildCallOptions {
            maximum_attempts: [0, 2][rng.index(2)],
            ..with(&[(
                "parent-close-policy",
                ["terminate", "abandon"][rng.index(2)],
            )])
        };
        let input = rng.below(3).to_string();
        let at = rng.index(ops.len().max(1));
        ops.insert(
            at,
            if rng.chance(500) {
                Op::Child(name, input, options)
            } else {
                Op::StartChild(name, input, options)
            },
        );
    }
}

/// All histories, and who is who in them.
struct Tree<'h> {
    seed: u64,
    /// True if the wall clock never jumped: times of different runs can be compared.
    is_steady: bool,
    histories: &'h BTreeMap<RunKey, Vec<Event>>,
    /// The last run of each chain, by its first.
    last: BTreeMap<RunId, RunKey>,
}

/// A child that its parent asked for, and how.
type Asked<'h> = (&'h ChildOptions, &'h Started);

/// Children end with their parents as agreed, by nobody else's doing, and a message between
/// executions is delivered once or not at all, as its sender learns.
///
/// # Panics
/// When a law is broken.
pub fn check_kin(seed: u64, is_steady: bool, histories: &BTreeMap<RunKey, Vec<Event>>) {
    let last = histories.iter().filter_map(|(key, history)| {
        let started = started(history)?;
        Some((first_run(started), *key))
    });
    let tree = Tree {
        seed,
        is_steady,
        histories,
        last: last.collect(),
    };
    let mut asked: BTreeMap<(RunId, Seq), Asked<'_>> = BTreeMap::new();
    let mut received: BTreeMap<&RequestId, Vec<RunId>> = BTreeMap::new();
    for history in histories.values() {
        let Some(started) = started(history) else {
            continue;
        };
        for event in history {
            if let EventKind::StartChildWorkflowExecutionInitiated { seq, options, .. } =
                &event.kind
            {
                asked.insert((started.run_id, *seq), (options, started));
            } else if let EventKind::WorkflowExecutionSignaled { request_id, .. } = &event.kind {
                received
                    .entry(request_id)
                    .or_default()
                    .push(first_run(started));
            }
        }
    }
    for history in histories.values() {
        tree.check_ends(history, &asked);
        tree.check_signals(history, &received);
    }
}

fn started(history: &[Event]) -> Option<&Started> {
    match &history.first()?.kind {
        EventKind::WorkflowExecutionStarted { started } => Some(started),
        _ => None,
    }
}

fn first_run(started: &Started) -> RunId {
    started.link.first_run_id.unwrap_or(started.run_id)
}

impl Tree<'_> {
    /// When a parent ended, as the scope of its child has it.
    fn end_of(&self, parent: &Started, scope: ParentCloseScope) -> Option<Timestamp> {
        let run = match scope {
            ParentCloseScope::Run => parent.run_id.key(),
            ParentCloseScope::Chain => *self.last.get(&first_run(parent))?,
        };
        let close = self.histories.get(&run)?.last()?;
        close.kind.is_close().then_some(close.time)
    }

    /// What was done to a child because its parent ended.
    fn check_ends(&self, history: &[Event], asked: &BTreeMap<(RunId, Seq), Asked<'_>>) {
        let seed = self.seed;
        let Some(parent) = started(history).and_then(|run| run.parent.as_deref()) else {
            return;
        };
        let place = (parent.run_id, parent.seq);
        let (options, sender) = asked
            .get(&place)
            .unwrap_or_else(|| panic!("seed {seed}: a child that nobody asked for: {place:?}"));
        let ended = format!("the parent {} has ended", parent.workflow_id);
        for event in history {
            let policy = match &event.kind {
                EventKind::WorkflowExecutionTerminated { reason, .. } => {
                    assert_eq!(*reason, ended, "seed {seed}: by a stranger: {event:?}");
                    ParentClosePolicy::Terminate
                }
                EventKind::WorkflowExecutionCancelRequested { reason, .. }
                    if reason.starts_with("the parent ") =>
                {
                    assert_eq!(*reason, ended, "seed {seed}: by a stranger: {event:?}");
                    ParentClosePolicy::RequestCancel
                }
                _ => continue,
            };
            assert_eq!(
                options.parent_close_policy, policy,
                "seed {seed}: against the policy: {event:?}"
            );
            let end = self.end_of(sender, options.parent_close_scope);
            let is_late = end.is_some_and(|end| !self.is_steady || end <= event.time);
            assert!(is_late, "seed {seed}: before the end {end:?}: {event:?}");
        }
    }

    /// What became of the signals that a run sent.
    fn check_signals(&self, history: &[Event], received: &BTreeMap<&RequestId, Vec<RunId>>) {
        let seed = self.seed;
        let Some(sender) = started(history) else {
            return;
        };
        let chains = |seq: Seq| {
            let id = RequestId::new(format!("{}/{seq}", sender.run_id)).expect("a name");
            let mut chains = received.get(&id).cloned().unwrap_or_default();
            // A run that follows is handed what the one before it did not read.
            chains.dedup();
            chains.len()
        };
        for event in history {
            let (seq, least, most) = match &event.kind {
                EventKind::SignalExternalWorkflowExecutionInitiated { seq, .. } => (*seq, 0, 1),
                EventKind::ExternalWorkflowExecutionSignaled { seq } => (*seq, 1, 1),
                EventKind::SignalExternalWorkflowExecutionFailed { seq, .. } => (*seq, 0, 0),
                _ => continue,
            };
            let times = chains(seq);
            assert!(
                (least..=most).contains(&times),
                "seed {seed}: received {times} times: {event:?}"
            );
        }
    }
}
