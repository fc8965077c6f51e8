//! Patches and side effects.

use steadfast_sdk::testing::{Step, TestRun};
use steadfast_sdk::{Context, Failure, join, workflow};

use crate::calls;

#[workflow]
async fn changed(ctx: Context) -> Result<&'static str, Failure> {
    ctx.deprecate_patch("older");
    if ctx.patched("p") {
        ctx.activity::<()>("new", &()).await?;
        return Ok("new");
    }
    ctx.activity::<()>("old", &()).await?;
    Ok("old")
}

#[test]
fn a_patch_chooses_the_branch() {
    let mut run = TestRun::start::<changed>(&());
    run.resolve(1, &());
    assert_eq!(run.output::<String>().as_deref(), Some("new"));
    assert_eq!(calls(&run), ["deprecate(older)", "patched(p)", "new#1"]);
    let mut run = TestRun::start_before::<changed>(&(), &["p"]);
    run.resolve(1, &());
    assert_eq!(run.output::<String>().as_deref(), Some("old"));
}

#[workflow]
async fn computing(ctx: Context) -> Result<u32, Failure> {
    ctx.side_effect("rate", || 7)
}

#[test]
fn a_side_effect_gives_its_value_to_the_host_and_gets_it_back() {
    let run = TestRun::start::<computing>(&());
    assert_eq!(run.output(), Some(7));
    assert_eq!(calls(&run), ["rate=7"]);
}

#[workflow]
async fn branches(ctx: Context) -> Result<Vec<u32>, Failure> {
    let order = std::cell::RefCell::new(Vec::new());
    let branch = |n: u32| {
        let order = &order;
        async move {
            let is_new = ctx.patched("p");
            order.borrow_mut().push(n);
            ctx.activity::<()>(if is_new { "new" } else { "old" }, &n)
                .await
        }
    };
    let (a, b) = join!(branch(1), branch(2));
    a.and(b)?;
    Ok(order.into_inner())
}

#[test]
fn scenario_47_a_version_check_lets_no_other_branch_run() {
    for old in [&[][..], &["p"]] {
        let mut run = TestRun::start_before::<branches>(&(), old);
        let name = if old.is_empty() { "new" } else { "old" };
        let both = [
            "patched(p)".to_owned(),
            format!("{name}#1"),
            "patched(p)".to_owned(),
            format!("{name}#2"),
        ];
        assert_eq!(calls(&run), both);
        run.resolve(2, &());
        assert!(matches!(run.resolve(1, &()), Step::Completed(_)));
        assert_eq!(run.output(), Some(vec![1, 2]));
    }
}
