//! `http.request` against a server on loopback.

use std::time::Duration;

use serde_json::{Value, json};
use steadfast_activities::{HttpOptions, HttpSender, http};
use steadfast_model::{Failure, Frame, Millis, Payload};
use steadfast_ports::guest::CallOptions;
use steadfast_runtime::Activities;

use crate::server::{Answer, Server, say};
use crate::world::{Host, completed};

fn options(allow: &[&str]) -> HttpOptions {
    let allow = allow
        .iter()
        .map(|text| text.parse().expect("a pattern"))
        .collect();
    HttpOptions {
        allow,
        ..HttpOptions::default()
    }
}

async fn send(allow: &[&str], input: &Value) -> Result<Value, Failure> {
    let sender = HttpSender::new(options(allow));
    let payload = Payload::json(input.to_string());
    let answer = sender.send(&payload, "default/a b/run/1").await?;
    Ok(serde_json::from_slice(&answer.data).expect("JSON"))
}

fn frame(result: Result<Value, Failure>) -> Frame {
    result
        .expect_err("a failure")
        .outer()
        .expect("a frame")
        .clone()
}

#[tokio::test]
async fn a_request_goes_out_as_described_and_its_answer_comes_back() {
    let json_type = "content-type: application/json\r\nX-Many: 1\r\nx-many: 2\r\n";
    let server = Server::new(vec![say(
        "201 Created",
        json_type,
        r#"{"id":  9007199254740993}"#,
    )])
    .await;
    let sender = HttpSender::new(options(&["127.0.0.1"]));
    let url = server.url("/charges?x=1");
    let input = format!(
        r#"{{"method": "POST", "url": "{url}", "headers": {{"X-Own": "yes"}},
            "body": {{"json": {{"amount":  9007199254740993}}}}}}"#
    );
    let answer = sender
        .send(&Payload::json(input), "default/a b%/run/1")
        .await
        .expect("an answer");
    let text = String::from_utf8(answer.data).expect("text");
    assert!(
        text.contains(r#""body":{"json":{"id":  9007199254740993}}"#),
        "{text}"
    );
    let answer: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(answer["status"], 201);
    assert_eq!(answer["headers"]["x-many"], "1, 2");
    let asked = server.asked().remove(0);
    assert!(
        asked.starts_with("POST /charges?x=1 HTTP/1.1\r\n"),
        "{asked}"
    );
    for part in [
        "x-own: yes\r\n",
        "content-type: application/json\r\n",
        "idempotency-key: default/a%20b%25/run/1\r\n",
        "user-agent: steadfast/",
        "\r\n\r\n{\"amount\":  9007199254740993}",
    ] {
        assert!(asked.contains(part), "{part} is not in {asked}");
    }
}

#[tokio::test]
async fn bodies_have_three_forms_in_both_directions() {
    let cases = [
        (
            json!({ "text": "h\u{e9}" }),
            "text/plain; charset=utf-8",
            "h\u{e9}",
        ),
        (
            json!({ "base64": "aGk=" }),
            "application/octet-stream",
            "hi",
        ),
    ];
    for (body, content_type, sent) in cases {
        let server = Server::new(vec![say("200 OK", "", "plain")]).await;
        let input = json!({ "method": "PUT", "url": server.url("/"), "body": body });
        let answer = send(&["127.0.0.1"], &input).await.expect("an answer");
        assert_eq!(answer["body"], json!({ "text": "plain" }));
        let asked = server.asked().remove(0);
        assert!(
            asked.contains(&format!("content-type: {content_type}\r\n")),
            "{asked}"
        );
        assert!(asked.ends_with(&format!("\r\n\r\n{sent}")), "{asked}");
    }
    // The activity's own header wins.
    let server = Server::new(vec![say("204 No Content", "", "")]).await;
    let headers = json!({ "Idempotency-Key": "mine" });
    let input = json!({ "url": server.url("/"), "headers": headers });
    send(&["127.0.0.1"], &input).await.expect("an answer");
    assert!(server.asked()[0].contains("idempotency-key: mine\r\n"));
}

