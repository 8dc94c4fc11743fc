//! The methods of tasks (MCP-TK-6…MCP-TK-11, MCP-TX-4…MCP-TX-11).

use std::sync::Arc;

use portolan_cluster::{SessionKey, store::StreamKey};
use portolan_keys::Purpose;
use portolan_protocol::{
    error::ErrorKind,
    jsonrpc::Misfit,
    method::Method,
    result::ListParams,
    revision::Era,
    task::{self, Detail, TaskParams},
};

use crate::{
    call::{AsTask, Call, client_channel::ClientChannel},
    error::McpError,
    features::{
        task_result::{Wait, unknown, wrapped},
        work::{Job, Run, Work},
    },
    streams::services::StreamServices,
    tasks::{
        caller_tasks::{CallerTasks, TTL, TTL_AT_LEAST, TTL_AT_MOST},
        record::Record,
        run::OpenedTask,
    },
};

/// Most bytes of answers in one request (STREAM-4).
const MOST_ANSWER_BYTES: usize = 256 * 1024;

/// The tasks of the caller, if the client may use them.
fn caller_tasks(state: &StreamServices, call: &Call) -> Result<CallerTasks, McpError> {
    if call.revision.era() == Era::Modern && !task::is_declared(&call.client.capabilities) {
        let required = task::required();
        return Err(call.fail(&ErrorKind::MissingCapability { required }));
    }
    Ok(CallerTasks::new(state, &call.caller, &call.server))
}

/// Reads the parameters, and the task that they name.
fn named(call: &Call, caller_tasks: &CallerTasks) -> Result<(TaskParams, StreamKey), McpError> {
    let params = TaskParams::read(call.method, &call.params);
    let params = params.map_err(|misfit| call.misfit(misfit))?;
    let item = caller_tasks.item(&params.id).ok_or_else(|| unknown(call))?;
    Ok((params, item))
}

/// Reads the record of a task.
async fn look(
    call: &Call,
    caller_tasks: &CallerTasks,
    item: StreamKey,
) -> Result<Record, McpError> {
    let record = caller_tasks.look(item).await;
    let record = record.map_err(|why| why.refuse(call.revision, &call.id))?;
    record.ok_or_else(|| unknown(call))
}

/// Prepares `tasks/result`, which waits for its task.
pub(crate) async fn wait(state: &StreamServices, call: Box<Call>) -> Result<Work, McpError> {
    let caller_tasks = caller_tasks(state, &call)?;
    let (_, item) = named(&call, &caller_tasks)?;
    let record = look(&call, &caller_tasks, item).await?;
    Ok(Work::Run(Run {
        job: Job::TaskResult(Wait {
            left: record.left(call.now),
            caller_tasks,
            item,
        }),
        call: Arc::from(call),
    }))
}

/// Answers the other methods of tasks.
pub(crate) async fn answer(state: &StreamServices, call: &Call) -> Result<Vec<u8>, McpError> {
    let caller_tasks = caller_tasks(state, call)?;
    if call.method == Method::TasksList {
        return list(state, call, &caller_tasks).await;
    }
    let (params, item) = named(call, &caller_tasks)?;
    match call.method {
        Method::TasksCancel => cancel(call, &caller_tasks, item).await,
        Method::TasksUpdate => {
            let bytes = params.responses.iter().map(|(_, raw)| raw.as_bytes().len());
            if bytes.sum::<usize>() > MOST_ANSWER_BYTES {
                let misfit = Misfit::new("params.inputResponses", "at most 256 KiB");
                return Err(call.misfit(misfit));
            }
            let answers: Vec<_> = params
                .responses
                .iter()
                .map(|(key, answer)| (key.clone(), wrapped("result", answer)))
                .collect();
            let given = caller_tasks.give(item, &answers).await;
            let given = given.map_err(|why| why.refuse(call.revision, &call.id))?;
            given
                .map(|_| call.empty_result())
                .ok_or_else(|| unknown(call))
        }
        _ => {
            let record = look(call, &caller_tasks, item).await?;
            let detail = record.detail(call.revision, &call.server.identity);
            Ok(got(call, &caller_tasks, item, &record, &detail))
        }
    }
}

fn got(
    call: &Call,
    caller_tasks: &CallerTasks,
    item: StreamKey,
    record: &Record,
    detail: &Detail,
) -> Vec<u8> {
    let task = record.task(caller_tasks.id(item), call.revision);
    let result = task.got(detail, call.revision, &call.server.identity);
    call.result(&result)
}

