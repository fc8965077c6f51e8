//! What every handler has.

use std::sync::Arc;

use steadfast_runtime::Handle;

use crate::metrics::Metrics;

/// How the HTTP interface behaves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiOptions {
    /// Origins of web pages that may change something here besides pages of the host itself, as
    /// browsers write them: `https://example.com:8443`. Default: none.
    pub allowed_origins: Vec<String>,
}

/// Shared by all requests.
pub(crate) struct Shared {
    pub(crate) handle: Handle,
    pub(crate) metrics: Metrics,
    pub(crate) options: ApiOptions,
    pub(crate) openapi: String,
}

/// Cheap to clone.
pub(crate) type Api = Arc<Shared>;
