//! The router on a socket: keep-alive, no delay, bounded connections, an end that drains.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tower_service::Service;

use crate::drain::Drain;
use crate::limits::{CONNECTIONS_MAX, DRAIN_TIME_MAX, HEAD_TIME_MAX};

/// The pause after a failed accept: the usual cause is that no file descriptors are left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until `shutdown` is ready. Then no connection is accepted any more, long polls answer at
/// once with what they have, and other requests get [`DRAIN_TIME_MAX`] to finish.
///
/// # Errors
/// [`io::Error`] when the listener's address cannot be read: it is not a listening socket.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    tracing::info!(%address, "listening");
    let builder = Arc::new(builder());
    let drain = Drain::default();
    let cut = CancellationToken::new();
    let graceful = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = accept(&listener, &room) => accepted,
        };
        match accepted {
            Ok((stream, permit)) => {
                let (builder, drain, cut) = (builder.clone(), drain.clone(), cut.clone());
                let connection = Connection {
                    builder,
                    drain,
                    cut,
                    permit,
                };
                tokio::spawn(connection.run(stream, router.clone(), graceful.watcher()));
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                drop(tokio::time::timeout(ACCEPT_PAUSE, std::future::pending::<()>()).await);
            }
        }
    }
    drop(listener);
    drain.0.cancel();
    if tokio::time::timeout(DRAIN_TIME_MAX, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("some requests did not finish in time and are cut off");
    }
    cut.cancel();
    Ok(())
}

async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let permit = room
        .clone()
        .acquire_owned()
        .await
        .map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    // Fails only for a client that is already gone, which shows soon enough.
    drop(stream.set_nodelay(true));
    Ok((stream, permit))
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX);
    builder.http2().timer(TokioTimer::new());
    builder
}

struct Connection {
    builder: Arc<Builder<TokioExecutor>>,
    drain: Drain,
    cut: CancellationToken,
    permit: OwnedSemaphorePermit,
}

impl Connection {
    async fn run(self, stream: TcpStream, router: Router, watcher: Watcher) {
        let drain = self.drain;
        let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(drain.clone());
            router.clone().call(request)
        });
        let connection = self.builder.serve_connection(TokioIo::new(stream), service);
        let ended = tokio::select! {
            biased;
            ended = watcher.watch(connection.into_owned()) => ended,
            () = self.cut.cancelled() => Ok(()),
        };
        // A client that goes in the middle of a request is no event for the operator.
        if let Err(error) = ended {
            tracing::debug!(error = %error, "a connection ended with an error");
        }
        drop(self.permit);
    }
}
