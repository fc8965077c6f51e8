//! Runs that follow one another: continue-as-new, cron, and what moves along.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use steadfast_sdk::{Context, Decode, Failure, NoInput, select, workflow};

/// The state of a subscription, handed from run to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Subscription {
    /// The length of a period.
    pub period_ms: u64,
    /// Periods after which the workflow goes on in a new run.
    pub periods_per_run: u64,
    /// What a period costs.
    pub price_cents: u64,
    /// Periods charged so far, over all runs.
    pub charged: u64,
    /// The sum of all charges.
    pub total_cents: u64,
    /// How often the price was changed.
    pub changes: u64,
}

impl Default for Subscription {
    fn default() -> Self {
        Self {
            period_ms: 30 * 24 * 3600 * 1000,
            periods_per_run: 12,
            price_cents: 1000,
            charged: 0,
            total_cents: 0,
            changes: 0,
        }
    }
}

/// Charges once a period until `stop` arrives; `change-price` counts from the next period.
#[workflow(signals(change_price: u64, stop: Option<String>))]
async fn subscription(ctx: Context, input: Subscription) -> Result<Subscription, Failure> {
    let mut state = input;
    let (prices, stop) = (
        ctx.signal::<u64>("change-price"),
        ctx.signal::<Option<String>>("stop"),
    );
    for _ in 0..state.periods_per_run.max(1) {
        let period = ctx.sleep(Duration::from_millis(state.period_ms));
        let is_over = select! {
            _ = stop.recv() => true,
            _ = period => false,
        };
        while let Some(price) = prices.try_recv() {
            state.price_cents = price?;
            state.changes += 1;
        }
        if is_over {
            return Ok(state);
        }
        let charged: u64 = ctx.activity("echo", &state.price_cents).await?;
        state.charged += 1;
        state.total_cents += charged;
        ctx.set_memo("charged", &state.charged)?;
        if ctx.is_continue_as_new_suggested() {
            break;
        }
    }
    // Signals that arrived meanwhile and that nobody has read move to the new run.
    match ctx.continue_as_new(&state).await {}
}

/// Adds one to what the last run that completed returned.
#[workflow]
async fn counter(ctx: Context, _: NoInput) -> Result<u64, Failure> {
    let last = ctx.chain().last_completion_result;
    Ok(1 + last.map_or(Ok(0), u64::decode)?)
}

steadfast_sdk::component!(subscription, counter);

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_sdk::testing::{Step, TestRun};

    fn short() -> Subscription {
        Subscription {
            period_ms: 1000,
            periods_per_run: 2,
            ..Subscription::default()
        }
    }

    #[test]
    fn it_goes_on_in_a_new_run_with_its_state() {
        let mut run = TestRun::start::<subscription>(&short());
        run.signal("change-price", &500_u64);
        run.fire(1);
        run.resolve(2, &500_u64);
        run.fire(3);
        run.resolve(4, &500_u64);
        let Step::Continued { input, unread, .. } = run.step() else {
            panic!("{:?}", run.step());
        };
        let state = Subscription::decode(input.clone()).expect("a state");
        assert_eq!(
            (state.charged, state.total_cents, state.changes),
            (2, 1000, 1)
        );
        assert!(unread.is_empty());
    }

    #[test]
    fn what_nobody_has_read_moves_along() {
        let mut run = TestRun::start::<subscription>(&short());
        run.fire(1);
        run.resolve(2, &1000_u64);
        run.fire(3);
        run.signal("change-price", &700_u64);
        run.resolve(4, &1000_u64);
        let Step::Continued { unread, .. } = run.step() else {
            panic!("{:?}", run.step());
        };
        assert_eq!(unread.len(), 1);
        assert_eq!(unread[0].1, "change-price");
    }
}
