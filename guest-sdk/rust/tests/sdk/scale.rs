//! Cost must grow with the number of events, not with its square: counted in polls, not in time.

use std::cell::Cell;
use std::pin::{Pin, pin};
use std::task::{Context as TaskContext, Poll};

use steadfast_sdk::testing::{Event, Step, TestRun};
use steadfast_sdk::{Context, Failure, Payload, join_all, workflow};

thread_local! {
    static POLLS: Cell<u64> = const { Cell::new(0) };
}

/// Counts the polls of a future.
struct Counted<F>(F);

impl<F: Future + Unpin> Future for Counted<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<F::Output> {
        POLLS.set(POLLS.get() + 1);
        pin!(&mut self.0).poll(task)
    }
}

#[workflow]
async fn fan_out(ctx: Context, count: u64) -> Result<u64, Failure> {
    let squares = (0..count).map(|number| Counted(ctx.activity::<u64>("square", &number).start()));
    join_all(squares).await.into_iter().sum()
}

#[workflow]
async fn tasks(ctx: Context, count: u64) -> Result<u64, Failure> {
    let task = |number| ctx.spawn(Counted(ctx.activity::<u64>("square", &number).start()));
    let tasks: Vec<_> = (0..count).map(task).collect();
    let mut sum = 0;
    for task in tasks {
        sum += task.await?;
    }
    Ok(sum)
}

/// Resolves operations from the last to the first, in batches as a replay does.
fn finish(run: &mut TestRun, count: u32) -> u64 {
    let operations: Vec<u32> = (1..=count).rev().collect();
    for batch in operations.chunks(256) {
        let resolve = |operation: &u32| {
            let data = (*operation).to_string().into_bytes();
            Event::Resolved(
                *operation,
                Ok(Payload {
                    encoding: String::new(),
                    data,
                }),
            )
        };
        run.deliver(batch.iter().map(resolve).collect());
    }
    assert!(matches!(run.step(), Step::Completed(_)), "{:?}", run.step());
    POLLS.get()
}

#[test]
fn join_all_polls_each_child_twice() {
    for count in [10, 10_000, 100_000] {
        POLLS.set(0);
        let mut run = TestRun::start::<fan_out>(&count);
        assert_eq!(finish(&mut run, count), 2 * u64::from(count));
        assert_eq!(
            run.output(),
            Some(u64::from(count) * (u64::from(count) + 1) / 2)
        );
    }
}

#[test]
fn event_wakes_one_task_of_many() {
    for count in [10, 10_000, 100_000] {
        POLLS.set(0);
        let mut run = TestRun::start::<tasks>(&count);
        assert_eq!(finish(&mut run, count), 2 * u64::from(count));
    }
}
