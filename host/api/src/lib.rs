//! HTTP/JSON interface with its OpenAPI document.
//!
//! [`router`] answers requests out of a [`steadfast_runtime::Handle`]; [`serve()`] puts it on a
//! socket. There is one file per resource in `http/`; [`wire`] is the only mapping between JSON and
//! the model; [`error`] is the only mapping between errors and statuses. No decision is made here.

mod drain;
pub mod error;
mod extract;
mod http;
pub mod limits;
mod metrics;
mod origin;
mod serve;
mod state;
pub mod wire;

pub use http::openapi::document as openapi;
pub use http::router;
pub use serve::serve;
pub use state::ApiOptions;