async fn cancel(
    call: &Call,
    caller_tasks: &CallerTasks,
    item: StreamKey,
) -> Result<Vec<u8>, McpError> {
    let (mut is_new, now) = (false, call.now);
    let cancelled = caller_tasks.change(item, |record| {
        is_new = record.cancel(now);
        is_new
    });
    let cancelled = cancelled
        .await
        .map_err(|why| why.refuse(call.revision, &call.id))?;
    let Some(record) = cancelled else {
        return Err(unknown(call));
    };
    if is_new {
        caller_tasks.notify_runner(item, &record).await;
    }
    if call.revision.era() == Era::Modern {
        // MCP-TX-10, MCP-X-5B: the answer is the same in every status.
        return Ok(call.empty_result());
    }
    if !is_new {
        // MCP-TK-10: a task that has ended cannot be cancelled.
        let misfit = Misfit::new("params.taskId", "the task has ended already");
        return Err(call.misfit(misfit));
    }
    Ok(got(call, caller_tasks, item, &record, &Detail::None))
}

/// MCP-TK-9: the newest first, by pages. The cursor is valid for the caller only (MCP-PG-2).
async fn list(
    state: &StreamServices,
    call: &Call,
    caller_tasks: &CallerTasks,
) -> Result<Vec<u8>, McpError> {
    let params: ListParams = call.read()?;
    let scope = [&b"tasks/list"[..], &caller_tasks.scope()].concat();
    let keys = &state.keys;
    let after = match params.cursor {
        None => None,
        Some(cursor) => {
            let place = keys.read_stamp(Purpose::Cursor, &scope, &cursor);
            let place = place.and_then(|place| <[u8; 16]>::try_from(place).ok());
            Some(place.ok_or_else(|| call.fail(&ErrorKind::InvalidCursor))?)
        }
    };
    let kept = state
        .node
        .records(call.server.tenant, caller_tasks.key())
        .await;
    let kept = kept.map_err(|_| McpError::Unavailable)?;
    // The newest task has the lowest position.
    let place = |item: StreamKey, record: &Record| {
        let mut place = [0; 16];
        place[..8].copy_from_slice(&(i64::MAX - record.created).to_be_bytes());
        place[8..].copy_from_slice(&item.nonce.0);
        place
    };
    let mut tasks: Vec<_> = kept
        .iter()
        .filter_map(|kept| {
            let item = StreamKey {
                session: caller_tasks.key(),
                nonce: kept.nonce,
            };
            let record = Record::read_head(&kept.head)?;
            Some((place(item, &record), item, record))
        })
        .filter(|(place, ..)| after.is_none_or(|after| *place > after))
        .collect();
    tasks.sort_by_key(|(place, ..)| *place);
    let size = state.config.list_page_size.max(1);
    let goes_on = tasks.len() > size;
    tasks.truncate(size);
    let cursor = tasks
        .last()
        .filter(|_| goes_on)
        .map(|(place, ..)| keys.stamp(Purpose::Cursor, &scope, place));
    let mut shown = Vec::with_capacity(tasks.len());
    for (_, item, record) in tasks {
        // MCP-X-5F: the list and `tasks/get` agree.
        let record = if caller_tasks.is_lost(item, &record) {
            let looked = caller_tasks.look(item).await;
            let looked = looked.map_err(|why| why.refuse(call.revision, &call.id))?;
            match looked {
                Some(record) => record,
                None => continue,
            }
        } else {
            record
        };
        shown.push(record.task(caller_tasks.id(item), call.revision));
    }
    let result = task::listed(&shown, cursor.as_deref(), &call.server.identity);
    Ok(call.result(&result))
}

/// MCP-TK-15: the client's wish, within the bounds.
pub(crate) fn ttl(wish: Option<u64>) -> u64 {
    wish.map_or(TTL, |wish| wish.clamp(TTL_AT_LEAST, TTL_AT_MOST))
}

/// A call of a session that is to be a task (MCP-TK-3): it is made, announced, and only then
/// begins.
pub(crate) async fn begin(
    state: &StreamServices,
    session: SessionKey,
    run: Run,
    wish: AsTask,
) -> Result<Vec<u8>, McpError> {
    let call = &run.call;
    let revision = call.revision;
    let caller_tasks = CallerTasks::new(state, &call.caller, &call.server);
    let opened = OpenedTask::new(caller_tasks, revision, ttl(wish.ttl), Some(session)).await;
    let opened = opened.map_err(|why| why.refuse(revision, &call.id))?;
    let body = call.result(&opened.created());
    let (channel, said) = ClientChannel::of_task(revision, call.client.capabilities.clone());
    let notifications = opened.notifications(session, call.progress.clone(), run.talks(state));
    opened.start(run.start(state, Some(channel)), said, Some(notifications));
    Ok(body)
}
