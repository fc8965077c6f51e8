//! A task's due time is exactly when looking at it changes something: a timer set for it neither
//! sleeps through a deadline nor wakes for nothing.

use proptest::prelude::*;
use steadfast_engine::activity::{Outcome, due, look};
use steadfast_engine::decide::Execution;
use steadfast_model::{ActivityTask, Millis, TaskState, Timestamp};

use crate::common::{World, schedule, yields};
use crate::generate::options;

fn fresh(options: steadfast_model::ActivityOptions) -> ActivityTask {
    let mut world = World::begin(0);
    world
        .step(0, &yields(0, [schedule("work", options)]))
        .expect("accepted");
    let Execution { tasks, .. } = world.execution;
    tasks.into_values().next().expect("pending")
}

fn state() -> impl Strategy<Value = TaskState> {
    let time = || prop_oneof![0..100_000_u64, Just(u64::MAX)].prop_map(Timestamp);
    prop_oneof![
        time().prop_map(|since| TaskState::Ready { since }),
        time().prop_map(|until| TaskState::Backoff { until }),
        (0..100_000_u64, 0..100_000_u64).prop_map(|(since, beat)| TaskState::Started {
            worker: "w".into(),
            since: Timestamp(since),
            heartbeat: Timestamp(since + beat),
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn a_task_changes_at_its_due_time_and_not_before(
        options in options(),
        state in state(),
        attempt in 1..5_u32,
    ) {
        let task = ActivityTask { state, attempt, ..fresh(options) };
        let Some(at) = due(&task) else {
            prop_assert_eq!(look(&task, Timestamp(u64::MAX)), None);
            return Ok(());
        };
        if let Some(before) = at.0.checked_sub(1) {
            prop_assert_eq!(look(&task, Timestamp(before)), None);
        }
        let outcome = look(&task, at);
        prop_assert!(outcome.is_some(), "due at {at:?} and nothing happens");
        // What goes on is not due again at once, or the host would spin.
        if let Some(Outcome::Again(next)) = outcome
            && at.0 < u64::MAX
        {
            let is_later = due(&next).is_none_or(|next| next > at);
            let is_ready_now = matches!(next.state, TaskState::Ready { .. });
            prop_assert!(is_later || is_ready_now, "{next:?}");
        }
    }

    #[test]
    fn a_late_look_finds_what_a_timely_one_would(
        options in options(),
        late in 0..1_000_000_u64,
    ) {
        // However late it is, every look makes progress and the looks come to an end.
        let mut task = fresh(options);
        let now = Timestamp(late);
        let mut looks = 0;
        while let Some(Outcome::Again(next)) = look(&task, now) {
            looks += 1;
            prop_assert!(looks < 4, "looked {looks} times at one moment: {next:?}");
            task = next;
        }
    }
}

#[test]
fn a_long_life_ends_at_the_limit_over_all_attempts() {
    let mut options = crate::common::options();
    options.schedule_to_close = Some(Millis(1_000_000));
    let mut task = fresh(options);
    let mut moments = 0;
    let closed = loop {
        let now = match &task.state {
            TaskState::Ready { since } => {
                let started = TaskState::Started {
                    worker: "w".into(),
                    since: *since,
                    heartbeat: *since,
                };
                task.state = started;
                continue;
            }
            TaskState::Backoff { .. } | TaskState::Started { .. } => due(&task).expect("due"),
        };
        moments += 1;
        match look(&task, now).expect("something is due") {
            Outcome::Again(next) => task = next,
            Outcome::Closed(event) => break (event, now),
        }
    };
    // Waits of 10, 20, ... 640, then 1000 ms between attempts of 100 ms.
    assert_eq!(closed.0.name(), "ActivityTaskTimedOut");
    assert!(
        closed.1 <= Timestamp(1_000_000) && closed.1 > Timestamp(998_000),
        "{closed:?}"
    );
    assert!((1500..2500).contains(&moments), "{moments}");
}
