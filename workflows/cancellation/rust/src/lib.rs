//! Cancellation scopes: limits, cleanups, shields.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use steadfast_sdk::{Context, Failure, Scope, info, join_all, select, try_join_all, workflow};

/// A trip to book.
#[derive(Debug, Serialize, Deserialize)]
pub struct Trip {
    /// Where to stop, in order.
    pub stops: Vec<String>,
    /// How long all bookings may take together.
    pub patience_ms: u64,
}

/// Books every stop of a trip at once. When that takes too long, or somebody asks for the trip to
/// be cancelled, what is under way is cancelled and what may have been booked is given back.
#[workflow]
async fn trip(ctx: Context, input: Trip) -> Result<Vec<String>, Failure> {
    let stops = input.stops.clone();
    let bookings = async move {
        let bookings = stops.iter().map(|stop| book(ctx, stop));
        try_join_all(bookings).await
    };
    let give_back = move |why: Failure| async move {
        info!("giving back: {why}");
        for stop in input.stops.iter().rev() {
            let given_back: Result<String, Failure> = ctx.activity("give-back", stop).await;
            if let Err(failure) = given_back {
                info!("{stop} was not given back: {failure}");
            }
        }
    };
    let booked = ctx
        .scope()
        .run(bookings)
        .within(Duration::from_millis(input.patience_ms))
        .cleanup(give_back)
        .await?;
    // Outside of the scope: a cancel request does not reach it.
    ctx.activity::<String>("send-mail", "the trip is booked")
        .await?;
    Ok(booked)
}

async fn book(ctx: Context, stop: &str) -> Result<String, Failure> {
    ctx.activity::<String>("check", stop).await?;
    // Money moves here: once begun, it is seen through, and only then is the stop given back.
    ctx.shielded(ctx.activity("book", stop)).await
}

/// Runs `input` scopes of a timer and an activity each, and gives one of them up per signal
/// `drop`, or all with a cancel request. Returns how many were given up.
#[workflow(signals(drop: usize))]
async fn watches(ctx: Context, input: usize) -> Result<usize, Failure> {
    let scopes: Vec<Scope> = (0..input).map(|_| ctx.scope()).collect();
    let watching = scopes.iter().map(|scope| async move {
        let watch = async {
            select! {
                () = ctx.sleep(Duration::from_secs(3600)) => Ok(()),
                seen = ctx.activity::<()>("watch", &()) => seen,
            }
        };
        scope.run(watch).await
    });
    let dropping = async {
        loop {
            let index = ctx.signal::<usize>("drop").recv().await?;
            if let Some(scope) = scopes.get(index) {
                scope.cancel("dropped");
            }
        }
    };
    let results = select! {
        results = join_all(watching) => results,
        failure = dropping => {
            let failure: Result<(), Failure> = failure;
            vec![failure]
        },
    };
    Ok(results.iter().filter(|result| result.is_err()).count())
}

steadfast_sdk::component!(trip, watches);

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_sdk::testing::{Call, Step, TestRun};

    fn started() -> TestRun {
        let input = Trip {
            stops: vec!["Rome".to_owned(), "Oslo".to_owned()],
            patience_ms: 1000,
        };
        TestRun::start::<trip>(&input)
    }

    fn activities(run: &TestRun) -> Vec<String> {
        let activity = |call| match call {
            Call::ScheduleActivity { activity_type, .. } => Some(activity_type),
            _ => None,
        };
        run.calls().into_iter().filter_map(activity).collect()
    }

    #[test]
    fn a_trip_in_time_is_booked() {
        let mut run = started();
        for operation in 2..=7 {
            run.resolve(operation, &format!("id-{operation}"));
        }
        let booked = run.output::<Vec<String>>();
        assert_eq!(booked, Some(vec!["id-4".to_owned(), "id-5".to_owned()]));
        assert_eq!(
            activities(&run),
            ["check", "check", "book", "book", "send-mail"]
        );
    }

    #[test]
    fn a_booking_under_way_is_seen_through_before_all_is_given_back() {
        let mut run = started();
        run.resolve(2, "id");
        assert_eq!(*run.request_cancel("stay home"), Step::Blocked);
        assert_eq!(activities(&run), ["check", "check", "book"]);
        assert!(run.calls().contains(&Call::CancelActivity(3)));
        run.resolve(4, "id");
        run.resolve(5, "id");
        assert!(matches!(run.resolve(6, "id"), Step::Canceled(_)));
        assert_eq!(activities(&run)[2..], ["book", "give-back", "give-back"]);
    }

    #[test]
    fn a_trip_that_takes_too_long_is_given_back() {
        let mut run = started();
        run.fire(1);
        run.resolve(4, "id");
        let Step::Failed(failure) = run.resolve(5, "id") else {
            panic!("{:?}", run.step())
        };
        assert_eq!(failure.code(), "elapsed");
    }

    #[test]
    fn watches_are_dropped_one_by_one_or_all() {
        let mut run = TestRun::start::<watches>(&3_usize);
        run.signal("drop", &1_usize);
        run.resolve(2, &());
        run.fire(5);
        assert_eq!(run.output(), Some(1));
        let mut run = TestRun::start::<watches>(&3_usize);
        run.request_cancel("");
        assert_eq!(run.output(), Some(3));
    }
}
