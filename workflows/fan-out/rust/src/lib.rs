//! Many activities at once.

use serde::Deserialize;
use steadfast_sdk::{Context, Failure, try_join_all, workflow};

/// How much there is to do.
#[derive(Debug, Deserialize)]
pub struct FanOutInput {
    /// The number of activities.
    pub items: u64,
}

/// Squares the numbers below `items`, each in an activity of its own, and sums the squares.
#[workflow(name = "fan-out")]
async fn fan_out(ctx: Context, input: FanOutInput) -> Result<u64, Failure> {
    let squares = (0..input.items).map(|item| ctx.activity::<u64>("square", &item));
    Ok(try_join_all(squares).await?.into_iter().sum())
}

steadfast_sdk::component!(fan_out);
