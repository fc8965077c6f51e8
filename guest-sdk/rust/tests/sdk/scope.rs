//! Cancellation scopes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use steadfast_sdk::testing::{Event, Step, TestRun};
use steadfast_sdk::{Context, Failure, Payload, Scope, join, join_all, select, workflow};

use crate::calls;

fn null() -> Payload {
    Payload {
        encoding: String::new(),
        data: b"null".to_vec(),
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// A timer and an activity at once, whichever way they end.
async fn pair(ctx: Context, name: &'static str) -> Result<(), Failure> {
    let work = ctx.activity::<()>(name, &()).start();
    ctx.sleep(SECOND).await;
    work.await
}

#[workflow]
async fn two_pairs(ctx: Context) -> Result<(), Failure> {
    let both = async {
        let (a, b) = join!(pair(ctx, "a"), pair(ctx, "b"));
        a.and(b)
    };
    ctx.scope().run(both).await
}

#[test]
fn a_cancel_request_cancels_what_scopes_started_in_its_order() {
    let mut run = TestRun::start::<two_pairs>(&());
    run.fire(2);
    let Step::Canceled(failure) = run.request_cancel("enough") else {
        panic!("{:?}", run.step())
    };
    assert_eq!(failure.message(), "canceled: enough");
    assert_eq!(
        calls(&run),
        [
            "a#1",
            "timer#2(1000)",
            "b#3",
            "timer#4(1000)",
            "cancel-activity#1",
            "cancel-activity#3",
            "cancel-timer#4"
        ]
    );
}

#[test]
fn scopes_do_not_change_what_is_not_cancelled() {
    let mut run = TestRun::start::<two_pairs>(&());
    run.resolve(1, &());
    run.resolve(3, &());
    run.fire(4);
    run.fire(2);
    assert!(matches!(run.step(), Step::Completed(_)));
    assert_eq!(calls(&run).len(), 4);
}

#[workflow]
async fn nested(ctx: Context) -> Result<String, Failure> {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let (inner_seen, outer_seen) = (Rc::clone(&seen), Rc::clone(&seen));
    let inner = ctx.scope();
    let outer = ctx.scope();
    let code = async move {
        let result = inner.run(pair(ctx, "inner")).await;
        inner_seen
            .borrow_mut()
            .push(format!("inner {}", result.is_err()));
        pair(ctx, "outer").await
    };
    let stop = async {
        drop(ctx.signal::<()>("stop").recv().await);
        outer.cancel("stopped");
    };
    let (result, ()) = join!(
        async {
            let result = outer.run(code).await;
            outer_seen
                .borrow_mut()
                .push(format!("outer {}", result.is_err()));
            result
        },
        stop
    );
    assert_eq!(result.unwrap_err().message(), "canceled: stopped");
    Ok(seen.borrow().join(", "))
}

#[test]
fn the_code_of_a_cancelled_scope_is_dropped() {
    let mut run = TestRun::start::<nested>(&());
    run.fail(1, Failure::application("x", "y"));
    run.fire(2);
    run.signal("stop", &());
    assert_eq!(
        run.output::<String>().as_deref(),
        Some("inner true, outer true")
    );
    assert_eq!(
        calls(&run)[2..],
        [
            "outer#3",
            "timer#4(1000)",
            "cancel-activity#3",
            "cancel-timer#4"
        ]
    );
}

#[workflow]
async fn inside(ctx: Context) -> Result<bool, Failure> {
    let outer: Scope = ctx.scope();
    let canceller = outer.clone();
    let code = async move {
        let work = ctx.activity::<()>("outer", &()).start();
        let inner = ctx.scope();
        let result = inner.run(async {
            canceller.cancel("now");
            pair(ctx, "never").await
        });
        result.await?;
        work.await
    };
    let result = outer.run(code).await;
    let again: Result<(), Failure> = outer.run(async { panic!("it does not begin") }).await;
    Ok(result.is_err() && again.is_err() && outer.is_cancelled())
}

#[test]
fn a_cancelled_scope_starts_nothing_and_neither_does_one_inside_it() {
    let run = TestRun::start::<inside>(&());
    assert_eq!(run.output(), Some(true));
    assert_eq!(calls(&run), ["outer#1", "cancel-activity#1"]);
}

#[workflow]
async fn shielding(ctx: Context) -> Result<(), Failure> {
    let done = Rc::new(Cell::new(0));
    let inside = Rc::clone(&done);
    let code = async move {
        let charge = async {
            ctx.activity::<()>("charge", &()).await?;
            ctx.activity::<()>("receipt", &()).await
        };
        ctx.shielded(charge).await?;
        inside.set(inside.get() + 1);
        ctx.shielded(ctx.activity::<()>("mail", &())).await?;
        inside.set(inside.get() + 1);
        ctx.activity::<()>("never", &()).await
    };
    let beside = pair(ctx, "beside");
    let result = ctx
        .scope()
        .run(async { try_both(code, beside).await })
        .await;
    assert_eq!(done.get(), 2, "what is behind a shield is reached");
    result
}

async fn try_both(
    a: impl Future<Output = Result<(), Failure>>,
    b: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let (a, b) = join!(a, b);
    a.and(b)
}

#[test]
fn a_shield_keeps_going_and_the_code_behind_it_runs_to_its_next_wait() {
    let mut run = TestRun::start::<shielding>(&());
    assert_eq!(*run.request_cancel(""), Step::Blocked);
    assert_eq!(*run.resolve(1, &()), Step::Blocked);
    assert_eq!(*run.resolve(4, &()), Step::Blocked);
    assert!(matches!(run.resolve(5, &()), Step::Canceled(_)));
    assert_eq!(
        calls(&run),
        [
            "charge#1",
            "beside#2",
            "timer#3(1000)",
            "cancel-activity#2",
            "cancel-timer#3",
            "receipt#4",
            "mail#5"
        ]
    );
}

#[workflow]
async fn cleaning(ctx: Context) -> Result<(), Failure> {
    let outer = ctx.scope();
    let inner = async move {
        let undo = move |why: Failure| async move {
            let undone = ctx.activity::<()>("undo", why.message()).await;
            assert!(undone.is_ok());
        };
        let scope = ctx.scope();
        scope.run(pair(ctx, "inner")).cleanup(undo).await?;
        ctx.activity::<()>("after", &()).await
    };
    outer.run(inner).await
}

#[test]
fn a_cleanup_runs_activities_after_the_cancellation_and_the_scopes_around_wait() {
    let mut run = TestRun::start::<cleaning>(&());
    assert_eq!(*run.request_cancel("bored"), Step::Blocked);
    assert_eq!(
        calls(&run)[2..],
        ["cancel-activity#1", "cancel-timer#2", "undo#3"]
    );
    let Step::Canceled(failure) = run.resolve(3, &()) else {
        panic!()
    };
    assert_eq!(failure.message(), "canceled: bored");
    assert_eq!(calls(&run).len(), 5);
}

#[test]
fn a_cleanup_of_what_was_not_cancelled_does_not_run() {
    let mut run = TestRun::start::<cleaning>(&());
    run.fire(2);
    run.resolve(1, &());
    assert!(matches!(run.resolve(3, &()), Step::Completed(_)));
    assert_eq!(calls(&run), ["inner#1", "timer#2(1000)", "after#3"]);
}

#[workflow]
async fn limited(ctx: Context) -> Result<(), Failure> {
    let undo = move |why: Failure| async move {
        drop(ctx.activity::<()>("undo", why.code()).await);
    };
    let scope = ctx.scope();
    scope
        .run(pair(ctx, "slow"))
        .within(SECOND)
        .cleanup(undo)
        .await
}

#[test]
fn a_scope_that_takes_too_long_is_cancelled() {
    let mut run = TestRun::start::<limited>(&());
    assert_eq!(calls(&run), ["timer#1(1000)", "slow#2", "timer#3(1000)"]);
    run.fire(1);
    let Step::Failed(failure) = run.resolve(4, &()) else {
        panic!()
    };
    assert_eq!(failure.code(), "elapsed");
    assert_eq!(
        calls(&run)[3..],
        ["cancel-activity#2", "cancel-timer#3", "undo#4"]
    );
    let mut run = TestRun::start::<limited>(&());
    run.resolve(2, &());
    assert!(matches!(run.fire(3), Step::Completed(_)));
    assert_eq!(calls(&run)[3..], ["cancel-timer#1"]);
}

#[workflow]
async fn spawning(ctx: Context) -> Result<(), Failure> {
    let code = async move {
        drop(ctx.spawn(pair(ctx, "spawned")));
        pair(ctx, "own").await
    };
    let result = ctx.scope().run(code).await;
    assert!(result.is_err());
    ctx.activity::<()>("after", &()).await
}

#[test]
fn tasks_go_with_their_scope() {
    let mut run = TestRun::start::<spawning>(&());
    run.request_cancel("");
    assert_eq!(
        calls(&run)[4..],
        [
            "cancel-activity#1",
            "cancel-timer#2",
            "cancel-activity#3",
            "cancel-timer#4",
            "after#5"
        ]
    );
    let late = vec![
        Event::Resolved(3, Ok(Payload::default())),
        Event::Resolved(5, Ok(null())),
    ];
    assert!(matches!(run.deliver(late), Step::Completed(_)));
}

#[workflow]
async fn many(ctx: Context) -> Result<(), Failure> {
    let scopes = (0..50).map(|_| {
        let scope = ctx.scope();
        async move { scope.run(pair(ctx, "work")).await }
    });
    join_all(scopes).await.into_iter().collect()
}

#[test]
fn scenario_16_fifty_scopes_are_cancelled_in_the_order_of_their_start() {
    let cancelled = || {
        let mut run = TestRun::start::<many>(&());
        run.request_cancel("");
        calls(&run)
    };
    let first = cancelled();
    let expected: Vec<String> = (0..50)
        .flat_map(|n| {
            let (activity, timer) = (2 * n + 1, 2 * n + 2);
            [
                format!("cancel-activity#{activity}"),
                format!("cancel-timer#{timer}"),
            ]
        })
        .collect();
    assert_eq!(first[100..], expected);
    for _ in 0..1000 {
        assert_eq!(cancelled(), first);
    }
}

#[workflow]
async fn selecting(ctx: Context) -> Result<&'static str, Failure> {
    let mut go = ctx.signal::<()>("go").recv().into_future();
    let winner = select! {
        result = ctx.activity::<()>("work", &()) => { result?; "activity" },
        () = ctx.sleep(SECOND) => "timer",
        _signal = &mut go => "signal",
    };
    Ok(winner)
}

#[test]
fn a_select_cancels_its_losers_only_if_they_are_pending() {
    let both = |a: Event, b: Event| {
        let mut run = TestRun::start::<selecting>(&());
        run.deliver(vec![a, b]);
        (
            run.output::<String>().expect("it ended"),
            calls(&run)[2..].to_vec(),
        )
    };
    let fired = || Event::Resolved(2, Ok(Payload::default()));
    let done = || Event::Resolved(1, Ok(null()));
    let signal = || Event::Signaled("go".to_owned(), null());
    assert_eq!(
        both(fired(), done()),
        ("timer".into(), vec!["cancel-activity#1".into()])
    );
    assert_eq!(
        both(done(), fired()),
        ("activity".into(), vec!["cancel-timer#2".into()])
    );
    let (winner, mut losers) = both(signal(), done());
    losers.sort();
    assert_eq!((winner.as_str(), losers.len()), ("signal", 2));
}

#[workflow]
async fn gated(ctx: Context) -> Result<Vec<&'static str>, Failure> {
    let (count, order) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(Vec::new())));
    let counter = Rc::clone(&count);
    drop(ctx.spawn(async move {
        loop {
            drop(ctx.signal::<()>("tick").recv().await);
            counter.set(counter.get() + 1);
        }
    }));
    let waits = |name: &'static str, enough: i32, add: i32| {
        let (count, order) = (&count, &order);
        async move {
            ctx.wait_until(|| count.get() >= enough).await;
            order.borrow_mut().push(name);
            count.set(count.get() + add);
        }
    };
    join!(
        waits("last", 13, 0),
        waits("first", 2, 10),
        waits("second", 12, 1)
    );
    Ok(order.take())
}

