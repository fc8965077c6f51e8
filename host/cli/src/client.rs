//! The HTTP client: addresses, retries, and the server's errors as ours.
//!
//! A request is sent again when the connection was refused or broke. That is safe because
//! everything that changes something carries a request id.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use reqwest::Method;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind, Result};

/// Where a server listens unless it is told otherwise.
pub(crate) const DEFAULT_ADDRESS: &str = "http://127.0.0.1:7233";

/// The heading over options that every verb takes.
pub(crate) const GLOBAL: &str = "Global options";

/// How long a server that has never answered is tried.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a server that has answered is tried: as long as a restart takes.
const PATIENCE_AFTER_ANSWER: Duration = Duration::from_secs(15);

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(100);

/// How much longer than the wait of a long poll an answer may take.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// The wait that one long poll asks for.
pub(crate) const LONG_POLL: Duration = Duration::from_secs(30);

/// Which server, and which tenant of it.
#[derive(Debug, Clone, Args)]
pub(crate) struct Connection {
    /// URL of the server
    #[arg(
        long, global = true, env = "STEADFAST_ADDRESS", default_value = DEFAULT_ADDRESS,
        value_name = "URL", hide_env_values = true, help_heading = GLOBAL
    )]
    pub(crate) address: String,

    /// Namespace of the workflows
    #[arg(
        long,
        global = true,
        env = "STEADFAST_NAMESPACE",
        default_value = "default",
        value_name = "NAME",
        hide_env_values = true,
        help_heading = GLOBAL
    )]
    pub(crate) namespace: String,
}

/// A connection to a server.
#[derive(Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    namespace: String,
    has_answered: AtomicBool,
}

/// A request that has not been sent.
pub(crate) struct Call<'a> {
    client: &'a Client,
    method: Method,
    url: String,
    body: Option<(&'static str, Vec<u8>)>,
    wait: Duration,
}

/// The server's description of an error (RFC 9457).
#[derive(Debug, Deserialize)]
struct Problem {
    #[serde(default)]
    title: String,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    code: String,
    #[serde(default)]
    hint: Option<String>,
}

impl Client {
    pub(crate) fn new(connection: &Connection) -> Result<Self> {
        let address = connection.address.trim_end_matches('/');
        let base = if address.contains("://") {
            address.to_owned()
        } else {
            format!("http://{address}")
        };
        if !base.starts_with("http://") {
            let text = format!("address {address:?} is not an http:// URL");
            return Err(Error::usage(text).hint(
                "this version speaks plain HTTP; put a TLS proxy in front of remote servers",
            ));
        }
        // Proxies of the environment are for the world outside, not for a server of one's own.
        let http = reqwest::Client::builder()
            .no_proxy()
            .connect_timeout(Duration::from_secs(5))
            .user_agent(concat!("steadfast-cli/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| Error::failure(format!("cannot set up HTTP: {error}")))?;
        let namespace = connection.namespace.clone();
        Ok(Self {
            http,
            base,
            namespace,
            has_answered: AtomicBool::new(false),
        })
    }

    /// The server's URL.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// A call of a path of the API, given as segments.
    pub(crate) fn call(&self, method: Method, segments: &[&str]) -> Call<'_> {
        let mut url = format!("{}/api/v1", self.base);
        for segment in segments {
            url.push('/');
            url.push_str(&encode(segment));
        }
        Call {
            client: self,
            method,
            url,
            body: None,
            wait: Duration::ZERO,
        }
    }

    /// A call about something of the namespace.
    pub(crate) fn in_namespace(&self, method: Method, segments: &[&str]) -> Call<'_> {
        let mut all = vec!["namespaces", self.namespace.as_str()];
        all.extend(segments);
        self.call(method, &all)
    }

    /// A call of a path outside the API, such as `/healthz`.
    pub(crate) fn plain(&self, path: &str) -> Call<'_> {
        let url = format!("{}{path}", self.base);
        Call {
            client: self,
            method: Method::GET,
            url,
            body: None,
            wait: Duration::ZERO,
        }
    }

    fn patience(&self) -> Duration {
        let has_answered = self.has_answered.load(Ordering::Relaxed);
        if has_answered {
            PATIENCE_AFTER_ANSWER
        } else {
            PATIENCE
        }
    }
}

