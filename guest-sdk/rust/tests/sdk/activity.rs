//! Activities, their options and results; sagas.

use std::time::Duration;

use steadfast_sdk::testing::{Call, Step, TestRun};
use steadfast_sdk::{Context, Failure, Payload, RetryPolicy, Saga, workflow};

use crate::calls;

#[workflow]
async fn with_options(ctx: Context) -> Result<String, Failure> {
    ctx.activity("charge", &7)
        .start_to_close(Duration::from_secs(1))
        .schedule_to_close(Duration::from_micros(1500))
        .schedule_to_start(Duration::from_millis(3))
        .heartbeat(Duration::from_millis(4))
        .retry(
            RetryPolicy::new()
                .initial_interval(Duration::from_millis(5))
                .maximum_attempts(6),
        )
        .task_queue("payments")
        .id("the-charge")
        .summary("Charges the card")
        .non_retryable_code("declined")
        .await
}

#[test]
fn options_reach_the_host() {
    let mut run = TestRun::start::<with_options>(&());
    let [
        Call::ScheduleActivity {
            operation: 1,
            activity_type,
            input,
            options,
        },
    ] = &run.calls()[..]
    else {
        panic!("{:?}", run.calls());
    };
    assert_eq!(activity_type, "charge");
    assert_eq!(
        *input,
        Payload {
            encoding: String::new(),
            data: b"7".to_vec()
        }
    );
    let options: Vec<String> = options
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let expected = "schedule-to-close-ms=2 schedule-to-start-ms=3 start-to-close-ms=1000 \
                    heartbeat-ms=4 initial-interval-ms=5 maximum-attempts=6 task-queue=payments \
                    activity-id=the-charge summary=Charges the card non-retryable-code=declined";
    assert_eq!(options.join(" "), expected);
    run.resolve(1, "paid");
    assert_eq!(run.output::<String>().as_deref(), Some("paid"));
}

#[workflow]
async fn number(ctx: Context) -> Result<u32, Failure> {
    ctx.activity("number", &()).await
}

#[test]
fn result_of_another_type_is_a_failure_with_the_payload() {
    let mut run = TestRun::start::<number>(&());
    let Step::Failed(failure) = run.resolve(1, "text") else {
        panic!()
    };
    assert_eq!(failure.code(), "decode");
    assert_eq!(failure.details().unwrap().data, b"\"text\"");
}

#[workflow]
async fn unencodable(ctx: Context) -> Result<(), Failure> {
    let keyed_by_list = std::collections::BTreeMap::from([([1, 2], 3)]);
    ctx.activity("never", &keyed_by_list).await
}

#[test]
fn input_without_json_form_schedules_nothing() {
    let run = TestRun::start::<unencodable>(&());
    let Step::Failed(failure) = run.step() else {
        panic!()
    };
    assert_eq!(failure.code(), "encode");
    assert!(run.calls().is_empty());
}

#[workflow]
async fn raw(ctx: Context, input: Payload) -> Result<Payload, Failure> {
    ctx.activity("raw", &input).await
}

#[test]
fn payloads_pass_untouched() {
    let bytes = Payload::binary(vec![0, 255]);
    let mut run = TestRun::start::<raw>(&bytes);
    assert!(matches!(&run.calls()[0], Call::ScheduleActivity { input, .. } if *input == bytes));
    assert_eq!(*run.resolve(1, &bytes), Step::Completed(bytes));
}

#[workflow]
async fn handles(ctx: Context) -> Result<bool, Failure> {
    let first = ctx.activity::<()>("first", &()).start();
    let second = ctx.activity::<()>("second", &()).start();
    let third = ctx.activity::<()>("third", &()).start();
    ctx.sleep(Duration::from_millis(1)).await;
    second.detach();
    drop(third);
    first.cancel();
    let outcome = first.await;
    Ok(outcome.is_err_and(|failure| failure.is_canceled()))
}

#[test]
fn handle_cancels_on_drop_unless_detached() {
    let mut run = TestRun::start::<handles>(&());
    run.fire(4);
    let expected = [
        "first#1",
        "second#2",
        "third#3",
        "timer#4(1)",
        "cancel-activity#3",
        "cancel-activity#1",
    ];
    assert_eq!(calls(&run), expected);
    // Late results of operations given up change nothing.
    assert_eq!(*run.resolve(2, &()), Step::Blocked);
    assert_eq!(*run.fail(3, Failure::canceled()), Step::Blocked);
    run.fail(1, Failure::canceled());
    assert_eq!(run.output(), Some(true));
    assert_eq!(calls(&run).len(), expected.len());
}

#[workflow]
async fn trip(ctx: Context) -> Result<Vec<String>, Failure> {
    let mut saga = Saga::new(&ctx);
    saga.compensate("cancel-hotel", "h");
    saga.push(ctx.activity("cancel-car", "c").retry(RetryPolicy::none()));
    saga.compensate("cancel-flight", "f");
    let failures = saga.run_compensations().await;
    assert!(saga.is_empty());
    Ok(failures
        .iter()
        .map(|failure| failure.code().to_owned())
        .collect())
}

#[test]
fn compensations_run_in_reverse_past_failures() {
    let mut run = TestRun::start::<trip>(&());
    assert_eq!(calls(&run), ["cancel-flight#1"]);
    run.resolve(1, &());
    run.fail(2, Failure::application("no-car", "there is none"));
    assert_eq!(
        calls(&run),
        ["cancel-flight#1", "cancel-car#2", "cancel-hotel#3"]
    );
    run.resolve(3, &"gone");
    assert_eq!(run.output::<Vec<String>>().unwrap(), ["no-car"]);
}
