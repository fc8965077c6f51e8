//! Changing a workflow while runs of it are open.
//!
//! The feature `v2` is the changed code, `v3` the code after the old runs have ended, `v4` the code
//! in the end. Four components of one workflow type come out of this file, as if four versions of
//! it lay beside each other.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use steadfast_sdk::{Context, Failure, workflow};

/// What to pay.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Invoice {
    /// The amount, in cents.
    pub amount_cents: u64,
    /// How long to wait before it is paid.
    pub delay_ms: u64,
}

/// Pays an invoice after a while.
#[workflow]
async fn invoice(ctx: Context, input: Invoice) -> Result<Vec<String>, Failure> {
    let mut done = vec![ctx.activity("echo", "accepted").await?];
    check(ctx, &mut done).await?;
    ctx.sleep(Duration::from_millis(input.delay_ms)).await;
    let rate = ctx.side_effect("rate", || RATE_PERCENT)?;
    let fee = input.amount_cents * rate / 100;
    done.push(ctx.activity("echo", &format!("paid, fee {fee}")).await?);
    Ok(done)
}

/// A number in the code. It changes between versions, but not inside a run.
const RATE_PERCENT: u64 = if cfg!(feature = "v2") { 3 } else { 2 };

/// The first version has no check.
#[cfg(not(any(feature = "v2", feature = "v3", feature = "v4")))]
async fn check(_ctx: Context, _done: &mut Vec<String>) -> Result<(), Failure> {
    Ok(())
}

/// The second version has one, for runs that were not past this place without it.
#[cfg(feature = "v2")]
async fn check(ctx: Context, done: &mut Vec<String>) -> Result<(), Failure> {
    if ctx.patched("fraud-check") {
        done.push(ctx.activity("echo", "checked").await?);
    }
    Ok(())
}

/// No open run is without the check any more: the branch is gone, its mark stays.
#[cfg(feature = "v3")]
async fn check(ctx: Context, done: &mut Vec<String>) -> Result<(), Failure> {
    ctx.deprecate_patch("fraud-check");
    done.push(ctx.activity("echo", "checked").await?);
    Ok(())
}

/// No open run was started with the second version: the mark is gone too.
#[cfg(feature = "v4")]
async fn check(ctx: Context, done: &mut Vec<String>) -> Result<(), Failure> {
    done.push(ctx.activity("echo", "checked").await?);
    Ok(())
}

steadfast_sdk::component!(invoice);
