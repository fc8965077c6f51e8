//! Workflows that start workflows, and talk to others.

use serde::{Deserialize, Serialize};
use steadfast_sdk::{ChildCancellation, Context, Failure, IdReusePolicy, try_join_all, workflow};

/// What to assemble.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Assembly {
    /// How many parts.
    pub parts: u32,
    /// True if the parts wait until they are delivered.
    pub delivered: bool,
    /// The part that breaks, from 1; 0: none.
    pub broken: u32,
}

/// A part to make.
#[derive(Debug, Serialize, Deserialize)]
pub struct Part {
    /// Which, from 1.
    pub number: u32,
    /// True if it waits for the signal `deliver`.
    pub delivered: bool,
    /// True if it breaks.
    pub is_broken: bool,
}

/// Makes all parts at once, each by a child, and returns the sum of what they return.
#[workflow]
async fn assembly(ctx: Context, input: Assembly) -> Result<u32, Failure> {
    let own_id = ctx.info().workflow_id;
    let parts = (1..=input.parts).map(|number| {
        let part = Part {
            number,
            delivered: input.delivered,
            is_broken: number == input.broken,
        };
        ctx.child::<u32>("part", &part)
            .id(format!("{own_id}/part-{number}"))
            .id_reuse_policy(IdReusePolicy::AllowDuplicateFailedOnly)
            .cancellation(ChildCancellation::TryCancel)
            .start()
    });
    // The first failure ends the wait: the handles of the others are dropped, which cancels them.
    let made = try_join_all(parts).await?;
    Ok(made.into_iter().sum())
}

/// Makes one part.
#[workflow(signals(deliver: Option<String>))]
async fn part(ctx: Context, input: Part) -> Result<u32, Failure> {
    if input.is_broken {
        return Err(Failure::application("broken", "the part broke"));
    }
    if input.delivered {
        let deliver = ctx.signal::<Option<String>>("deliver");
        drop(deliver.recv().await?);
    }
    ctx.activity("echo", &input.number).await
}

/// Delivers a part: signals the execution of this id, and returns what became of it.
#[workflow]
async fn relay(ctx: Context, input: String) -> Result<String, Failure> {
    match ctx.execution(input).signal("deliver", &()).await {
        Ok(()) => Ok("delivered".to_owned()),
        Err(failure) => Ok(failure.code().to_owned()),
    }
}

steadfast_sdk::component!(assembly, part, relay);

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_sdk::testing::{Call, Step, TestRun};

    fn two() -> TestRun {
        let input = Assembly {
            parts: 2,
            ..Assembly::default()
        };
        let mut run = TestRun::start::<assembly>(&input);
        run.resolve(1, "run-1");
        run.resolve(3, "run-2");
        run
    }

    #[test]
    fn all_parts_are_added_up() {
        let mut run = two();
        run.resolve(4, &2_u32);
        run.resolve(2, &1_u32);
        assert_eq!(run.output::<u32>(), Some(3));
    }

    #[test]
    fn a_broken_part_cancels_the_others() {
        let mut run = two();
        let step = run.fail(2, Failure::application("broken", "no")).clone();
        assert!(matches!(step, Step::Failed(_)), "{step:?}");
        assert!(run.calls().contains(&Call::CancelChild(4)));
    }

    #[test]
    fn a_message_that_nobody_takes_is_an_answer_too() {
        let mut run = TestRun::start::<relay>("nobody");
        run.fail(
            1,
            Failure::application("external-workflow-execution-not-found", "no"),
        );
        let code = run.output::<String>();
        assert_eq!(
            code.as_deref(),
            Some("external-workflow-execution-not-found")
        );
    }
}
