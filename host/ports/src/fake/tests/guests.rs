//! Tests of the fakes themselves.

use std::any::Any;
use std::sync::Arc;

use steadfast_model::chain::Fields;
use steadfast_model::command::{LogLevel, Step};
use steadfast_model::{
    ChainOptions, Event, EventKind, EventNumber, Failure, Link, Millis, Payload, RequestId, RunId,
    RunKey, Seq, SignalName, Timestamp,
};

use crate::fake::{Op, ScriptedGuests};
use crate::guest::{
    ActivityCall, ChildCall, Error, Guest, Guests, HostCalls, Refusal, RunInfo, Stop, TargetCall,
};

/// Numbers the calls and writes them down.
struct Calls {
    next: u32,
    now: u64,
    made: Vec<String>,
    info: RunInfo,
}

impl Calls {
    fn new() -> Box<Self> {
        let info = RunInfo {
            namespace: "ns".to_owned(),
            workflow_id: "w".to_owned(),
            run_id: RunId::new(RunKey(1), [0; 8]),
            workflow_type: "t".to_owned(),
            task_queue: "q".to_owned(),
            attempt: 1,
            started: Timestamp(0),
            options: ChainOptions::default(),
            link: Link::default(),
        };
        Box::new(Self {
            next: 0,
            now: 100,
            made: Vec::new(),
            info,
        })
    }

    fn seq(&mut self) -> Seq {
        self.next += 1;
        Seq(self.next)
    }
}

impl HostCalls for Calls {
    fn schedule_activity(&mut self, call: ActivityCall<'_>) -> Result<Seq, Stop> {
        let input = String::from_utf8_lossy(call.input);
        self.made.push(format!("{}({input})", call.activity_type));
        Ok(self.seq())
    }

    fn cancel_activity(&mut self, seq: Seq) -> Result<(), Stop> {
        self.made.push(format!("cancel activity {seq}"));
        Ok(())
    }

    fn start_timer(&mut self, duration: Millis) -> Result<Seq, Stop> {
        self.made.push(format!("timer {duration}"));
        Ok(self.seq())
    }

    fn cancel_timer(&mut self, seq: Seq) -> Result<(), Stop> {
        self.made.push(format!("cancel timer {seq}"));
        Ok(())
    }

    fn patched(&mut self, id: &str) -> Result<bool, Stop> {
        self.made.push(format!("patched {id}"));
        Ok(true)
    }

    fn deprecate_patch(&mut self, id: &str) -> Result<(), Stop> {
        self.made.push(format!("deprecate {id}"));
        Ok(())
    }

    fn side_effect(&mut self, name: &str, value: Payload) -> Result<Payload, Stop> {
        self.made.push(format!("side effect {name}"));
        Ok(value)
    }

    fn complete_update(
        &mut self,
        update_id: &str,
        outcome: Result<Payload, Failure>,
    ) -> Result<(), Stop> {
        let outcome = match outcome {
            Ok(result) => String::from_utf8_lossy(&result.data).into_owned(),
            Err(failure) => format!("failed:{failure}"),
        };
        self.made.push(format!("complete {update_id}: {outcome}"));
        Ok(())
    }

    fn upsert_memo(&mut self, memo: Fields) -> Result<(), Stop> {
        let names: Vec<_> = memo.keys().map(String::as_str).collect();
        self.made.push(format!("memo {}", names.join(",")));
        Ok(())
    }

    fn is_continue_as_new_suggested(&self, event: EventNumber) -> bool {
        event.0 >= 10
    }

    fn start_child(&mut self, call: ChildCall<'_>) -> Result<Seq, Stop> {
        let input = String::from_utf8_lossy(call.input);
        self.made
            .push(format!("child {}({input})", call.workflow_type));
        let seq = self.seq();
        self.seq();
        Ok(seq)
    }

    fn cancel_child(&mut self, seq: Seq, reason: &str) -> Result<(), Stop> {
        self.made.push(format!("cancel child {seq} ({reason})"));
        Ok(())
    }

    fn signal_external(
        &mut self,
        target: TargetCall<'_>,
        name: &str,
        input: &[u8],
        _: &str,
    ) -> Result<Seq, Stop> {
        let input = String::from_utf8_lossy(input);
        let id = target.workflow_id;
        self.made.push(format!("signal {id} {name}({input})"));
        Ok(self.seq())
    }

