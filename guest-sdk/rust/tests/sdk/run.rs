//! A run as a whole: batches, time, randomness, replay, what the host gets wrong.

use std::time::Duration;

use steadfast_sdk::testing::{Event, Step, TestRun};
use steadfast_sdk::{Context, Failure, Payload, info, workflow};

use crate::calls;

#[workflow]
async fn busy(ctx: Context) -> Result<String, Failure> {
    let uuid = ctx.uuid();
    let started = ctx.now();
    let first = ctx
        .activity::<u32>("first", &ctx.random_range(1..=6))
        .start();
    ctx.sleep(Duration::from_millis(20)).await;
    // In the middle of a batch the host is further on.
    let length = ctx.history_length();
    let second: u32 = ctx.activity("second", &first.await?).await?;
    info!("second is {second}");
    Ok(format!(
        "{uuid} {second} {} {:?} {length}",
        ctx.random::<bool>(),
        ctx.now() - started
    ))
}

fn ok(operation: u32, json: &str) -> Event {
    let payload = Payload {
        encoding: String::new(),
        data: json.as_bytes().to_vec(),
    };
    Event::Resolved(operation, Ok(payload))
}

#[test]
fn same_events_give_the_same_calls_in_any_batches() {
    let events = [
        ok(2, ""),
        ok(1, "4"),
        ok(3, "5"),
        Event::CancelRequested(String::new()),
    ];
    let mut one_by_one = TestRun::start::<busy>(&());
    for event in events.clone() {
        one_by_one.deliver(vec![event]);
    }
    let (step, log) = (one_by_one.step().clone(), calls(&one_by_one));
    let mut at_once = TestRun::start::<busy>(&());
    // The last event comes after the end and is ignored.
    at_once.deliver(events.to_vec());
    assert_eq!(*at_once.step(), step);
    assert_eq!(calls(&at_once), log);
    assert!(matches!(step, Step::Completed(_)));
    assert_eq!(log[..3], ["random(16)", "random(8)", "first#1"]);
}

#[test]
fn uuid_has_version_and_variant() {
    #[workflow]
    async fn uuid(ctx: Context) -> Result<String, Failure> {
        Ok(ctx.uuid())
    }
    let text = TestRun::start::<uuid>(&()).output::<String>().unwrap();
    assert_eq!(text.len(), 36);
    assert_eq!(text.as_bytes()[14], b'4', "{text}");
    assert!(
        matches!(text.as_bytes()[19], b'8' | b'9' | b'a' | b'b'),
        "{text}"
    );
    assert_eq!(text.matches('-').count(), 4);
}

#[workflow]
async fn clocked(ctx: Context) -> Result<Vec<u64>, Failure> {
    let mut times = vec![ctx.now().as_millis()];
    for _ in 0..2 {
        ctx.sleep_until(ctx.now() + Duration::from_millis(30)).await;
        times.push(ctx.now().as_millis());
    }
    Ok(times)
}

#[test]
fn time_is_that_of_the_event() {
    let mut run = TestRun::start::<clocked>(&());
    let start = run.now().as_millis();
    run.advance(Duration::from_millis(31));
    run.fire(1);
    run.advance(Duration::from_millis(33));
    run.fire(2);
    assert_eq!(run.output(), Some(vec![start, start + 31, start + 64]));
    assert_eq!(calls(&run), ["timer#1(30)", "timer#2(30)"]);
}

#[test]
fn event_for_an_operation_never_started_is_reported() {
    let mut run = TestRun::start::<clocked>(&());
    assert_eq!(*run.fire(2), Step::UnknownOperation(2));
}

#[test]
fn input_that_does_not_decode_fails_the_run() {
    #[workflow]
    async fn typed(_ctx: Context, _input: u32) -> Result<(), Failure> {
        Ok(())
    }
    let run = TestRun::start::<typed>("text");
    let Step::Failed(failure) = run.step() else {
        panic!()
    };
    assert_eq!(failure.code(), "invalid-input");
    assert_eq!(failure.root_cause().code, "decode");
    assert!(failure.is_non_retryable());
}

#[test]
fn any_error_ends_a_run() {
    #[workflow]
    async fn parsing(_ctx: Context, text: String) -> Result<u32, std::num::ParseIntError> {
        text.parse()
    }
    let run = TestRun::start::<parsing>("x");
    let Step::Failed(failure) = run.step() else {
        panic!()
    };
    assert_eq!(failure.code(), "ParseIntError");
    assert_eq!(TestRun::start::<parsing>("7").output(), Some(7));
}

#[test]
#[should_panic(expected = "this blocks the run")]
fn panic_is_not_swallowed() {
    #[workflow]
    async fn panicking(_ctx: Context) -> Result<(), Failure> {
        panic!("this blocks the run")
    }
    drop(TestRun::start::<panicking>(&()));
}

#[test]
fn random_range_reaches_its_ends_only() {
    #[workflow]
    async fn dice(ctx: Context) -> Result<Vec<u64>, Failure> {
        Ok((0..600).map(|_| ctx.random_range(1..=6)).collect())
    }
    let throws = TestRun::start::<dice>(&()).output::<Vec<u64>>().unwrap();
    for face in 1..=6 {
        let count = throws.iter().filter(|throw| **throw == face).count();
        assert!((60..=140).contains(&count), "{count} times {face}");
    }
    assert_eq!(throws.iter().max(), Some(&6));
    assert_eq!(throws.iter().min(), Some(&1));
}

#[test]
fn drawing_many_bytes_takes_several_calls() {
    #[workflow]
    async fn bytes(ctx: Context) -> Result<usize, Failure> {
        Ok(ctx.random_bytes(5000).len())
    }
    let run = TestRun::start::<bytes>(&());
    assert_eq!(run.output(), Some(5000));
    assert_eq!(calls(&run), ["random(4096)", "random(904)"]);
}
