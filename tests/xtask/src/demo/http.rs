//! Just enough HTTP to call the host's API: one JSON request per connection.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Longest wait for an answer; longer than any long poll of the worker.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Posts JSON and returns the status and the JSON of the answer.
pub(crate) fn post(authority: &str, path: &str, body: &Value) -> Result<(u16, Value)> {
    let body = body.to_string();
    let mut stream = TcpStream::connect(authority).context("cannot connect")?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {authority}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = Vec::new();
    stream
        .read_to_end(&mut answer)
        .context("the connection broke")?;
    parse(&answer)
}

fn parse(answer: &[u8]) -> Result<(u16, Value)> {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text
        .split_once("\r\n\r\n")
        .context("the answer is cut off")?;
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let status = status.context("the answer has no status")?;
    let header = |name: &str| {
        head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name)
                .then(|| value.trim().to_owned())
        })
    };
    // The host gives the length of every JSON answer.
    if let Some(length) = header("content-length").and_then(|length| length.parse::<usize>().ok())
        && body.len() < length
    {
        bail!("the answer is cut off");
    }
    if body.is_empty() {
        return Ok((status, Value::Null));
    }
    Ok((
        status,
        serde_json::from_str(body).context("the answer is not JSON")?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_whole_or_an_error() {
        let whole = b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n{\"a\": 1}";
        assert_eq!(parse(whole).unwrap(), (200, serde_json::json!({"a": 1})));
        assert_eq!(
            parse(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap(),
            (204, Value::Null)
        );
        for length in 0..whole.len() {
            assert!(parse(&whole[..length]).is_err(), "cut at {length}");
        }
    }
}