#[test]
fn conditions_are_looked_at_until_none_comes_true() {
    let mut run = TestRun::start::<gated>(&());
    assert_eq!(*run.signal("tick", &()), Step::Blocked);
    run.signal("tick", &());
    assert_eq!(
        run.output(),
        Some(vec![
            "first".to_owned(),
            "second".to_owned(),
            "last".to_owned()
        ])
    );
    assert!(calls(&run).is_empty());
}

#[workflow]
async fn impatient(ctx: Context) -> Result<(), Failure> {
    let never = ctx.wait_until(|| false);
    ctx.timeout(SECOND, never).await?;
    Ok(())
}

#[test]
fn a_condition_can_be_waited_for_with_a_limit() {
    let mut run = TestRun::start::<impatient>(&());
    assert!(matches!(run.fire(1), Step::Failed(_)));
}

#[workflow]
async fn timer_first(ctx: Context) -> Result<(), Failure> {
    let code = async move {
        let timer = ctx.sleep(SECOND);
        ctx.activity::<()>("work", &()).await?;
        timer.await;
        Ok(())
    };
    ctx.scope().run(code).await
}

#[test]
fn scenario_14_a_timer_that_fired_before_the_cancel_request_is_not_cancelled() {
    let mut run = TestRun::start::<timer_first>(&());
    let fired = Event::Resolved(1, Ok(Payload::default()));
    run.deliver(vec![fired, Event::CancelRequested(String::new())]);
    assert!(matches!(run.step(), Step::Canceled(_)));
    assert_eq!(
        calls(&run),
        ["timer#1(1000)", "work#2", "cancel-activity#2"]
    );
}
