//! Every metric of the HTTP interface, by name.

use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use prometheus::{
    HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry, TextEncoder,
};

use crate::state::Api;

/// Bounds of the latency histogram, in seconds. Long polls end in the last ones.
const BUCKETS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0,
];

/// Counters of the HTTP interface.
pub(crate) struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    seconds: HistogramVec,
    in_flight: IntGauge,
    disk_bytes: IntGauge,
}

impl Metrics {
    /// Registers every metric.
    ///
    /// # Errors
    /// [`prometheus::Error`] when two metrics have one name, which a test would show.
    pub(crate) fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let requests = IntCounterVec::new(
            Opts::new(
                "steadfast_http_requests_total",
                "Requests by method, route and status.",
            ),
            &["method", "route", "status"],
        )?;
        let options = HistogramOpts::new(
            "steadfast_http_request_seconds",
            "Time from a request's head to its answer's head, by method and route.",
        );
        let seconds = HistogramVec::new(options.buckets(BUCKETS.to_vec()), &["method", "route"])?;
        let in_flight = IntGauge::new(
            "steadfast_http_requests_in_flight",
            "Requests without an answer yet.",
        )?;
        let disk_bytes = IntGauge::new(
            "steadfast_store_disk_bytes",
            "Bytes that the store takes on disk.",
        )?;
        registry.register(Box::new(requests.clone()))?;
        registry.register(Box::new(seconds.clone()))?;
        registry.register(Box::new(in_flight.clone()))?;
        registry.register(Box::new(disk_bytes.clone()))?;
        Ok(Self {
            registry,
            requests,
            seconds,
            in_flight,
            disk_bytes,
        })
    }

    /// The text that a scraper reads.
    pub(crate) fn text(&self, disk_bytes: u64) -> String {
        self.disk_bytes
            .set(i64::try_from(disk_bytes).unwrap_or(i64::MAX));
        let families = self.registry.gather();
        TextEncoder::new()
            .encode_to_string(&families)
            .unwrap_or_default()
    }

    fn observe(&self, method: &str, route: &str, status: StatusCode, seconds: f64) {
        self.requests
            .with_label_values(&[method, route, status.as_str()])
            .inc();
        self.seconds
            .with_label_values(&[method, route])
            .observe(seconds);
    }
}

/// Counts down even if the client goes before the answer.
struct InFlight(IntGauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The layer around every route. Labels are bounded: routes are ours, methods are the known ones.
pub(crate) async fn measure(State(api): State<Api>, request: Request, next: Next) -> Response {
    let begin = tokio::time::Instant::now();
    let metrics = &api.metrics;
    metrics.in_flight.inc();
    let in_flight = InFlight(metrics.in_flight.clone());
    let method = known(request.method());
    let path = request.extensions().get::<MatchedPath>().cloned();
    let response = next.run(request).await;
    let route = path.as_ref().map_or("unknown", MatchedPath::as_str);
    metrics.observe(
        method,
        route,
        response.status(),
        begin.elapsed().as_secs_f64(),
    );
    drop(in_flight);
    response
}

fn known(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}
