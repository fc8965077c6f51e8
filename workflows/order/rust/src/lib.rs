//! An order: reserve, charge, review, wait for approval, ship; or undo what was done.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use steadfast_sdk::schemars::{self, JsonSchema};
use steadfast_sdk::{Context, Failure, RetryPolicy, Saga, info, warn, workflow};

/// What a customer bought.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub struct OrderInput {
    /// The order's id.
    pub order_id: String,
    /// The price of everything, in cents.
    pub amount_cents: u64,
    /// The articles.
    #[serde(default)]
    pub items: Vec<Item>,
    /// How long a payment is kept under review before anybody is asked.
    #[serde(default)]
    pub fraud_review_ms: u64,
    /// How long the approval may take. Default: a day.
    #[serde(default = "one_day_ms")]
    pub approval_deadline_ms: u64,
}

/// One article of an order.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub struct Item {
    /// The article's number.
    pub sku: String,
    /// How many of them.
    pub quantity: u32,
}

const fn one_day_ms() -> u64 {
    24 * 60 * 60 * 1000
}

/// The answer of whoever looks at an order.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub struct Approval {
    /// True to ship, false to give the money back.
    pub approved: bool,
}

/// What the steps of an order left behind.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "schemars")]
pub struct Receipt {
    /// The order's id.
    pub order_id: String,
    /// The warehouse's reservation.
    pub reservation: String,
    /// The payment.
    pub payment: String,
    /// The shipment.
    pub shipment: String,
}

#[derive(Serialize)]
struct Reserve<'a> {
    order_id: &'a str,
    items: &'a [Item],
}

#[derive(Serialize)]
struct Charge<'a> {
    order_id: &'a str,
    amount_cents: u64,
}

#[derive(Serialize)]
struct Ship<'a> {
    order_id: &'a str,
    reservation: &'a str,
}

#[derive(Serialize)]
struct Refund<'a> {
    order_id: &'a str,
    payment: &'a str,
}

#[derive(Serialize)]
struct Release<'a> {
    order_id: &'a str,
    reservation: &'a str,
}

/// Takes an order from reservation to shipment.
///
/// A failure, a rejection, a missed deadline or a cancel request refunds the payment and releases
/// the reservation, in this order.
#[workflow(signals(approve: Approval), schema)]
async fn order(ctx: Context, input: OrderInput) -> Result<Receipt, Failure> {
    let mut saga = Saga::new(&ctx);
    let failure = match fulfil(ctx, &input, &mut saga).await {
        Ok(receipt) => return Ok(receipt),
        Err(failure) => failure,
    };
    warn!("order {} is undone: {failure}", input.order_id);
    for failed in saga.run_compensations().await {
        warn!("compensation failed, somebody must look: {failed}");
    }
    Err(failure)
}

async fn fulfil(ctx: Context, input: &OrderInput, saga: &mut Saga) -> Result<Receipt, Failure> {
    let order_id = input.order_id.as_str();
    let reserve = Reserve {
        order_id,
        items: &input.items,
    };
    let reservation: String = ctx.activity("reserve", &reserve).await?;
    saga.compensate(
        "release",
        &Release {
            order_id,
            reservation: &reservation,
        },
    );

    let payment: String = ctx
        .activity(
            "charge",
            &Charge {
                order_id,
                amount_cents: input.amount_cents,
            },
        )
        .start_to_close(Duration::from_secs(30))
        .retry(RetryPolicy::new().maximum_attempts(5))
        .non_retryable_code("card-declined")
        .await?;
    saga.compensate(
        "refund",
        &Refund {
            order_id,
            payment: &payment,
        },
    );

    ctx.or_cancelled(ctx.sleep(Duration::from_millis(input.fraud_review_ms)))
        .await?;
    approval(ctx, Duration::from_millis(input.approval_deadline_ms)).await?;

    let ship = Ship {
        order_id,
        reservation: &reservation,
    };
    let shipment: String = ctx.activity("ship", &ship).await?;
    info!("order {order_id} is on its way: {shipment}");
    Ok(Receipt {
        order_id: order_id.to_owned(),
        reservation,
        payment,
        shipment,
    })
}

/// Waits for the approval. The first signal counts.
async fn approval(ctx: Context, deadline: Duration) -> Result<(), Failure> {
    let signal = ctx.signal::<Approval>("approve").recv();
    let answer = ctx.or_cancelled(ctx.timeout(deadline, signal)).await?;
    let Ok(approval) = answer else {
        return Err(Failure::non_retryable(
            "approval-deadline",
            "nobody approved in time",
        ));
    };
    if approval?.approved {
        Ok(())
    } else {
        Err(Failure::non_retryable("rejected", "the order was rejected"))
    }
}

steadfast_sdk::component!(order);

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_sdk::testing::{Call, Step, TestRun};

    const INPUT: &str = r#"{"order_id": "o", "amount_cents": 5, "fraud_review_ms": 10, "approval_deadline_ms": 20}"#;

    /// Starts an order and takes it to the wait for its approval.
    fn reviewed() -> TestRun {
        let input = steadfast_sdk::Payload {
            encoding: String::new(),
            data: INPUT.into(),
        };
        let mut run = TestRun::start::<order>(&input);
        run.resolve(1, "r");
        run.resolve(2, "p");
        run.fire(3);
        run
    }

    fn activities(run: &TestRun) -> Vec<String> {
        let activity = |call| match call {
            Call::ScheduleActivity { activity_type, .. } => Some(activity_type),
            _ => None,
        };
        run.calls().into_iter().filter_map(activity).collect()
    }

    #[test]
    fn approved_order_is_shipped() {
        let mut run = reviewed();
        run.signal("approve", &answer(true));
        run.resolve(5, "s");
        let receipt = run.output::<Receipt>().expect("it completed");
        assert_eq!(receipt.shipment, "s");
        assert_eq!(activities(&run), ["reserve", "charge", "ship"]);
    }

    #[test]
    fn rejected_late_and_cancelled_orders_are_undone_in_reverse() {
        let mut rejected = reviewed();
        rejected.signal("approve", &answer(false));
        assert_undone(rejected, "rejected");
        let mut late = reviewed();
        late.fire(4);
        assert_undone(late, "approval-deadline");
        let mut cancelled = reviewed();
        cancelled.request_cancel("");
        assert_undone(cancelled, "");
    }

    fn assert_undone(mut run: TestRun, code: &str) {
        assert_eq!(activities(&run), ["reserve", "charge", "refund"]);
        run.resolve(5, &());
        assert_eq!(activities(&run), ["reserve", "charge", "refund", "release"]);
        match run.resolve(6, &()) {
            Step::Failed(failure) => assert_eq!(failure.code(), code),
            Step::Canceled(_) => assert_eq!(code, ""),
            step => panic!("{step:?}"),
        }
    }

    fn answer(approved: bool) -> impl Serialize {
        std::collections::BTreeMap::from([("approved", approved)])
    }
}
