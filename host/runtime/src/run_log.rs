//! Where the log lines of workflows go: the host's own log.

use steadfast_model::RunKey;
use steadfast_model::command::LogLevel;

pub(crate) fn log(run: RunKey, lines: &[steadfast_model::command::LogLine]) {
    for line in lines {
        let (run, message) = (run.0, line.message.as_str());
        match line.level {
            LogLevel::Debug => tracing::debug!(target: "steadfast::workflow", run, "{message}"),
            LogLevel::Info => tracing::info!(target: "steadfast::workflow", run, "{message}"),
            LogLevel::Warn => tracing::warn!(target: "steadfast::workflow", run, "{message}"),
            LogLevel::Error => tracing::error!(target: "steadfast::workflow", run, "{message}"),
        }
    }
}
