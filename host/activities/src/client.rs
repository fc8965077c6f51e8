//! The connection pool.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::address::Resolver;
use crate::pattern::HostPattern;

/// How long an idle connection is kept.
const IDLE_TIME_MAX: Duration = Duration::from_secs(60);

/// Idle connections that are kept per host.
const IDLE_PER_HOST_MAX: usize = 16;

pub(crate) type HttpClient = Client<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>;

/// A client that trusts the certificates of the system. Its crypto provider is named here and not
/// taken from the process, so that nothing has to be installed globally.
///
/// # Errors
/// A text when the system has no certificates.
pub(crate) fn client(allow: Arc<[HostPattern]>) -> Result<HttpClient, String> {
    let mut connector = HttpConnector::new_with_resolver(Resolver { allow });
    connector.enforce_http(false);
    connector.set_nodelay(true);
    let provider = rustls::crypto::ring::default_provider();
    let builder = HttpsConnectorBuilder::new()
        .with_provider_and_native_roots(provider)
        .map_err(|error| error.to_string())?;
    let connector = builder
        .https_or_http()
        .enable_http1()
        .wrap_connector(connector);
    Ok(Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIME_MAX)
        .pool_max_idle_per_host(IDLE_PER_HOST_MAX)
        .build(connector))
}
