//! A shopping basket: queries look into it, updates change it and answer at once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use steadfast_sdk::{Context, Failure, workflow};

/// Most pieces of one article.
const QUANTITY_MAX: u32 = 99;

/// Pieces of an article.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Item {
    /// The article.
    pub sku: String,
    /// How many.
    pub quantity: u32,
}

/// How a basket is paid.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Payment {
    /// The card.
    pub card: String,
}

/// What is in a basket.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
pub struct Basket {
    /// Pieces by article.
    pub items: BTreeMap<String, u32>,
    /// The receipt, once it is paid.
    pub receipt: Option<String>,
}

impl Basket {
    fn pieces(&self) -> u32 {
        self.items.values().sum()
    }
}

type Shared = Rc<RefCell<Basket>>;

/// Holds a basket until it is paid. `add` answers with the number of pieces; `pay` charges the card
/// by an activity and answers with the receipt.
#[workflow(
    queries(contents: () -> Basket),
    updates(add: Item -> u32, pay: Payment -> String),
)]
async fn basket(ctx: Context) -> Result<Basket, Failure> {
    let basket = Shared::default();

    let seen = Rc::clone(&basket);
    ctx.on_query("contents", move |(): ()| {
        Ok::<_, Failure>(seen.borrow().clone())
    });

    let (seen, changed) = (Rc::clone(&basket), Rc::clone(&basket));
    ctx.on_validated_update(
        "add",
        move |item: &Item| may_add(&seen.borrow(), item),
        move |item: Item| {
            let changed = Rc::clone(&changed);
            async move {
                let mut basket = changed.borrow_mut();
                *basket.items.entry(item.sku).or_default() += item.quantity;
                Ok(basket.pieces())
            }
        },
    );

    let (seen, paid) = (Rc::clone(&basket), Rc::clone(&basket));
    ctx.on_validated_update(
        "pay",
        move |_: &Payment| match seen.borrow().pieces() {
            0 => Err(Failure::non_retryable("empty", "there is nothing to pay")),
            _ => Ok(()),
        },
        move |payment: Payment| pay(ctx, Rc::clone(&paid), payment),
    );

    ctx.wait_until(|| basket.borrow().receipt.is_some()).await;
    // Whoever sent an update gets an answer before the workflow ends.
    ctx.handlers_finished().await;
    let basket = basket.borrow().clone();
    Ok(basket)
}

fn may_add(basket: &Basket, item: &Item) -> Result<(), Failure> {
    let there = basket.items.get(&item.sku).copied().unwrap_or(0);
    let is_good =
        (1..=QUANTITY_MAX).contains(&item.quantity) && there + item.quantity <= QUANTITY_MAX;
    if basket.receipt.is_some() {
        Err(Failure::non_retryable("paid", "the basket is paid"))
    } else if is_good {
        Ok(())
    } else {
        let message = format!("between 1 and {QUANTITY_MAX} pieces of an article");
        Err(Failure::non_retryable("quantity", message))
    }
}

async fn pay(ctx: Context, basket: Shared, payment: Payment) -> Result<String, Failure> {
    let pieces = basket.borrow().pieces();
    let charge = format!("{pieces} pieces by card {}", payment.card);
    let receipt: String = ctx
        .activity("echo", &charge)
        .start_to_close(Duration::from_secs(10))
        .await?;
    basket.borrow_mut().receipt = Some(receipt.clone());
    Ok(receipt)
}

steadfast_sdk::component!(basket);

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_sdk::testing::{Call, Step, TestRun};

    fn item(sku: &str, quantity: u32) -> Item {
        Item {
            sku: sku.to_owned(),
            quantity,
        }
    }

    #[test]
    fn a_basket_is_filled_asked_and_paid() {
        let mut run = TestRun::start::<basket>(&());
        run.update("1", "add", &item("tea", 2)).expect("let in");
        run.update("2", "add", &item("jam", 3)).expect("let in");
        for (quantity, code) in [(0, "quantity"), (100, "quantity"), (98, "quantity")] {
            let refused = run.update("x", "add", &item("tea", quantity));
            assert_eq!(refused.expect_err("refused").code(), code);
        }
        let contents: Basket = run.query("contents", &()).expect("an answer");
        assert_eq!(contents.pieces(), 5);
        let card = Payment {
            card: "4711".to_owned(),
        };
        run.update("3", "pay", &card).expect("let in");
        assert_eq!(*run.step(), Step::Blocked);
        run.resolve(1, "5 pieces by card 4711");
        let ended: Basket = run.output().expect("it completed");
        assert_eq!(ended.receipt.as_deref(), Some("5 pieces by card 4711"));
        // The answer to the update comes before the end.
        assert!(matches!(run.calls().last(), Some(Call::CompleteUpdate(id, Ok(_))) if id == "3"));
        let contents: Basket = run.query("contents", &()).expect("also after the end");
        assert_eq!(contents, ended);
    }
}
