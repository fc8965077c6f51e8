//! The engine calls of a guest: from wasm arguments to [`HostCalls`].
//!
//! Scheduling an activity is the hot path of every replay, so its strings and bytes are read where
//! they lie in the guest's memory and nothing is allocated unless `settings` are given.

use steadfast_model::limits::{LOG_LINE_BYTES_MAX, RANDOM_BYTES_MAX};
use steadfast_model::{EventNumber, Failure, Millis, Payload, Seq};
use steadfast_ports::HostCalls;
use steadfast_ports::guest::{ActivityCall, CallOptions, Stop};
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, LinkerInstance, WasmList, WasmStr};

use super::lift::{FailureValue, LevelArg, OptionsArg, PayloadArg, PayloadValue};
use super::lower::{ChainValue, InfoValue, PayloadResult};
use crate::limit::{SETTINGS_BYTES_MAX, SETTINGS_MAX};
use crate::state::{Calls, State};

pub(super) type Context<'a> = StoreContextMut<'a, State>;

/// What a guest logs before it traps because it panicked.
const PANIC_PREFIX: &str = "panic: ";

/// Defines every function of the world `workflow`.
///
/// # Errors
/// wasmtime's, when a name is defined twice.
pub(crate) fn define(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let name = |interface: &str| format!("{}{interface}{}", super::PACKAGE, super::VERSION);

    let mut activities = linker.instance(&name("activities"))?;
    activities.func_wrap("schedule", schedule)?;
    activities.func_wrap("cancel", |mut store: Context<'_>, (operation,): (u32,)| {
        store.data_mut().ask("activities.cancel", |calls| {
            calls.cancel_activity(Seq(operation))
        })
    })?;

    let mut timers = linker.instance(&name("timers"))?;
    timers.func_wrap("start", |mut store: Context<'_>, (duration_ms,): (u64,)| {
        let duration = Millis(duration_ms);
        let seq = store
            .data_mut()
            .ask("timers.start", |calls| calls.start_timer(duration))?;
        store.data_mut().given(seq.0);
        Ok((seq.0,))
    })?;
    timers.func_wrap("cancel", |mut store: Context<'_>, (operation,): (u32,)| {
        store
            .data_mut()
            .ask("timers.cancel", |calls| calls.cancel_timer(Seq(operation)))?;
        store.data_mut().timer_canceled(operation);
        Ok(())
    })?;

    let mut markers = linker.instance(&name("markers"))?;
    markers.func_wrap("patched", |mut store: Context<'_>, (id,): (String,)| {
        let ask = |calls: &mut dyn HostCalls| calls.patched(&id);
        Ok((store.data_mut().ask("markers.patched", ask)?,))
    })?;
    markers.func_wrap(
        "deprecate-patch",
        |mut store: Context<'_>, (id,): (String,)| {
            let ask = |calls: &mut dyn HostCalls| calls.deprecate_patch(&id);
            store.data_mut().ask("markers.deprecate-patch", ask)
        },
    )?;
    markers.func_wrap("side-effect", side_effect)?;
    super::children::define(linker, &name("children"), &name("executions"))?;

    linker
        .instance(&name("updates"))?
        .func_wrap("complete", complete)?;

    linker
        .instance(&name("clock"))?
        .func_wrap("now", |mut store: Context<'_>, (): ()| {
            let time = store.data_mut().ask("clock.now", |calls| Ok(calls.now()))?;
            Ok((time.0,))
        })?;
    linker
        .instance(&name("random"))?
        .func_wrap("random-bytes", random_bytes)?;
    linker.instance(&name("log"))?.func_wrap("write", write)?;

    define_info(&mut linker.instance(&name("workflow-info"))?)?;
    linker
        .instance(&name("memo"))?
        .func_wrap("upsert", upsert)?;
    super::waiting::define(&mut linker.instance(&name("waiting"))?)
}

/// The interface `workflow-info`.
fn define_info(info: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    info.func_wrap("get", |mut store: Context<'_>, (): ()| {
        let ask = |calls: &mut dyn HostCalls| Ok(InfoValue::from(calls.info()));
        Ok((store.data_mut().ask("workflow-info.get", ask)?,))
    })?;
    info.func_wrap("history-length", |mut store: Context<'_>, (): ()| {
        let ask = |calls: &mut dyn HostCalls| Ok(calls.history_length());
        Ok((store.data_mut().ask("workflow-info.history-length", ask)?,))
    })?;
    info.func_wrap(
        "continue-as-new-suggested",
        |mut store: Context<'_>, (event,): (u64,)| {
            let ask = |calls: &mut dyn HostCalls| {
                Ok(calls.is_continue_as_new_suggested(EventNumber(event)))
            };
            let name = "workflow-info.continue-as-new-suggested";
            Ok((store.data_mut().ask(name, ask)?,))
        },
    )?;
    info.func_wrap("chain", |mut store: Context<'_>, (): ()| {
        let ask = |calls: &mut dyn HostCalls| Ok(ChainValue::from(calls.info()));
        Ok((store.data_mut().ask("workflow-info.chain", ask)?,))
    })?;
    Ok(())
}

