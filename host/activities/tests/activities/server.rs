//! A server on loopback that answers what it is told, in order, and remembers what it was asked.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the server does with one request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// Sends this text and closes the connection.
    Say(String),
    /// Closes the connection.
    HangUp,
    /// Never answers.
    Silence,
}

/// An answer with this status, these further headers and this body.
pub(crate) fn say(status: &str, headers: &str, body: &str) -> Answer {
    let length = body.len();
    Answer::Say(format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    ))
}

pub(crate) struct Server {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// The last answer is repeated.
    pub(crate) async fn new(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        tokio::spawn(run(listener, answers, asked.clone()));
        Self { port, asked }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The requests so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

async fn run(listener: TcpListener, answers: Vec<Answer>, asked: Arc<Mutex<Vec<String>>>) {
    for i in 0.. {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let request = read(&mut stream).await;
        asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(request);
        match &answers[i.min(answers.len() - 1)] {
            Answer::Say(text) => stream.write_all(text.as_bytes()).await.expect("sent"),
            Answer::HangUp => drop(stream),
            Answer::Silence => {
                tokio::spawn(async move {
                    std::future::pending::<()>().await;
                    drop(stream);
                });
            }
        }
    }
}

async fn read(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).await.expect("a request");
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |length| length.parse().expect("a number")) {
            return text;
        }
    }
}
