//! One HTTP request: checked, sent, followed, judged.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, HeaderName, HeaderValue, LOCATION,
    PROXY_AUTHORIZATION, USER_AGENT,
};
use hyper::http::uri::PathAndQuery;
use hyper::{HeaderMap, Method, Request, Response, Uri};
use steadfast_model::{Failure, FailureKind, Frame, Payload};

use crate::HttpOptions;
use crate::address::is_refused;
use crate::client::{HttpClient, client};
use crate::pattern::{HostPattern, parse_address};
use crate::request::{Content, HttpRequest, HttpResponse, header_texts};
use crate::retry_after::retry_after;

/// Most redirects that a request may follow.
const REDIRECTS_MAX: u32 = 10;

/// The header that carries an activity's identity.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Sends requests to allowed hosts.
#[derive(Debug)]
pub struct HttpSender {
    allow: Arc<[HostPattern]>,
    timeout: Duration,
    response_bytes_max: usize,
    /// Made with the first request: reading the system's certificates takes a while.
    client: OnceLock<Result<HttpClient, String>>,
}

/// A request that may be sent more than once.
struct Attempt {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
}

impl HttpSender {
    /// A sender with these options.
    #[must_use]
    pub fn new(options: HttpOptions) -> Self {
        Self {
            allow: options.allow.into(),
            timeout: options.timeout,
            response_bytes_max: options.response_bytes_max,
            client: OnceLock::new(),
        }
    }

    /// Sends the request that the payload describes and returns the answer.
    ///
    /// # Errors
    /// A failure with a code: `http.invalid-input`, `http.not-allowed`, `http.too-large` (a retry
    /// does not help), `http.network`, `http.timeout`, `http.status` (a retry may help, unless the
    /// status says that the request is at fault).
    pub async fn send(&self, input: &Payload, idempotency_key: &str) -> Result<Payload, Failure> {
        let request: HttpRequest = serde_json::from_slice(&input.data)
            .map_err(|error| final_failure("http.invalid-input", error.to_string()))?;
        let attempt = attempt(&request, idempotency_key)?;
        let asked = request
            .timeout_ms
            .map_or(self.timeout, Duration::from_millis);
        let limit = asked.min(self.timeout);
        let exchange = self.exchange(attempt, request.redirects.min(REDIRECTS_MAX));
        let Ok(answered) = tokio::time::timeout(limit, exchange).await else {
            let text = format!(
                "{} did not answer within {} ms",
                request.url,
                limit.as_millis()
            );
            return Err(Failure::application("http.timeout", text));
        };
        let (headers, response) = answered?;
        judge(&request, &headers, &response)
    }

    async fn exchange(
        &self,
        mut attempt: Attempt,
        mut redirects: u32,
    ) -> Result<(HeaderMap, HttpResponse), Failure> {
        loop {
            self.check(&attempt.uri)?;
            let response = self.send_once(&attempt).await?;
            if redirects > 0
                && let Some(next) = attempt.redirected(&response)?
            {
                redirects -= 1;
                attempt = next;
                continue;
            }
            let (parts, body) = response.into_parts();
            let bytes = self.read(body).await?;
            let response = HttpResponse {
                status: parts.status.as_u16(),
                headers: header_texts(&parts.headers),
                body: Content::from_bytes(&bytes, &parts.headers),
            };
            return Ok((parts.headers, response));
        }
    }

    /// Refuses what the allow-list does not have, before anything is looked up or sent.
    fn check(&self, uri: &Uri) -> Result<(), Failure> {
        let refuse = |text: String| Err(final_failure("http.not-allowed", text));
        let (Some(host), Some(port)) = (uri.host(), port(uri)) else {
            return refuse(format!("{uri} has no host"));
        };
        if !self.allow.iter().any(|pattern| pattern.allows(host, port)) {
            return refuse(format!(
                "the host {host}:{port} is not on the host's allow-list: ask its operator"
            ));
        }
        let address = parse_address(host).filter(|address| is_refused(*address));
        if address.is_some_and(|address| !self.allow.iter().any(|p| p.names_address(address))) {
            return refuse(format!("the address {host} is refused"));
        }
        Ok(())
    }