#[tokio::test]
async fn hosts_that_are_not_allowed_are_never_asked() {
    let server = Server::new(vec![say("200 OK", "", "")]).await;
    let port = server.port;
    let url = server.url("/");
    let cases: [(&[&str], String); 6] = [
        (&[], url.clone()),
        (&["example.com"], url.clone()),
        (&["127.0.0.1:1"], url.clone()),
        (&["*.0.0.1"], url.clone()),
        (&["example.com"], format!("http://localhost:{port}/")),
        (&["169.254.169.253"], "http://169.254.169.254/".to_owned()),
    ];
    for (allow, url) in cases {
        let frame = frame(send(allow, &json!({ "url": url })).await);
        assert_eq!(
            (frame.code.as_str(), frame.non_retryable),
            ("http.not-allowed", true),
            "{url}"
        );
    }
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn inputs_that_make_no_sense_are_not_tried_again() {
    let cases = [
        json!({}),
        json!({ "url": "ftp://127.0.0.1/" }),
        json!({ "url": "/relative" }),
        json!({ "url": "http://user:secret@127.0.0.1/" }),
        json!({ "url": "http://127.0.0.1/", "method": "G T" }),
        json!({ "url": "http://127.0.0.1/", "headers": { "a b": "c" } }),
        json!({ "url": "http://127.0.0.1/", "headers": { "a": "b\r\nc: d" } }),
        json!({ "url": "http://127.0.0.1/", "headers": { "Host": "other" } }),
        json!({ "url": "http://127.0.0.1/", "body": { "base64": "!" } }),
        json!({ "url": "http://127.0.0.1/", "bodi": {} }),
    ];
    for input in cases {
        let frame = frame(send(&["127.0.0.1"], &input).await);
        assert_eq!(
            (frame.code.as_str(), frame.non_retryable),
            ("http.invalid-input", true),
            "{input}"
        );
    }
}

#[tokio::test]
async fn statuses_are_judged_by_whether_a_retry_can_help() {
    let cases = [
        ("404 Not Found", false, None),
        ("404 Not Found", true, Some(true)),
        ("301 Moved", true, None),
        ("429 Too Many", false, Some(false)),
        ("500 Oops", false, Some(false)),
        ("503 Later", true, Some(false)),
    ];
    for (status, fail_on_status, non_retryable) in cases {
        let server = Server::new(vec![say(status, "Retry-After: 7\r\n", "why")]).await;
        let input = json!({ "url": server.url("/"), "fail_on_status": fail_on_status });
        let result = send(&["127.0.0.1"], &input).await;
        let Some(non_retryable) = non_retryable else {
            assert_eq!(result.expect("a result")["body"]["text"], "why");
            continue;
        };
        let frame = frame(result);
        assert_eq!(
            (frame.code.as_str(), frame.non_retryable),
            ("http.status", non_retryable)
        );
        assert_eq!(frame.next_retry_delay, Millis(7000));
        let details: Value = serde_json::from_slice(&frame.details.expect("details").data).unwrap();
        assert_eq!(details["body"]["text"], "why");
    }
}

#[tokio::test]
async fn redirects_are_followed_only_as_far_as_allowed() {
    let other = Server::new(vec![say("200 OK", "", "other")]).await;
    let location = |to: &str| format!("location: {to}\r\n");
    let auth = json!({ "authorization": "secret", "x-own": "kept" });
    // Not followed unless asked for.
    let server = Server::new(vec![say("302 Found", &location("/next"), "")]).await;
    let answer = send(&["127.0.0.1"], &json!({ "url": server.url("/") }))
        .await
        .expect("one");
    assert_eq!(
        (answer["status"].as_u64(), server.asked().len()),
        (Some(302), 1)
    );
    // Followed within a host, with credentials; a POST becomes a GET.
    let answers = vec![
        say("302 Found", &location("next?a=b"), ""),
        say("200 OK", "", "there"),
    ];
    let server = Server::new(answers).await;
    let input = json!({ "url": server.url("/x/y"), "redirects": 1, "method": "POST",
        "headers": auth, "body": { "text": "data" } });
    let answer = send(&["127.0.0.1"], &input).await.expect("an answer");
    assert_eq!(answer["body"]["text"], "there");
    let second = server.asked().remove(1);
    assert!(
        second.starts_with("GET /x/next?a=b HTTP/1.1\r\n"),
        "{second}"
    );
    assert!(
        second.contains("authorization: secret") && !second.contains("data"),
        "{second}"
    );
    // Credentials do not go to another host; 307 keeps method and body.
    let answers = vec![say("307 Same", &location(&other.url("/o")), "")];
    let server = Server::new(answers).await;
    let input = json!({ "url": server.url("/"), "redirects": 5, "method": "POST",
        "headers": auth, "body": { "text": "data" } });
    send(&["127.0.0.1"], &input).await.expect("an answer");
    let asked = other.asked().remove(0);
    assert!(
        asked.starts_with("POST /o ") && asked.ends_with("data"),
        "{asked}"
    );
    assert!(
        !asked.contains("secret") && asked.contains("x-own: kept"),
        "{asked}"
    );
    // A redirect to a host that is not allowed is refused before it is asked.
    for to in [other.url("/o"), "http://169.254.169.254/latest".to_owned()] {
        let server = Server::new(vec![say("302 Found", &location(&to), "")]).await;
        let allow = format!("127.0.0.1:{}", server.port);
        let input = json!({ "url": server.url("/"), "redirects": 1 });
        let frame = frame(send(&[&allow], &input).await);
        assert_eq!(
            (frame.code.as_str(), frame.non_retryable),
            ("http.not-allowed", true)
        );
    }
    assert_eq!(other.asked().len(), 1);
    // A circle ends.
    let server = Server::new(vec![say("302 Found", &location("/"), "")]).await;
    let input = json!({ "url": server.url("/"), "redirects": 1000 });
    let answer = send(&["127.0.0.1"], &input).await.expect("an answer");
    assert_eq!(
        (answer["status"].as_u64(), server.asked().len()),
        (Some(302), 11)
    );
}

#[tokio::test]
async fn failures_of_the_network_may_be_tried_again() {
    let hangs_up = Server::new(vec![Answer::HangUp]).await;
    let short = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc".to_owned();
    let breaks_off = Server::new(vec![Answer::Say(short)]).await;
    for url in [
        hangs_up.url("/"),
        breaks_off.url("/"),
        "http://127.0.0.1:1/".to_owned(),
    ] {
        let frame = frame(send(&["127.0.0.1"], &json!({ "url": url })).await);
        assert_eq!(
            (frame.code.as_str(), frame.non_retryable),
            ("http.network", false),
            "{url}"
        );
    }
    let silent = Server::new(vec![Answer::Silence]).await;
    let input = json!({ "url": silent.url("/"), "timeout_ms": 20 });
    let frame = frame(send(&["127.0.0.1"], &input).await);
    assert_eq!(
        (frame.code.as_str(), frame.non_retryable),
        ("http.timeout", false)
    );
}

#[tokio::test]
async fn answers_that_are_too_large_are_not_read() {
    let server = Server::new(vec![say("200 OK", "", &"x".repeat(1001))]).await;
    let sender = HttpSender::new(HttpOptions {
        response_bytes_max: 1000,
        ..options(&["127.0.0.1"])
    });
    let input = Payload::json(json!({ "url": server.url("/") }).to_string());
    let failure = sender.send(&input, "k").await.expect_err("a failure");
    let frame = failure.outer().expect("a frame");
    assert_eq!(
        (frame.code.as_str(), frame.non_retryable),
        ("http.too-large", true)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_activity_is_tried_again_with_the_same_key_after_the_pause_that_is_asked_for() {
    let later = say("503 Later", "Retry-After: 60\r\n", "");
    let server = Server::new(vec![later, say("200 OK", "", "done")]).await;
    let timeout = Duration::from_secs(30);
    let options = HttpOptions {
        timeout,
        ..options(&["127.0.0.1"])
    };
    let call = CallOptions {
        heartbeat: Millis(10_000),
        ..CallOptions::default()
    };
    let host = Host::new(http(Activities::new(), options), call).await;
    let input = json!({ "url": server.url("/") }).to_string();
    let target = host.begin("order 1", "http.request", &input).await;
    assert_eq!(host.pass_backoff(&target).await, Millis(60_000));
    let answer = completed(host.end(&target).await);
    assert!(answer.contains(r#""body":{"text":"done"}"#), "{answer}");
    let key = |request: &String| {
        let line = request
            .lines()
            .find(|line| line.starts_with("idempotency-key: "));
        line.expect("a key").to_owned()
    };
    let keys: Vec<_> = server.asked().iter().map(key).collect();
    assert_eq!((keys.len(), &keys[0]), (2, &keys[1]));
    let run_id = target.run_id.expect("a run");
    assert_eq!(
        keys[0],
        format!("idempotency-key: default/order%201/{run_id}/1")
    );
}
