//! Real connections: keep-alive, clients that go, an end that drains.

use std::time::Duration;

use steadfast_ports::fake::Op;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::world::{Host, WORKFLOWS};

const LIMIT: Duration = Duration::from_secs(30);

struct Server {
    address: std::net::SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<std::io::Result<()>>,
}

async fn serve(host: &Host) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (stop, stopped) = oneshot::channel();
    let shutdown = async { drop(stopped.await) };
    let served = tokio::spawn(steadfast_api::serve(
        listener,
        host.router.clone(),
        shutdown,
    ));
    Server {
        address,
        stop,
        served,
    }
}

/// Sends a request and reads the answer: head and body.
async fn ask(stream: &mut TcpStream, method: &str, uri: &str, body: &str) -> String {
    let head = format!(
        "{method} {uri} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    answer(stream).await
}

async fn answer(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).await.expect("an answer");
        assert!(count > 0, "the connection was closed after {text:?}");
        text.push_str(std::str::from_utf8(&buffer[..count]).expect("text"));
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.expect("a length").parse().expect("a number") {
            return text;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_takes_many_requests() {
    let host = Host::new(vec![("echo", vec![Op::Complete])]).await;
    let server = serve(&host).await;
    let mut stream = TcpStream::connect(server.address).await.expect("connected");
    for i in 0..100 {
        let body = format!("{{\"workflow_type\": \"echo\", \"workflow_id\": \"w{i}\"}}");
        let text = ask(&mut stream, "POST", WORKFLOWS, &body).await;
        assert!(text.starts_with("HTTP/1.1 201 "), "{text}");
    }
    drop(stream);
    drop(server.stop);
    tokio::time::timeout(LIMIT, server.served)
        .await
        .expect("it ends")
        .unwrap()
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_answers_long_polls_and_ends() {
    let host = Host::new(vec![("wait", vec![Op::WaitSignal("go".to_owned())])]).await;
    host.start("wait", "a").await;
    let server = serve(&host).await;
    let requests = [
        (
            "GET",
            format!("{WORKFLOWS}/a/result?wait_ms=60000"),
            "",
            r#"{"status":"running"}"#,
        ),
        (
            "GET",
            format!("{WORKFLOWS}/a/history?from=2&wait_ms=60000"),
            "",
            r#"{"events":[],"next":2,"is_closed":false}"#,
        ),
        (
            "POST",
            "/api/v1/namespaces/default/task-queues/q/poll".to_owned(),
            r#"{"worker": "w", "wait_ms": 60000}"#,
            r#"{"tasks":[]}"#,
        ),
    ];
    let mut waiting = Vec::new();
    for (method, uri, body, expected) in requests {
        let mut stream = TcpStream::connect(server.address).await.expect("connected");
        let asked = tokio::spawn(async move { ask(&mut stream, method, &uri, body).await });
        waiting.push((asked, expected));
    }
    in_flight(&host, 4).await;
    drop(server.stop);
    for (asked, expected) in waiting {
        let text = tokio::time::timeout(LIMIT, asked)
            .await
            .expect("in time")
            .expect("an answer");
        assert!(text.ends_with(expected), "{text}");
    }
    tokio::time::timeout(LIMIT, server.served)
        .await
        .expect("it ends")
        .unwrap()
        .unwrap();
    assert!(
        TcpStream::connect(server.address).await.is_err(),
        "nobody listens any more"
    );
}

/// Waits until so many requests have no answer, the one that looks included.
async fn in_flight(host: &Host, count: u32) {
    let line = format!("steadfast_http_requests_in_flight {count}\n");
    let reached = async {
        while !host.get("/metrics").await.text().contains(&line) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, reached).await.expect("in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_leaves_nothing_behind() {
    let fan = Op::activity("work", "x");
    let host = Host::new(vec![("one", vec![fan, Op::Complete])]).await;
    let server = serve(&host).await;
    let body = r#"{"worker": "gone", "wait_ms": 60000}"#;
    let head = format!(
        "POST /api/v1/namespaces/default/task-queues/default/poll HTTP/1.1\r\nhost: x\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(server.address).await.expect("connected");
    stream.write_all(head.as_bytes()).await.expect("sent");
    in_flight(&host, 2).await;
    drop(stream);
    in_flight(&host, 1).await;
    // The task does not go to the worker that is no longer there.
    host.start("one", "a").await;
    assert_eq!(host.poll().await["attempt"], 1);
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_is_announced_too_large_is_answered_before_it_is_sent() {
    let host = Host::new(vec![]).await;
    let server = serve(&host).await;
    let mut stream = TcpStream::connect(server.address).await.expect("connected");
    let head = "POST /api/v1/components HTTP/1.1\r\nhost: x\r\n\
                content-type: application/wasm\r\ncontent-length: 99999999999\r\n\r\n";
    stream.write_all(head.as_bytes()).await.expect("sent");
    let text = tokio::time::timeout(LIMIT, answer(&mut stream))
        .await
        .expect("in time");
    assert!(text.starts_with("HTTP/1.1 413 "), "{text}");
    drop(server);
}
