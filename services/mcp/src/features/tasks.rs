//! The methods of tasks (MCP-TK-6…MCP-TK-11, MCP-TX-4…MCP-TX-11).

use portolan_cluster::store::StreamKey;
use portolan_keys::Purpose;
use portolan_protocol::{
    error::ErrorKind,
    jsonrpc::{self, Misfit, Request, RequestId},
    method::Method,
    result::ListParams,
    revision::Era,
    task::{self, Detail, TaskParams},
};

use crate::{
    call::client_channel::ClientChannel,
    error::McpError,
    features::{
        Work,
        context::Context,
        task_result::{Wait, unknown, wrapped},
        tools::PreparedCall,
    },
    session::LiveSession,
    tasks::{
        caller_tasks::{CallerTasks, TTL, TTL_AT_LEAST, TTL_AT_MOST},
        record::Record,
        run::Opened,
    },
};

/// Most bytes of answers in one request (STREAM-4).
const MOST_ANSWER_BYTES: usize = 256 * 1024;

/// Answers a method of tasks.
pub(crate) async fn answer(
    cx: &Context<'_>,
    method: Method,
    request: &Request,
) -> Result<Work, McpError> {
    if cx.revision.era() == Era::Modern && !cx.capabilities.is_some_and(task::is_declared) {
        let required = task::required();
        return Err(cx.fail(&ErrorKind::MissingCapability { required }, &request.id));
    }
    let caller_tasks = CallerTasks::new(cx.state, cx.caller, cx.server);
    if method == Method::TasksList {
        return list(cx, &caller_tasks, request).await.map(Work::Done);
    }
    let id = &request.id;
    let params = TaskParams::read(method, &request.params)
        .map_err(|misfit: Misfit| cx.fail(&misfit.into(), id))?;
    let unknown = || unknown(cx.revision, id);
    let item = caller_tasks.item(&params.id).ok_or_else(unknown)?;
    match method {
        Method::TasksCancel => cancel(cx, &caller_tasks, item, id).await.map(Work::Done),
        Method::TasksUpdate => {
            if params
                .responses
                .iter()
                .map(|(_, raw)| raw.as_bytes().len())
                .sum::<usize>()
                > MOST_ANSWER_BYTES
            {
                let misfit = Misfit::new("params.inputResponses", "at most 256 KiB");
                return Err(cx.fail(&misfit.into(), id));
            }
            let answers: Vec<_> = params
                .responses
                .iter()
                .map(|(key, answer)| (key.clone(), wrapped("result", answer)))
                .collect();
            let given = caller_tasks.give(item, &answers).await;
            let given = given.map_err(|why| why.refuse(cx.revision, id))?;
            given.map(|_| done(cx, id)).ok_or_else(unknown)
        }
        _ => {
            let record = caller_tasks.look(item).await;
            let record = record.map_err(|why| why.refuse(cx.revision, id))?;
            let record = record.ok_or_else(unknown)?;
            if method == Method::TasksResult {
                return Ok(Work::Wait(Box::new(Wait {
                    left: record.left(cx.now),
                    caller_tasks,
                    item,
                    id: id.clone(),
                    revision: cx.revision,
                })));
            }
            let detail = record.detail(cx.revision, &cx.server.identity);
            Ok(Work::Done(got(
                cx,
                &caller_tasks,
                item,
                &record,
                &detail,
                id,
            )))
        }
    }
}

fn done(cx: &Context<'_>, id: &RequestId) -> Work {
    let fixed = cx.server.fixed(cx.revision);
    Work::Done(jsonrpc::response(id, &fixed.empty))
}

fn got(
    cx: &Context<'_>,
    caller_tasks: &CallerTasks,
    item: StreamKey,
    record: &Record,
    detail: &Detail,
    id: &RequestId,
) -> Vec<u8> {
    let task = record.task(caller_tasks.id(item), cx.revision);
    let result = task.got(detail, cx.revision, &cx.server.identity);
    jsonrpc::response(id, &result)
}