    async fn send_once(&self, attempt: &Attempt) -> Result<Response<Incoming>, Failure> {
        let client = self.client.get_or_init(|| client(self.allow.clone()));
        let client = client.as_ref().map_err(|error| {
            let text = format!("the system's certificates could not be read: {error}");
            Failure::application("http.network", text)
        })?;
        let mut request = Request::new(Full::new(attempt.body.clone()));
        *request.method_mut() = attempt.method.clone();
        *request.uri_mut() = attempt.uri.clone();
        *request.headers_mut() = attempt.headers.clone();
        client.request(request).await.map_err(|error| {
            let text = format!("{}: {}", attempt.uri, chain(&error));
            if text.contains("no address that may be reached") {
                return final_failure("http.not-allowed", text);
            }
            Failure::application("http.network", text)
        })
    }

    async fn read(&self, body: Incoming) -> Result<Bytes, Failure> {
        let limit = self.response_bytes_max;
        let read = Limited::new(body, limit).collect().await;
        read.map(http_body_util::Collected::to_bytes)
            .map_err(|error| {
                if error.is::<LengthLimitError>() {
                    let text = format!("the answer is larger than the limit of {limit} bytes");
                    return final_failure("http.too-large", text);
                }
                Failure::application("http.network", format!("the answer broke off: {error}"))
            })
    }
}

/// Turns an answer into a result or a failure. Failures keep the answer as details.
fn judge(
    request: &HttpRequest,
    headers: &HeaderMap,
    response: &HttpResponse,
) -> Result<Payload, Failure> {
    let status = response.status;
    let is_retryable = status == 429 || status >= 500;
    let json = serde_json::to_vec(response)
        .map_err(|error| final_failure("http.invalid-output", error.to_string()))?;
    let answer = Payload::json(json);
    let is_failure = is_retryable || (request.fail_on_status && status >= 400);
    if !is_failure {
        return Ok(answer);
    }
    let text = format!("{} {} answered {status}", request.method, request.url);
    let mut frame = Frame::new(FailureKind::Application, "http.status", text);
    frame.non_retryable = !is_retryable;
    frame.next_retry_delay = retry_after(headers).unwrap_or_default();
    frame.details = Some(answer);
    Err(Failure::new(frame))
}

fn attempt(request: &HttpRequest, idempotency_key: &str) -> Result<Attempt, Failure> {
    let invalid = |text: String| final_failure("http.invalid-input", text);
    let method = Method::from_bytes(request.method.as_bytes());
    let method = method.map_err(|_e| invalid(format!("{:?} is not a method", request.method)))?;
    let uri = parse_uri(&request.url).map_err(invalid)?;
    let mut headers = HeaderMap::new();
    for (name, value) in &request.headers {
        let parsed = HeaderName::from_bytes(name.as_bytes());
        let parsed = parsed.map_err(|_e| invalid(format!("{name:?} is not a header name")))?;
        if parsed == CONTENT_LENGTH || parsed == HOST {
            return Err(invalid(format!("the header {name} follows from the rest")));
        }
        let value = HeaderValue::from_str(value);
        let value = value.map_err(|_e| invalid(format!("the value of {name} is malformed")))?;
        headers.append(parsed, value);
    }
    let mut body = Bytes::new();
    if let Some(content) = &request.body {
        let (bytes, content_type) = content.to_bytes().map_err(invalid)?;
        body = bytes;
        headers
            .entry(CONTENT_TYPE)
            .or_insert(HeaderValue::from_static(content_type));
    }
    if let Ok(key) = header_value(idempotency_key) {
        headers.entry(IDEMPOTENCY_KEY).or_insert(key);
    }
    headers
        .entry(USER_AGENT)
        .or_insert(HeaderValue::from_static(concat!(
            "steadfast/",
            env!("CARGO_PKG_VERSION")
        )));
    Ok(Attempt {
        method,
        uri,
        headers,
        body,
    })
}

