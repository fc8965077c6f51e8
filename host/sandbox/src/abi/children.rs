//! Calls about children and other executions.

use steadfast_model::{Millis, Seq};
use steadfast_ports::HostCalls;
use steadfast_ports::guest::{ChildCall, ChildCallOptions, TargetCall};
use wasmtime::component::{Linker, WasmStr};

use super::imports::{Context, settings};
use super::lift::{ChildOptionsArg, PayloadArg, TargetArg};
use crate::state::State;

/// Defines the functions of `children` and `executions`.
///
/// # Errors
/// wasmtime's, when a name is defined twice.
pub(super) fn define(
    linker: &mut Linker<State>,
    children: &str,
    executions: &str,
) -> wasmtime::Result<()> {
    let mut children = linker.instance(children)?;
    children.func_wrap("start", start)?;
    children.func_wrap("cancel", cancel)?;
    let mut executions = linker.instance(executions)?;
    executions.func_wrap("signal", signal)?;
    executions.func_wrap("request-cancel", request_cancel)?;
    Ok(())
}

/// `children.start`.
fn start(
    mut store: Context<'_>,
    (workflow_type, input, options): (WasmStr, PayloadArg, ChildOptionsArg),
) -> wasmtime::Result<((u32, u32),)> {
    let options = ChildCallOptions {
        execution_timeout: Millis(options.execution_timeout_ms),
        run_timeout: Millis(options.run_timeout_ms),
        initial_interval: Millis(options.initial_interval_ms),
        backoff_permille: options.backoff_permille,
        maximum_interval: Millis(options.maximum_interval_ms),
        maximum_attempts: options.maximum_attempts,
        settings: settings(&mut store, &options.settings)?,
    };
    let mut calls = store.data_mut().take("children.start")?;
    let seq = start_borrowed(&store, calls.as_mut(), &workflow_type, &input, &options);
    store.data_mut().put(calls);
    let seq = seq?;
    store.data_mut().given(seq.outcome().0);
    Ok(((seq.0, seq.outcome().0),))
}

fn start_borrowed(
    store: &Context<'_>,
    calls: &mut dyn HostCalls,
    workflow_type: &WasmStr,
    input: &PayloadArg,
    options: &ChildCallOptions,
) -> wasmtime::Result<Seq> {
    let workflow_type = workflow_type.to_str(store)?;
    let encoding = input.encoding.to_str(store)?;
    let call = ChildCall {
        workflow_type: &workflow_type,
        input: input.data.as_le_slice(store),
        encoding: &encoding,
        options,
    };
    Ok(calls.start_child(call)?)
}

/// `children.cancel`.
fn cancel(mut store: Context<'_>, (operation, reason): (u32, WasmStr)) -> wasmtime::Result<()> {
    let mut calls = store.data_mut().take("children.cancel")?;
    let result = match reason.to_str(&store) {
        Ok(reason) => Ok(calls.cancel_child(Seq(operation), &reason)),
        Err(error) => Err(error),
    };
    store.data_mut().put(calls);
    Ok(result??)
}

/// `executions.signal`.
fn signal(
    mut store: Context<'_>,
    (target, name, input): (TargetArg, WasmStr, PayloadArg),
) -> wasmtime::Result<(u32,)> {
    let mut calls = store.data_mut().take("executions.signal")?;
    let seq = with_target(&store, &target, |target| {
        let name = name.to_str(&store)?;
        let encoding = input.encoding.to_str(&store)?;
        let data = input.data.as_le_slice(&store);
        Ok(calls.signal_external(target, &name, data, &encoding)?)
    });
    store.data_mut().put(calls);
    let seq = seq?;
    store.data_mut().given(seq.0);
    Ok((seq.0,))
}

/// `executions.request-cancel`.
fn request_cancel(
    mut store: Context<'_>,
    (target, reason): (TargetArg, WasmStr),
) -> wasmtime::Result<(u32,)> {
    let mut calls = store.data_mut().take("executions.request-cancel")?;
    let seq = with_target(&store, &target, |target| {
        let reason = reason.to_str(&store)?;
        Ok(calls.cancel_external(target, &reason)?)
    });
    store.data_mut().put(calls);
    let seq = seq?;
    store.data_mut().given(seq.0);
    Ok((seq.0,))
}

fn with_target(
    store: &Context<'_>,
    target: &TargetArg,
    call: impl FnOnce(TargetCall<'_>) -> wasmtime::Result<Seq>,
) -> wasmtime::Result<Seq> {
    let namespace = target.namespace.to_str(store)?;
    let workflow_id = target.workflow_id.to_str(store)?;
    let run_id = target.run_id.to_str(store)?;
    call(TargetCall {
        namespace: &namespace,
        workflow_id: &workflow_id,
        run_id: &run_id,
        child_only: target.child_only,
    })
}