async fn cancel(
    cx: &Context<'_>,
    caller_tasks: &CallerTasks,
    item: StreamKey,
    id: &RequestId,
) -> Result<Vec<u8>, McpError> {
    let (mut is_new, now) = (false, cx.now);
    let cancelled = caller_tasks.change(item, |record| {
        is_new = record.cancel(now);
        is_new
    });
    let cancelled = cancelled.await.map_err(|why| why.refuse(cx.revision, id))?;
    let Some(record) = cancelled else {
        return Err(unknown(cx.revision, id));
    };
    if is_new {
        caller_tasks.notify_runner(item, &record).await;
    }
    if cx.revision.era() == Era::Modern {
        // MCP-TX-10, MCP-X-5B: the answer is the same in every status.
        return Ok(jsonrpc::response(id, &cx.server.fixed(cx.revision).empty));
    }
    if !is_new {
        // MCP-TK-10: a task that has ended cannot be cancelled.
        let misfit = Misfit::new("params.taskId", "the task has ended already");
        return Err(cx.fail(&misfit.into(), id));
    }
    Ok(got(cx, caller_tasks, item, &record, &Detail::None, id))
}

/// MCP-TK-9: the newest first, by pages. The cursor is valid for the caller only (MCP-PG-2).
async fn list(
    cx: &Context<'_>,
    caller_tasks: &CallerTasks,
    request: &Request,
) -> Result<Vec<u8>, McpError> {
    let id = &request.id;
    let params: ListParams = request
        .params
        .read()
        .map_err(|misfit: Misfit| cx.fail(&misfit.into(), id))?;
    let scope = [&b"tasks/list"[..], &caller_tasks.scope()].concat();
    let keys = &cx.state.keys;
    let after = match params.cursor {
        None => None,
        Some(cursor) => {
            let place = keys.read_stamp(Purpose::Cursor, &scope, &cursor);
            let place = place.and_then(|place| <[u8; 16]>::try_from(place).ok());
            Some(place.ok_or_else(|| cx.fail(&ErrorKind::InvalidCursor, id))?)
        }
    };
    let kept = cx
        .state
        .node
        .records(cx.server.tenant, caller_tasks.key())
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
    let size = cx.state.config.list_page_size.max(1);
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
            let looked = looked.map_err(|why| why.refuse(cx.revision, id))?;
            match looked {
                Some(record) => record,
                None => continue,
            }
        } else {
            record
        };
        shown.push(record.task(caller_tasks.id(item), cx.revision));
    }
    let result = task::listed(&shown, cursor.as_deref(), &cx.server.identity);
    Ok(jsonrpc::response(id, &result))
}

/// MCP-TK-15: the client's wish, within the bounds.
pub(crate) fn ttl(wish: Option<u64>) -> u64 {
    wish.map_or(TTL, |wish| wish.clamp(TTL_AT_LEAST, TTL_AT_MOST))
}

/// A call of a session that is to be a task (MCP-TK-3): it is made, announced, and only then
/// begins.
pub(crate) async fn begin(
    cx: &Context<'_>,
    session: &LiveSession,
    mut call: Box<PreparedCall>,
) -> Result<Vec<u8>, McpError> {
    let revision = session.id.revision;
    let wish = call.task.take().and_then(|task| task.ttl);
    let caller_tasks = CallerTasks::new(cx.state, cx.caller, cx.server);
    let opened = Opened::new(caller_tasks, revision, ttl(wish), Some(session.id.key)).await;
    let opened = opened.map_err(|why| why.refuse(revision, &call.id))?;
    let body = jsonrpc::response(&call.id, &opened.created());
    let (channel, said) = ClientChannel::of_task(revision, session.id.capabilities());
    let notifications = opened.notifications(session.id.key, call.progress.clone(), call.talks());
    opened.start(call.run(Some(channel)), said, Some(notifications));
    Ok(body)
}
