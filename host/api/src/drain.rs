//! Long waits that end when the client goes or the host shuts down.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tokio_util::sync::CancellationToken;

use crate::error::{Answer, Failed};

/// Tells the requests of a connection that the host shuts down. [`crate::serve()`] attaches it; a
/// router without it is never drained.
#[derive(Debug, Clone, Default)]
pub(crate) struct Drain(pub(crate) CancellationToken);

impl<S: Send + Sync> FromRequestParts<S> for Drain {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}

impl Drain {
    /// Waits for something that takes up to `wait`, and returns `None` when the host shuts down
    /// first.
    ///
    /// The work gets a task of its own, so that it ends in order, and forgets what it follows,
    /// even if the client is gone and nobody waits here any more.
    pub(crate) async fn wait<T, F>(&self, wait: Duration, work: F) -> Answer<Option<T>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, steadfast_runtime::Error>> + Send + 'static,
    {
        if wait.is_zero() {
            return Ok(Some(work.await?));
        }
        let task = tokio::spawn(work);
        tokio::select! {
            biased;
            joined = task => match joined {
                Ok(result) => Ok(Some(result?)),
                Err(error) => Err(Failed::new("unavailable", format!("a task failed: {error}"))),
            },
            () = self.0.cancelled() => Ok(None),
        }
    }
}
