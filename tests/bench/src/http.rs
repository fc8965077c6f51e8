//! The smallest HTTP/1.1 clients that measure a server and not themselves.

use std::io::{Read, Write};

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn request(method: &str, path: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!(
        "{method} {path} HTTP/1.1\r\nhost: bench\r\ncontent-type: {content_type}\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// Finds the end of a response: status, where its body begins, and its length.
fn head(bytes: &[u8]) -> Result<Option<(u16, usize, usize)>> {
    let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(bytes.get(..end).unwrap_or_default())?;
    let status = text.split(' ').nth(1).context("no status")?.parse()?;
    let length = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .context("no content-length")?
        .1
        .trim()
        .parse()?;
    Ok(Some((status, end + 4, length)))
}

fn checked(status: u16, body: Vec<u8>) -> Result<Vec<u8>> {
    if status >= 300 {
        bail!("status {status}: {}", String::from_utf8_lossy(&body));
    }
    Ok(body)
}

/// A connection that blocks.
pub(crate) struct Blocking(std::net::TcpStream);

impl Blocking {
    pub(crate) fn connect(address: &str) -> Result<Self> {
        let stream = std::net::TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self(stream))
    }

    pub(crate) fn get(&mut self, path: &str) -> Result<Vec<u8>> {
        self.send(&request("GET", path, "text/plain", b""))
    }

    pub(crate) fn post(&mut self, path: &str, content_type: &str, body: &[u8]) -> Result<Vec<u8>> {
        self.send(&request("POST", path, content_type, body))
    }

    fn send(&mut self, request: &[u8]) -> Result<Vec<u8>> {
        self.0.write_all(request)?;
        let mut bytes = Vec::new();
        let mut buffer = [0; 16 * 1024];
        loop {
            if let Some((status, at, length)) = head(&bytes)?
                && let Some(body) = bytes.get(at..at + length)
            {
                return checked(status, body.to_vec());
            }
            match self.0.read(&mut buffer)? {
                0 => bail!("the connection was closed"),
                n => bytes.extend_from_slice(buffer.get(..n).unwrap_or_default()),
            }
        }
    }
}

/// A connection for many tasks' worth of load.
pub(crate) struct Connection(tokio::net::TcpStream);

impl Connection {
    pub(crate) async fn connect(address: &str) -> Result<Self> {
        let stream = tokio::net::TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self(stream))
    }

    pub(crate) async fn post(&mut self, path: &str, body: &str) -> Result<Vec<u8>> {
        self.0
            .write_all(&request("POST", path, "application/json", body.as_bytes()))
            .await?;
        let mut bytes = Vec::with_capacity(4096);
        loop {
            if let Some((status, at, length)) = head(&bytes)?
                && let Some(body) = bytes.get(at..at + length)
            {
                return checked(status, body.to_vec());
            }
            if self.0.read_buf(&mut bytes).await? == 0 {
                bail!("the connection was closed");
            }
        }
    }
}