    fn cancel_external(&mut self, target: TargetCall<'_>, reason: &str) -> Result<Seq, Stop> {
        let id = target.workflow_id;
        self.made.push(format!("cancel {id} ({reason})"));
        Ok(self.seq())
    }

    fn now(&mut self) -> Timestamp {
        Timestamp(self.now)
    }

    fn random(&mut self, bytes: &mut [u8]) {
        bytes.fill(0xab);
    }

    fn log(&mut self, _: LogLevel, message: &str) {
        self.made.push(format!("log {message}"));
    }

    fn info(&self) -> &RunInfo {
        &self.info
    }

    fn history_length(&self) -> u64 {
        0
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

fn done(seq: u32, result: &str) -> EventKind {
    EventKind::ActivityTaskCompleted {
        seq: Seq(seq),
        result: Payload::json(result),
        attempt: 1,
        worker: String::new(),
        started_at: Timestamp(0),
    }
}

fn signal(name: &str, text: &str) -> EventKind {
    EventKind::WorkflowExecutionSignaled {
        name: SignalName::new(name).unwrap(),
        input: Payload::json(text),
        request_id: RequestId::new("r").unwrap(),
        identity: String::new(),
    }
}

/// Runs a script over events, one at a time, and returns how it ended and the calls it made.
fn run(script: Vec<Op>, events: Vec<EventKind>) -> (Result<Step, Error>, Vec<String>) {
    let guests = ScriptedGuests::new();
    let digest = guests.bind(b"component", "t", script);
    guests.admit(b"component").unwrap();
    let mut guest = guests.instantiate(digest, &|| Ok(None)).unwrap();
    let (mut step, mut calls) = guest.start("t", &Payload::json("in"), Calls::new());
    for (number, kind) in (2..).zip(events) {
        assert_eq!(step, Ok(Step::Blocked), "before event {number}");
        let event = Event {
            number: EventNumber(number),
            time: Timestamp(91 + number),
            kind,
        };
        (step, calls) = guest.resume(&[event], calls);
    }
    let made = calls.as_any().downcast_ref::<Calls>().unwrap().made.clone();
    assert!(guest.memory_bytes() > 0);
    (step, made)
}

fn completed(json: &str) -> Result<Step, Error> {
    Ok(Step::Completed(Payload::json(json)))
}

#[test]
fn activities_timers_and_signals_are_observed_in_order() {
    let script = vec![
        Op::Log("hello".to_owned()),
        Op::activity("a", "x\"y"),
        Op::Parallel {
            activity_type: "p".to_owned(),
            count: 3,
        },
        Op::Sleep(50),
        Op::StartTimerAndCancel(70),
        Op::WaitSignal("go".to_owned()),
        Op::Random("r".to_owned()),
        Op::Now("n".to_owned()),
        Op::Complete,
    ];
    let events = vec![
        signal("other", "ignored"),
        done(1, "one"),
        done(4, "p2"),
        signal("go", "went"),
        done(2, "p0"),
        done(3, "p1"),
        EventKind::TimerFired { seq: Seq(5) },
        done(7, "r"),
        done(8, "n"),
    ];
    let (step, made) = run(script, events);
    let observed = r#"["in","one","p0","p1","p2","fired","went","abababababababab","r","100","n"]"#;
    assert_eq!(step, completed(observed));
    let expected = [
        "log hello",
        r#"a("x\"y")"#,
        r#"p("0")"#,
        r#"p("1")"#,
        r#"p("2")"#,
        "timer 50 ms",
        "timer 70 ms",
        "cancel timer 6",
        r#"r("abababababababab")"#,
        r#"n("100")"#,
    ];
    assert_eq!(made, expected);
}

#[test]
fn the_first_of_a_race_wins_and_the_other_is_cancelled() {
    let race = || {
        let (activity_type, input) = ("a".to_owned(), String::new());
        vec![
            Op::RaceTimerActivity {
                timer_ms: 9,
                activity_type,
                input,
            },
            Op::Sleep(1),
        ]
    };
    let fired = |seq| EventKind::TimerFired { seq: Seq(seq) };
    let canceled = EventKind::ActivityTaskCanceled {
        seq: Seq(1),
        failure: Failure::canceled(""),
    };
    let (step, made) = run(race(), vec![fired(2), canceled, fired(3)]);
    assert_eq!(step, completed(r#"["in","timer","fired"]"#));
    assert_eq!(made[2], "cancel activity 1");
    let (step, made) = run(race(), vec![done(1, "r"), fired(3)]);
    assert_eq!(step, completed(r#"["in","activity:r","fired"]"#));
    assert_eq!(made[2], "cancel timer 2");
}

#[test]
fn failures_cancellation_and_traps_end_a_script() {
    let cancel = || EventKind::WorkflowExecutionCancelRequested {
        reason: "enough".to_owned(),
        identity: String::new(),
        request_id: RequestId::new("r").unwrap(),
    };
    let (step, _) = run(vec![Op::WaitCancel, Op::AcceptCancel], vec![cancel()]);
    assert_eq!(
        step,
        Ok(Step::Canceled(Failure::canceled(
            r#"["in","cancel:enough"]"#
        )))
    );
    let (step, _) = run(vec![Op::Fail("bad".to_owned())], vec![]);
    assert_eq!(
        step,
        Ok(Step::Failed(Failure::application("bad", r#"["in"]"#)))
    );
    let (step, _) = run(vec![Op::Trap("boom".to_owned())], vec![]);
    assert!(matches!(step, Err(Error::Trap { message, .. }) if message == "boom"));
    let failed = EventKind::ActivityTaskFailed {
        seq: Seq(1),
        failure: Failure::application("e", "no"),
        attempt: 1,
        worker: String::new(),
        retry_state: steadfast_model::RetryState::NonRetryableFailure,
    };
    let (step, _) = run(vec![Op::activity("a", "")], vec![failed]);
    assert_eq!(step, completed(r#"["in","failed:no"]"#));
}

#[test]
fn events_that_do_not_fit_are_noticed() {
    let (step, _) = run(vec![Op::Sleep(1)], vec![done(9, "")]);
    assert_eq!(step, Ok(Step::UnknownOperation(Seq(9))));
    let not_for_guests = EventKind::TimerCanceled { seq: Seq(1) };
    let (step, _) = run(vec![Op::Sleep(1)], vec![not_for_guests]);
    assert!(
        matches!(step, Err(Error::Stopped(Stop::Invalid(_)))),
        "{step:?}"
    );
}

#[test]
fn components_are_found_by_their_digest() {
    let guests = ScriptedGuests::new();
    guests.register("shared", vec![]);
    let one = guests.bind(b"one", "t", vec![Op::Sleep(1)]);
    let two = guests.bind(b"two", "t", vec![]);
    assert_ne!(one, two);
    assert_eq!(
        guests.admit(b""),
        Err(Refusal::NotAComponent("there are no bytes".to_owned()))
    );
    let admitted = guests.admit(b"one").unwrap();
    assert_eq!(admitted.digest, one);
    let types: Vec<_> = admitted
        .description
        .workflows
        .iter()
        .map(|w| w.name.as_str())
        .collect();
    assert_eq!(types, ["shared", "t"]);
    let start = |guest: &mut Box<dyn Guest>, workflow_type| {
        guest
            .start(workflow_type, &Payload::default(), Calls::new())
            .0
    };
    let mut guest = guests.instantiate(one, &|| Ok(None)).unwrap();
    assert_eq!(start(&mut guest, "t"), Ok(Step::Blocked));
    let mut guest = guests.instantiate(one, &|| Ok(None)).unwrap();
    assert!(matches!(
        start(&mut guest, "missing"),
        Err(Error::Unavailable(_))
    ));
    guests.clear_cache();
    assert!(
        guests.instantiate(one, &|| Ok(None)).is_err(),
        "there is no such component"
    );
    assert!(
        guests
            .instantiate(one, &|| Ok(Some(b"two".to_vec())))
            .is_err(),
        "another one"
    );
    assert!(guests.instantiate(one, &|| Err("disk".to_owned())).is_err());
    assert!(
        guests
            .instantiate(one, &|| Ok(Some(b"one".to_vec())))
            .is_ok()
    );
    assert!(
        guests.instantiate(one, &|| Ok(None)).is_ok(),
        "it is compiled now"
    );
    let shared: Arc<dyn Guests> = Arc::new(guests);
    assert!(
        shared
            .instantiate(two, &|| Ok(Some(b"two".to_vec())))
            .is_ok()
    );
}
