//! What a request is answered with.

use steadfast_engine::decide::Request;
use steadfast_engine::operate::Report;
use steadfast_model::Seq;

use crate::run::Run;

/// What a request is answered with, beside that it is done.
pub(crate) enum Wanted {
    Nothing,
    /// How the task of a heartbeat stands.
    Beat(Option<Seq>),
    /// How many activities are meant.
    Count(u32),
}

impl Wanted {
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "most requests are answered with nothing"
    )]
    pub(crate) fn of(request: &Request, run: &Run) -> Self {
        let tasks = &run.execution.tasks;
        match request {
            Request::Heartbeat { seq, .. } => Self::Beat(Some(*seq)),
            Request::ReportActivity {
                activity_id,
                report: Report::Heartbeat(_),
            } => {
                let named = tasks
                    .values()
                    .find(|task| task.activity_id() == *activity_id);
                Self::Beat(named.map(|task| task.seq))
            }
            Request::OperateActivities { which, .. } => {
                let count = tasks.values().filter(|task| which.means(task)).count();
                Self::Count(u32::try_from(count).unwrap_or(u32::MAX))
            }
            _ => Self::Nothing,
        }
    }
}
