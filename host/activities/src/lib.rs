//! Activities that the host runs itself.
//!
//! [`http`] registers `http.request`, which reaches only hosts that the operator allows. [`dev`]
//! registers `echo`, `fail` and `sleep`, which try out workflows and must not be on in production.
//! Read [`request`] for the form of inputs and outputs and [`pattern`] for the allow-list.

mod address;
mod client;
mod development;
pub mod pattern;
pub mod request;
mod retry_after;
mod send;

use std::sync::Arc;
use std::time::Duration;

use steadfast_model::{ActivityType, Failure, Millis, Payload};
use steadfast_runtime::{Activities, ActivityContext};

pub use development::dev;
pub use pattern::HostPattern;
pub use send::HttpSender;

/// The activity type of HTTP requests.
pub const HTTP_REQUEST: &str = "http.request";

/// How HTTP requests are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpOptions {
    /// Hosts that may be reached; every other one is refused. Default: none.
    pub allow: Vec<HostPattern>,
    /// Longest time of one request, redirects included; an input may ask for less. Default: 30 s.
    pub timeout: Duration,
    /// Largest body of an answer. Default: 1 MiB, so that it fits into a payload in every form.
    pub response_bytes_max: usize,
}

impl Default for HttpOptions {
    fn default() -> Self {
        let timeout = Duration::from_secs(30);
        Self {
            allow: Vec::new(),
            timeout,
            response_bytes_max: 1024 * 1024,
        }
    }
}

/// Registers `http.request`. The identity of an activity goes along as `Idempotency-Key`, the same
/// one at every attempt, unless the input has such a header.
#[must_use]
pub fn http(activities: Activities, options: HttpOptions) -> Activities {
    let sender = Arc::new(HttpSender::new(options));
    register(activities, HTTP_REQUEST, move |context, input| {
        let sender = sender.clone();
        async move {
            let key = context.idempotency_key();
            beating(&context, sender.send(&input, &key)).await
        }
    })
}

/// Registers a function under a name that is known to be valid.
fn register<F, R>(activities: Activities, name: &str, function: F) -> Activities
where
    F: Fn(ActivityContext, Payload) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Payload, Failure>> + Send + 'static,
{
    match ActivityType::new(name) {
        Ok(activity_type) => activities.register(activity_type, function),
        // Only an empty or very long name gets here, and ours are constants.
        Err(_) => activities,
    }
}

/// Does the work, and says meanwhile that it is alive if the activity has a heartbeat timeout.
async fn beating<T>(context: &ActivityContext, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    let Some(Millis(gap)) = context.assignment().task.options.heartbeat else {
        return work.await;
    };
    let pause = Duration::from_millis((gap / 3).max(1));
    loop {
        match tokio::time::timeout(pause, &mut work).await {
            Ok(done) => return done,
            Err(_) => context.heartbeat(context.heartbeat_details().cloned()),
        }
    }
}