/// `activities.schedule`.
fn schedule(
    mut store: Context<'_>,
    (activity_type, input, options): (WasmStr, PayloadArg, OptionsArg),
) -> wasmtime::Result<(u32,)> {
    let options = CallOptions {
        schedule_to_close: Millis(options.schedule_to_close_ms),
        schedule_to_start: Millis(options.schedule_to_start_ms),
        start_to_close: Millis(options.start_to_close_ms),
        heartbeat: Millis(options.heartbeat_ms),
        initial_interval: Millis(options.initial_interval_ms),
        backoff_permille: options.backoff_permille,
        maximum_interval: Millis(options.maximum_interval_ms),
        maximum_attempts: options.maximum_attempts,
        settings: settings(&mut store, &options.settings)?,
    };
    let mut calls = store.data_mut().take("activities.schedule")?;
    let seq = schedule_borrowed(&store, calls.as_mut(), &activity_type, &input, &options);
    store.data_mut().put(calls);
    let operation = seq?.0;
    store.data_mut().given(operation);
    Ok((operation,))
}

fn schedule_borrowed(
    store: &Context<'_>,
    calls: &mut dyn HostCalls,
    activity_type: &WasmStr,
    input: &PayloadArg,
    options: &CallOptions,
) -> wasmtime::Result<Seq> {
    let activity_type = activity_type.to_str(store)?;
    let encoding = input.encoding.to_str(store)?;
    let call = ActivityCall {
        activity_type: &activity_type,
        input: input.data.as_le_slice(store),
        encoding: &encoding,
        options,
    };
    Ok(calls.schedule_activity(call)?)
}

/// Copies settings, which most calls do not have.
pub(super) fn settings(
    store: &mut Context<'_>,
    list: &WasmList<(WasmStr, WasmStr)>,
) -> wasmtime::Result<Vec<(String, String)>> {
    let count = list.len();
    if count == 0 {
        return Ok(Vec::new());
    }
    if count > SETTINGS_MAX {
        let text = format!("a call has {count} settings; the limit is {SETTINGS_MAX}");
        return Err(Stop::Limit(text).into());
    }
    let pairs: Vec<_> = list.iter(&mut *store)?.collect::<wasmtime::Result<_>>()?;
    let mut bytes = 0_usize;
    let mut settings = Vec::with_capacity(count);
    for (name, value) in pairs {
        let (name, value) = (name.to_str(&*store)?, value.to_str(&*store)?);
        bytes = bytes.saturating_add(name.len()).saturating_add(value.len());
        if bytes > SETTINGS_BYTES_MAX {
            let text =
                format!("the settings of a call exceed the limit of {SETTINGS_BYTES_MAX} bytes");
            return Err(Stop::Limit(text).into());
        }
        settings.push((name.into_owned(), value.into_owned()));
    }
    Ok(settings)
}

/// `markers.side-effect`.
fn side_effect(
    mut store: Context<'_>,
    (name, value): (String, PayloadValue),
) -> wasmtime::Result<(PayloadResult,)> {
    let value = value.into();
    let ask = |calls: &mut dyn HostCalls| calls.side_effect(&name, value);
    let recorded = store.data_mut().ask("markers.side-effect", ask)?;
    Ok((recorded.into(),))
}

/// `updates.complete`.
fn complete(
    mut store: Context<'_>,
    (update_id, outcome): (String, Result<PayloadValue, FailureValue>),
) -> wasmtime::Result<()> {
    let outcome = outcome.map(Payload::from).map_err(Failure::from);
    store.data_mut().ask("updates.complete", |calls| {
        calls.complete_update(&update_id, outcome)
    })
}

/// `memo.upsert`.
fn upsert(
    mut store: Context<'_>,
    (entries,): (Vec<(String, PayloadValue)>,),
) -> wasmtime::Result<()> {
    let memo = entries
        .into_iter()
        .map(|(name, value)| (name, value.into()))
        .collect();
    store
        .data_mut()
        .ask("memo.upsert", |calls| calls.upsert_memo(memo))
}

/// `random.random-bytes`.
fn random_bytes(mut store: Context<'_>, (length,): (u32,)) -> wasmtime::Result<(Vec<u8>,)> {
    let bytes = store.data_mut().ask("random.random-bytes", |calls| {
        if length > RANDOM_BYTES_MAX {
            return Err(Stop::Invalid(format!(
                "random-bytes was asked for {length} bytes; the limit is {RANDOM_BYTES_MAX}"
            )));
        }
        // Below the limit of 4096, so the conversion keeps the value.
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        calls.random(&mut bytes);
        Ok(bytes)
    })?;
    Ok((bytes,))
}

/// `log.write`.
fn write(mut store: Context<'_>, (level, message): (LevelArg, WasmStr)) -> wasmtime::Result<()> {
    let mut calls = store.data_mut().lend();
    let panic_line = write_borrowed(&store, &mut calls, level, &message);
    let state = store.data_mut();
    state.put_back(calls);
    if let Some(line) = panic_line? {
        state.panic_line = Some(line);
    }
    Ok(())
}

/// Logs a line and returns the panic's message if the line tells of one.
fn write_borrowed(
    store: &Context<'_>,
    calls: &mut Calls,
    level: LevelArg,
    message: &WasmStr,
) -> wasmtime::Result<Option<String>> {
    let text = message.to_str(store)?;
    let line = cut(&text, LOG_LINE_BYTES_MAX);
    match calls {
        Calls::Run(calls) => calls.log(level.into(), line),
        Calls::Nobody => tracing::debug!(line, "a component logs outside of a run"),
    }
    Ok(line.strip_prefix(PANIC_PREFIX).map(str::to_owned))
}

/// The text up to `bytes_max`, ending at a character.
fn cut(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max))
        .unwrap_or(text)
}
