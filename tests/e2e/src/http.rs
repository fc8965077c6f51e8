//! A small HTTP client: one request per connection, JSON in and out.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

/// An answer.
#[derive(Debug, Clone)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The head, as it came.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// The body as JSON; `Null` when it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

/// Sends a request with raw bytes.
pub fn raw(
    address: &str,
    method: &str,
    path: &str,
    content_type: &str,
    body: &[u8],
) -> Result<Response> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(120)))?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\
         content-type: {content_type}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    // A server may answer and close before it has taken a body that it refuses.
    let sent = stream.write_all(body);
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes);
    if bytes.is_empty() {
        sent?;
        read?;
    }
    let end = bytes
        .windows(4)
        .position(|w| w == b"\r\n\r\n")
        .context("no response")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok(Response {
        status,
        head,
        body: bytes[end + 4..].to_vec(),
    })
}

/// Sends JSON.
pub fn post(address: &str, path: &str, body: &Value) -> Result<Response> {
    raw(
        address,
        "POST",
        path,
        "application/json",
        body.to_string().as_bytes(),
    )
}

/// Gets something.
pub fn get(address: &str, path: &str) -> Result<Response> {
    raw(address, "GET", path, "text/plain", b"")
}
