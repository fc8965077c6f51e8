//! Bounds of the HTTP interface. What the host itself bounds is in `steadfast_model::limits`.

use std::time::Duration;

use steadfast_model::limits::PAYLOAD_BYTES_MAX;

/// Largest JSON body: a payload in its longest written form (base64 takes a third more, escaped
/// text up to six times as much is cut here), and what surrounds it.
pub const JSON_BODY_BYTES_MAX: usize = 4 * PAYLOAD_BYTES_MAX;

/// Largest JSON body of a task batch.
pub const BATCH_BODY_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Most messages of a task batch.
pub const BATCH_ITEMS_MAX: usize = 1000;

/// Rows or events of a page when the request does not say.
pub const PAGE_DEFAULT: u32 = 100;

/// Longest time that a client may take for the head of a request.
pub const HEAD_TIME_MAX: Duration = Duration::from_secs(30);

/// Longest time that a client may take for a JSON body.
pub const BODY_TIME_MAX: Duration = Duration::from_secs(30);

/// Longest time that a client may take to upload a component.
pub const UPLOAD_TIME_MAX: Duration = Duration::from_secs(300);

/// Most connections at a time; further ones wait to be accepted.
pub const CONNECTIONS_MAX: usize = 10_000;

/// Longest time that open requests get to finish when the host shuts down.
pub const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);

const _: () = assert!(JSON_BODY_BYTES_MAX > PAYLOAD_BYTES_MAX / 3 * 4 + 1024 * 1024);
const _: () = assert!(BATCH_BODY_BYTES_MAX > JSON_BODY_BYTES_MAX);