impl Call<'_> {
    /// Adds a query parameter.
    pub(crate) fn query(mut self, name: &str, value: &impl ToString) -> Self {
        let separator = if self.url.contains('?') { '&' } else { '?' };
        let value = encode(&value.to_string());
        self.url.push_str(&format!("{separator}{name}={value}"));
        self
    }

    /// Adds a query parameter if there is a value.
    pub(crate) fn query_if(self, name: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.query(name, &value),
            None => self,
        }
    }

    /// Lets the server wait for an answer.
    pub(crate) fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self.query("wait_ms", &wait.as_millis())
    }

    /// Waits that much longer for an answer than for others: the body asks the server to wait.
    pub(crate) fn patient(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Sets a JSON body.
    pub(crate) fn json<T: Serialize>(mut self, body: &T) -> Result<Self> {
        let bytes = serde_json::to_vec(body)
            .map_err(|error| Error::failure(format!("cannot write JSON: {error}")))?;
        self.body = Some(("application/json", bytes));
        Ok(self)
    }

    /// Sets a body of bytes.
    pub(crate) fn bytes(mut self, content_type: &'static str, body: Vec<u8>) -> Self {
        self.body = Some((content_type, body));
        self
    }

    /// Sends the call and reads the answer.
    pub(crate) async fn send<T: DeserializeOwned>(self) -> Result<T> {
        let bytes = self.exchange().await?;
        let bytes = if bytes.is_empty() {
            b"null"
        } else {
            bytes.as_slice()
        };
        serde_json::from_slice(bytes).map_err(|error| {
            Error::failure(format!("the server's answer is not understood: {error}"))
                .hint("client and server may be of different versions: try `steadfast doctor`")
        })
    }

    /// Sends the call; what it answers does not matter.
    pub(crate) async fn done(self) -> Result<()> {
        self.exchange().await.map(drop)
    }

    async fn exchange(self) -> Result<Vec<u8>> {
        let began = Instant::now();
        loop {
            match self.once().await {
                Ok((status, bytes)) => {
                    self.client.has_answered.store(true, Ordering::Relaxed);
                    return if status < 400 {
                        Ok(bytes)
                    } else {
                        Err(problem(status, &bytes))
                    };
                }
                Err(error) if error.is_builder() => {
                    let text = format!("{:?} is not a URL", self.client.base);
                    return Err(Error::usage(text));
                }
                Err(error) if error.is_timeout() && !error.is_connect() => {
                    let text = format!("{} did not answer in time", self.client.base);
                    return Err(Error::new(Kind::Unavailable, text));
                }
                Err(error) if began.elapsed() > self.client.patience() => {
                    return Err(unreachable_server(&self.client.base, &error));
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    async fn once(&self) -> Result<(u16, Vec<u8>), reqwest::Error> {
        let request = self.client.http.request(self.method.clone(), &self.url);
        let request = request.timeout(self.wait + ANSWER_MAX);
        let request = match &self.body {
            Some((content_type, bytes)) => request
                .header("content-type", *content_type)
                .body(bytes.clone()),
            None => request,
        };
        let answer = request.send().await?;
        let status = answer.status().as_u16();
        Ok((status, answer.bytes().await?.to_vec()))
    }
}

fn unreachable_server(base: &str, error: &reqwest::Error) -> Error {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let error = Error::new(Kind::Unavailable, format!("cannot reach {base}: {cause}"));
    error.code("unreachable").hint(
        "is `steadfast dev` running? Otherwise give its URL with --address or STEADFAST_ADDRESS",
    )
}

fn problem(status: u16, bytes: &[u8]) -> Error {
    let Ok(problem) = serde_json::from_slice::<Problem>(bytes) else {
        let text = String::from_utf8_lossy(bytes)
            .chars()
            .take(200)
            .collect::<String>();
        let kind = Kind::of_answer(status, "");
        return Error::new(
            kind,
            format!("the server answered {status}: {}", text.trim()),
        );
    };
    let kind = Kind::of_answer(status, &problem.code);
    let message = if problem.detail.is_empty() {
        problem.title
    } else {
        problem.detail
    };
    let error = Error::new(kind, message).code(problem.code);
    match problem.hint {
        Some(hint) if !hint.is_empty() => error.hint(hint),
        Some(_) | None => error,
    }
}

/// Percent-encodes everything that is not unreserved in a URL.
fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' | b'.' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Makes a request id: whatever is sent again with it takes effect once.
pub(crate) fn request_id() -> Result<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::failure(format!("the system has no randomness: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Who asks, for the history.
pub(crate) fn identity() -> String {
    let user = std::env::var("USER").or_else(|_| std::env::var("USERNAME"));
    user.map_or_else(|_| "cli".to_owned(), |user| format!("cli:{user}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(address: &str) -> Connection {
        Connection {
            address: address.to_owned(),
            namespace: "default".to_owned(),
        }
    }

    #[test]
    fn ids_with_any_characters_become_one_segment() {
        let client = Client::new(&connection("127.0.0.1:7233/")).unwrap();
        let call = client.in_namespace(Method::GET, &["workflows", "a/b ?\u{e9}.x"]);
        let call = call.query("run_id", &"1&2").query_if("from", None::<u64>);
        let expected = "http://127.0.0.1:7233/api/v1/namespaces/default/workflows/\
                        a%2Fb%20%3F%C3%A9.x?run_id=1%262";
        assert_eq!(call.url, expected);
    }

    #[test]
    fn tls_is_refused_with_a_hint() {
        let error = Client::new(&connection("https://example.org")).unwrap_err();
        assert_eq!(error.kind, Kind::Usage);
        assert_eq!(error.hints.len(), 1);
    }

    #[test]
    fn problems_keep_code_and_hint() {
        let error = problem(
            409,
            br#"{"code": "already-started", "detail": "d", "hint": "h"}"#,
        );
        assert_eq!((error.kind, error.message.as_str()), (Kind::Conflict, "d"));
        assert_eq!(
            (error.code.as_str(), error.hints),
            ("already-started", vec!["h".to_owned()])
        );
        assert!(problem(500, b"oops").message.contains("500"));
    }
}
