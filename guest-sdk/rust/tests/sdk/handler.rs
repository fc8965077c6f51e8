//! Queries and updates: what handlers may do, and what becomes of what they must not.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use steadfast_sdk::testing::{Step, TestRun};
use steadfast_sdk::{Context, Failure, workflow};

use crate::calls;

/// Adds numbers slowly, one by one.
#[workflow(queries(total: () -> u32), updates(add: u32 -> u32, "add-later": u32 -> u32))]
async fn adding(ctx: Context) -> Result<u32, Failure> {
    let total = Rc::new(Cell::new(0));
    let seen = Rc::clone(&total);
    ctx.on_query("total", move |(): ()| Ok::<u32, Failure>(seen.get()));
    let changed = Rc::clone(&total);
    ctx.on_validated_update(
        "add",
        |number: &u32| match number {
            0 => Err(Failure::non_retryable("zero", "nothing to add")),
            _ => Ok(()),
        },
        move |number: u32| {
            let changed = Rc::clone(&changed);
            async move {
                changed.set(changed.get() + number);
                Ok(changed.get())
            }
        },
    );
    let changed = Rc::clone(&total);
    ctx.on_update("add-later", move |number: u32| {
        let changed = Rc::clone(&changed);
        async move {
            ctx.sleep(Duration::from_millis(1)).await;
            let checked: u32 = ctx.activity("check", &number).await?;
            changed.set(changed.get() + checked);
            Ok(changed.get())
        }
    });
    let _: u32 = ctx.signal("go").recv().await?;
    assert_eq!(
        ctx.all_handlers_finished(),
        ctx.history_length() % 2 == 1,
        "the test sends `go` at an even event only while a handler runs"
    );
    ctx.handlers_finished().await;
    Ok(total.get())
}

#[test]
fn handlers_run_as_tasks_and_answer() {
    let mut run = TestRun::start::<adding>(&());
    run.update("a", "add", &2).expect("let in");
    run.update("b", "add-later", &3).expect("let in");
    assert_eq!(run.query::<u32>("total", &()).expect("an answer"), 2);
    run.signal("go", &0);
    assert_eq!(*run.step(), Step::Blocked, "a handler is still running");
    run.fire(1);
    run.resolve(2, &30);
    assert_eq!(run.output::<u32>(), Some(32));
    assert_eq!(
        calls(&run),
        ["complete a", "timer#1(1)", "check#2", "complete b"]
    );
    assert_eq!(
        run.query::<u32>("total", &()).expect("also after the end"),
        32
    );
}

#[test]
fn a_failed_handler_is_an_answer_and_not_the_end() {
    let mut run = TestRun::start::<adding>(&());
    run.update("a", "add-later", &3).expect("let in");
    run.fire(1);
    run.fail(2, Failure::application("no", "not today"));
    assert_eq!(*run.step(), Step::Blocked);
    let outcome = run.update_outcome("a").expect("answered");
    assert_eq!(outcome.expect_err("failed").code(), "no");
}

#[test]
fn validators_refuse_and_unknown_names_name_the_known_ones() {
    let mut run = TestRun::start::<adding>(&());
    let refused = run.update("a", "add", &0).expect_err("refused");
    assert_eq!(refused.code(), "zero");
    let refused = run.update("a", "add", "text").expect_err("refused");
    assert_eq!(refused.code(), "decode");
    let refused = run.update("a", "sub", &1).expect_err("refused");
    assert_eq!(refused.code(), "unknown-update");
    assert!(
        refused.message().contains("known: add, add-later"),
        "{refused:?}"
    );
    let failed = run.query::<u32>("sum", &()).expect_err("unknown");
    assert!(failed.message().contains("known: total"), "{failed:?}");
    assert!(calls(&run).is_empty());
}

#[workflow]
async fn misbehaving(ctx: Context) -> Result<(), Failure> {
    let kept = Rc::new(RefCell::new(None));
    ctx.on_query("timer", move |(): ()| {
        *kept.borrow_mut() = Some(ctx.sleep(Duration::from_millis(1)));
        Ok::<(), Failure>(())
    });
    ctx.on_query("spawn", move |(): ()| {
        drop(ctx.spawn(async {}));
        Ok::<(), Failure>(())
    });
    ctx.on_query("patch", move |(): ()| {
        ctx.deprecate_patch("p");
        Ok::<(), Failure>(())
    });
    ctx.cancelled().await;
    Ok(())
}

#[test]
fn questions_only_read() {
    for (query, call) in [
        ("timer", "timers.start"),
        ("spawn", "Context::spawn"),
        ("patch", "markers.deprecate-patch"),
    ] {
        let run = TestRun::start::<misbehaving>(&());
        let asked = catch_unwind(AssertUnwindSafe(|| run.query::<()>(query, &())));
        let panic = asked.expect_err("it must not go through");
        let text = panic.downcast_ref::<String>().expect("a text");
        assert_eq!(
            text,
            &format!("the query {query:?} called {call}; it may only read")
        );
        assert!(calls(&run).is_empty());
    }
}

#[test]
fn the_macro_describes_queries_and_updates() {
    use steadfast_sdk::Workflow;
    let names = |messages: Vec<steadfast_sdk::MessageDescription>| -> Vec<String> {
        messages.into_iter().map(|message| message.name).collect()
    };
    assert_eq!(names(adding::queries()), ["total"]);
    assert_eq!(names(adding::updates()), ["add", "add-later"]);
    assert!(adding::signals().is_empty());
}

#[cfg(feature = "schema")]
#[test]
fn the_macro_describes_types_both_ways() {
    use steadfast_sdk::Workflow;
    #[workflow(schema, queries(list: u32 -> Vec<String>), updates(set: String -> u32))]
    async fn typed(_ctx: Context) -> Result<(), Failure> {
        Ok(())
    }
    let [query] = &typed::queries()[..] else {
        panic!("one query")
    };
    assert!(query.input_schema.contains("\"integer\""));
    assert!(query.output_schema.contains("\"array\""));
    let [update] = &typed::updates()[..] else {
        panic!("one update")
    };
    assert!(update.input_schema.contains("\"string\""));
    assert!(update.output_schema.contains("\"integer\""));
}
