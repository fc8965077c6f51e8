//! A long-lived entity: an account whose balance changes by signals alone.

use serde::{Deserialize, Serialize};
use steadfast_sdk::{Context, Decode, Failure, Payload, warn, workflow};

/// What an account starts with.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct AccountInput {
    /// The first balance, in cents.
    pub balance_cents: u64,
}

/// An amount of a deposit or a withdrawal.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Amount {
    /// The amount, in cents.
    pub cents: u64,
}

/// What an account ends with.
#[derive(Debug, Serialize, Deserialize)]
pub struct Statement {
    /// The last balance, in cents.
    pub balance_cents: u64,
    /// The number of changes that were carried out.
    pub changes: u64,
    /// The number of signals that were refused.
    pub refused: u64,
}

/// One line of the account's journal.
#[derive(Debug, Serialize)]
struct Entry {
    kind: &'static str,
    cents: u64,
    balance_cents: u64,
}

/// Keeps a balance until `close` arrives. Each change is journalled by a recorded activity before
/// the next signal is looked at; withdrawals beyond the balance are refused.
#[workflow(signals(deposit: Amount, withdraw: Amount, close: Option<String>))]
async fn account(ctx: Context, input: AccountInput) -> Result<Statement, Failure> {
    // A set and not three signals: a deposit and a withdrawal must not overtake each other.
    let signals = ctx.signals(&["deposit", "withdraw", "close"]);
    let mut statement = Statement {
        balance_cents: input.balance_cents,
        changes: 0,
        refused: 0,
    };
    loop {
        let (kind, payload) = signals.recv().await;
        if kind == "close" {
            return Ok(statement);
        }
        match entry(kind, payload, statement.balance_cents) {
            Ok(entry) => {
                let () = ctx.activity("journal", &entry).await?;
                statement.balance_cents = entry.balance_cents;
                statement.changes += 1;
            }
            Err(failure) => {
                warn!("{kind} refused: {failure}");
                statement.refused += 1;
            }
        }
    }
}

/// Returns the journal's entry of a signal, or why it is refused.
fn entry(kind: &'static str, payload: Payload, balance_cents: u64) -> Result<Entry, Failure> {
    let Amount { cents } = Amount::decode(payload)?;
    let balance_cents = match kind {
        "deposit" => balance_cents.checked_add(cents),
        _ => balance_cents.checked_sub(cents),
    };
    let balance_cents =
        balance_cents.ok_or_else(|| Failure::application("balance", "out of range"))?;
    Ok(Entry {
        kind,
        cents,
        balance_cents,
    })
}

steadfast_sdk::component!(account);

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use steadfast_sdk::testing::TestRun;

    #[test]
    fn signals_are_carried_out_in_the_order_of_arrival() {
        let mut run = TestRun::start::<account>(&BTreeMap::<String, u64>::new());
        let cents = |cents: u64| BTreeMap::from([("cents", cents)]);
        run.signal("withdraw", &cents(1));
        run.signal("deposit", &cents(5));
        run.signal("withdraw", &cents(2));
        run.signal("deposit", "not an amount");
        run.signal("close", &());
        run.resolve(1, &());
        run.resolve(2, &());
        let statement = run.output::<Statement>().expect("it completed");
        let numbers = (
            statement.balance_cents,
            statement.changes,
            statement.refused,
        );
        assert_eq!(numbers, (3, 2, 2));
    }
}
