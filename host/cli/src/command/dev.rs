//! `dev`: a whole server in one process, with its data in one directory.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use steadfast_runtime::{Activities, Handle, StartError};
use tokio::net::TcpListener;

use crate::error::{Error, Kind, Result};
use crate::logging::{self, LogFormat};
use crate::output::{Output, Tone, count};
use crate::signals::Signals;
use crate::wiring::{self, BuiltIns};

/// Run a server: nothing else is needed
///
/// All data is kept in one directory, which one server uses at a time. SIGINT or SIGTERM stop it;
/// killing it loses nothing that was acknowledged. When the store fails, it exits with 70: whoever
/// watches it should start it again.
#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    /// Directory of all data; made if it does not exist
    #[arg(
        long,
        env = "STEADFAST_DATA_DIR",
        default_value = "./.steadfast",
        value_name = "DIR",
        hide_env_values = true
    )]
    data_dir: PathBuf,

    /// Address to listen on; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:7233", value_name = "ADDRESS")]
    listen: SocketAddr,

    /// Listen on an address that other machines reach; there is no authentication
    #[arg(long)]
    allow_remote: bool,

    /// Memory for workflows between two steps; others are rebuilt when they go on
    #[arg(long, default_value_t = 256, value_name = "MIB")]
    cache_mib: usize,

    /// Run the activities echo, fail and sleep, for trying things out
    #[arg(long)]
    dev_activities: bool,

    /// Let the activity http.request reach this host, such as api.example.com or *.example.com:8443;
    /// may be repeated
    #[arg(long, value_name = "HOST")]
    allow_http: Vec<String>,

    /// Print one line of JSON on standard output once the server is ready
    #[arg(long)]
    print_ready_json: bool,

    /// How a log line looks; RUST_LOG says what is logged
    #[arg(long, value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT")]
    log_format: LogFormat,
}

pub(crate) async fn run(args: DevArgs, output: &Output) -> Result<ExitCode> {
    check_exposure(args.listen.ip(), args.allow_remote)?;
    let activities = wiring::activities(&BuiltIns {
        has_dev_activities: args.dev_activities,
        http_hosts: args.allow_http.clone(),
    })?;
    logging::start(args.log_format)?;
    // From here on a signal stops the server in order, even while it starts.
    let mut signals = Signals::new()?;
    let listener = listen(args.listen).await?;
    let address = listener
        .local_addr()
        .map_err(|error| Error::failure(format!("cannot listen: {error}")))?;
    let (handle, counts) = start(&args, activities).await?;
    announce(&args, address, &counts, output)?;

    let (stop, stopping) = tokio::sync::oneshot::channel::<()>();
    let shutdown = async move { drop(stopping.await) };
    let server = tokio::spawn(wiring::serve(listener, handle.clone(), shutdown));
    let code = tokio::select! {
        biased;
        fatal = handle.fatal() => {
            tracing::error!(error = %fatal, "the store failed: exiting, so that a restart recovers");
            ExitCode::from(Kind::Fatal.exit_code())
        }
        name = signals.next() => {
            tracing::info!(signal = name, "stopping");
            ExitCode::SUCCESS
        }
    };
    drop(stop);
    tokio::select! {
        biased;
        ended = server => log_end(ended),
        name = signals.next() => tracing::warn!(signal = name, "stopping at once"),
    }
    drop(handle);
    Ok(code)
}

fn log_end(ended: Result<std::io::Result<()>, tokio::task::JoinError>) {
    match ended {
        Ok(Ok(())) => tracing::info!("stopped"),
        Ok(Err(error)) => tracing::error!(%error, "the HTTP server failed"),
        Err(error) => tracing::error!(%error, "the HTTP server panicked"),
    }
}

/// Nobody is asked who they are, so other machines must not get here by accident.
fn check_exposure(ip: IpAddr, allow_remote: bool) -> Result<()> {
    if ip.is_loopback() || allow_remote {
        return Ok(());
    }
    Err(Error::usage(format!(
        "{ip} can be reached from other machines, and there is no authentication"
    ))
    .hint("listen on 127.0.0.1, or say --allow-remote if the network is yours alone"))
}

async fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        let text = format!("cannot listen on {address}: {error}");
        if error.kind() == ErrorKind::AddrInUse {
            return Error::new(Kind::Conflict, text).code("port-in-use").hint(
                "another server may be running: stop it, or choose another port with \
                 --listen 127.0.0.1:0",
            );
        }
        if error.kind() == ErrorKind::PermissionDenied {
            return Error::failure(text)
                .hint("ports below 1024 need privileges: choose a larger one");
        }
        Error::failure(text)
    })
}

/// What a data directory held when the server started.
struct Counts {
    components: usize,
    open: usize,
    blocked: usize,
}

async fn start(args: &DevArgs, activities: Activities) -> Result<(Handle, Counts)> {
    let data_dir = args.data_dir.clone();
    // A large store takes a while to open after a crash.
    let opened = tokio::task::spawn_blocking(move || {
        let world = wiring::world(&data_dir)?;
        let counts = recovered(&*world.store)
            .map_err(|error| wiring::store_error(&wiring::store_path(&data_dir), &error))?;
        Ok::<_, Error>((world, counts))
    });
    let (world, counts) = opened
        .await
        .map_err(|error| Error::failure(format!("opening failed: {error}")))??;
    let options = steadfast_runtime::Options {
        cache_bytes: args.cache_mib.saturating_mul(1024 * 1024),
        activities,
        ..Default::default()
    };
    let handle = steadfast_runtime::start(options, world).map_err(|error| match error {
        StartError::Store(error) => {
            wiring::store_error(&wiring::store_path(&args.data_dir), &error)
        }
        StartError::Thread(_) | StartError::Option { .. } => Error::failure(error.to_string()),
    })?;
    Ok((handle, counts))
}

fn recovered(store: &dyn steadfast_ports::Store) -> Result<Counts, steadfast_ports::store::Error> {
    Ok(Counts {
        components: store.components()?.len(),
        open: wiring::count_open_runs(store, false, wiring::COUNT_MAX)?,
        blocked: wiring::count_open_runs(store, true, wiring::COUNT_MAX)?,
    })
}

fn announce(args: &DevArgs, address: SocketAddr, counts: &Counts, output: &Output) -> Result<()> {
    let url = format!("http://{address}");
    let data_dir = absolute(&args.data_dir);
    if args.print_ready_json {
        return output.json_line(&json!({
            "ready": true, "address": url, "data_dir": data_dir.display().to_string(),
            "pid": std::process::id(), "version": env!("CARGO_PKG_VERSION"),
            "components": counts.components, "open": counts.open, "blocked": counts.blocked,
        }));
    }
    let mut held = format!(
        "{}, {}",
        count(counts.components as u64, "component"),
        wiring::open_runs(counts.open)
    );
    if counts.blocked > 0 {
        held.push_str(&format!(", {} of them blocked", counts.blocked));
    }
    let line = |label: &str, text: &str| format!("  {label:<10} {text}\n");
    let mut text = format!(
        "{} {} is ready\n",
        output.paint(Tone::Strong, "steadfast"),
        env!("CARGO_PKG_VERSION")
    );
    text.push_str(&line("address", &output.paint(Tone::Good, &url)));
    text.push_str(&line(
        "store",
        &wiring::store_path(&data_dir).display().to_string(),
    ));
    text.push_str(&line("recovered", &held));
    text.push_str(&line("API", &format!("{url}/openapi.json")));
    if !address.ip().is_loopback() {
        let warning = "other machines can reach this server, and nobody is asked who they are";
        text.push_str(&line("warning", &output.paint(Tone::Warning, warning)));
    }
    text.push_str("\nCtrl-C stops it; nothing is lost.\n");
    output.text(&text)
}

fn absolute(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_are_kept_out_unless_they_are_meant() {
        let cases = [
            ("127.0.0.1", false, true),
            ("::1", false, true),
            ("0.0.0.0", false, false),
            ("192.168.0.7", false, false),
            ("0.0.0.0", true, true),
        ];
        for (ip, allow_remote, is_fine) in cases {
            let checked = check_exposure(ip.parse().unwrap(), allow_remote);
            assert_eq!(checked.is_ok(), is_fine, "{ip}");
        }
    }
}
