//! `echo`, `fail` and `sleep`.

use steadfast_activities::dev;
use steadfast_model::{EventKind, Millis};
use steadfast_ports::guest::CallOptions;
use steadfast_runtime::Activities;

use crate::world::{Host, completed, failed};

async fn host() -> Host {
    Host::new(dev(Activities::new()), CallOptions::default()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn echo_returns_its_input_byte_for_byte() {
    let input = r#"{"n":  9007199254740993}"#;
    assert_eq!(completed(host().await.run("echo", input).await), input);
}

#[tokio::test(flavor = "multi_thread")]
async fn fail_fails_as_it_is_told() {
    let input = r#"{"code": "boom", "message": "no", "non_retryable": true}"#;
    assert_eq!(failed(host().await.run("fail", input).await), "boom");
    assert_eq!(
        failed(host().await.run("fail", "7").await),
        "dev.invalid-input"
    );
    let host = host().await;
    let target = host.begin("a", "fail", r#"{"times": 2}"#).await;
    assert_eq!(host.pass_backoff(&target).await, Millis(1000));
    assert_eq!(host.pass_backoff(&target).await, Millis(2000));
    assert_eq!(completed(host.end(&target).await), "3");
}

#[tokio::test(flavor = "multi_thread")]
async fn sleep_ends_when_it_is_over_or_cancelled() {
    let host = host().await;
    assert_eq!(completed(host.run("sleep", r#"{"ms": 150}"#).await), "null");
    let target = host.begin("b", "sleep", r#"{"ms": 600000}"#).await;
    host.cancel(&target).await;
    let end = host.end(&target).await;
    assert!(
        matches!(end, EventKind::WorkflowExecutionCanceled { .. }),
        "{end:?}"
    );
}