/// A key as a header value. Workflow ids may hold any character; those that a header may not are
/// percent-encoded, so that different keys stay different.
fn header_value(key: &str) -> Result<HeaderValue, hyper::header::InvalidHeaderValue> {
    let mut text = String::with_capacity(key.len());
    for byte in key.bytes() {
        if byte.is_ascii_graphic() && byte != b'%' {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    HeaderValue::from_str(&text)
}

fn parse_uri(text: &str) -> Result<Uri, String> {
    let without_fragment = text.split('#').next().unwrap_or_default();
    let uri: Uri = without_fragment
        .parse()
        .map_err(|error| format!("url: {error}"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(format!(
            "url: {text:?} is not an absolute http or https URL"
        ));
    }
    if uri
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'))
    {
        return Err("url: put credentials into an Authorization header".to_owned());
    }
    Ok(uri)
}

fn port(uri: &Uri) -> Option<u16> {
    uri.port_u16().or(match uri.scheme_str() {
        Some("http") => Some(80),
        Some("https") => Some(443),
        _ => None,
    })
}

impl Attempt {
    /// The request that a redirect asks for; `None` if the answer is no redirect.
    fn redirected(&self, response: &Response<Incoming>) -> Result<Option<Self>, Failure> {
        let status = response.status().as_u16();
        if !matches!(status, 301 | 302 | 303 | 307 | 308) {
            return Ok(None);
        }
        let Some(location) = response.headers().get(LOCATION) else {
            return Ok(None);
        };
        let bad = || {
            let text = format!("{} redirects to {location:?}, which is no URL", self.uri);
            final_failure("http.not-allowed", text)
        };
        let text = location.to_str().map_err(|_e| bad())?;
        let uri = self.resolve(text).ok_or_else(bad)?;
        let mut headers = self.headers.clone();
        if uri.authority() != self.uri.authority() || uri.scheme() != self.uri.scheme() {
            // Credentials are for the host that they were given for.
            for name in [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION] {
                headers.remove(name);
            }
        }
        let is_post = self.method == Method::POST;
        let becomes_get = (status == 303 && self.method != Method::HEAD)
            || (matches!(status, 301 | 302) && is_post);
        if !becomes_get {
            let (method, body) = (self.method.clone(), self.body.clone());
            return Ok(Some(Self {
                method,
                uri,
                headers,
                body,
            }));
        }
        headers.remove(CONTENT_TYPE);
        Ok(Some(Self {
            method: Method::GET,
            uri,
            headers,
            body: Bytes::new(),
        }))
    }

    /// The URL that a `Location` means, seen from this request.
    fn resolve(&self, location: &str) -> Option<Uri> {
        if let Ok(absolute) = parse_uri(location) {
            return Some(absolute);
        }
        let scheme = self.uri.scheme_str()?;
        if location.starts_with("//") {
            return parse_uri(&format!("{scheme}:{location}")).ok();
        }
        let authority = self.uri.authority()?;
        let path = if location.starts_with('/') {
            location.to_owned()
        } else if location.contains("://") {
            return None;
        } else {
            let own = self.uri.path_and_query().map_or("/", PathAndQuery::path);
            let folder = own.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{folder}/{location}")
        };
        parse_uri(&format!("{scheme}://{authority}{path}")).ok()
    }
}

/// A failure that a retry cannot heal.
fn final_failure(code: &str, text: impl Into<String>) -> Failure {
    let mut frame = Frame::new(FailureKind::Application, code, text);
    frame.non_retryable = true;
    Failure::new(frame)
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
