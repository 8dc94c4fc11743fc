//! The four lists: cached pages, with a cursor that is valid for its caller only
//! (MCP-PG-1…MCP-PG-3).

use portolan_keys::Purpose;
use portolan_protocol::{
    error::ErrorKind,
    jsonrpc::{self, Misfit, Request},
};

use crate::{
    caller::Caller,
    catalog::{
        pages::{List, ListParams, Listed, Page, Pages},
        server::Server,
    },
    error::McpError,
    features::context::Context,
};

/// Answers one of the lists.
pub(crate) fn answer(cx: &Context<'_>, list: List, request: &Request) -> Result<Vec<u8>, McpError> {
    let (server, revision) = (cx.server, cx.revision);
    let offers = &server.offers;
    let pages = match list {
        List::Tools => server.pages(revision),
        _ => offers.pages(list, revision, &server.identity),
    };
    if list == List::Tools
        && let Some(session) = cx.session
        && let Some(shown) = server.tools_for(revision, &session.id.capabilities())
    {
        let pages = Pages::unwritten(list, server.page_size);
        return page(cx, list, request, &pages, &shown);
    }
    match list {
        List::Tools => page(cx, list, request, pages, &server.tools),
        List::Prompts => page(cx, list, request, pages, &offers.prompts),
        List::Resources => page(cx, list, request, pages, &offers.resources),
        List::Templates => page(cx, list, request, pages, &offers.templates),
    }
}

fn page<T: Listed>(
    cx: &Context<'_>,
    list: List,
    request: &Request,
    pages: &Pages,
    entries: &[T],
) -> Result<Vec<u8>, McpError> {
    let params: ListParams = request
        .params
        .read()
        .map_err(|misfit: Misfit| cx.fail(&misfit.into(), &request.id))?;
    let scope = cursor_scope(list, cx.caller, cx.server);
    let answer = |page: &Page| {
        let cursor = page
            .goes_on_after
            .as_ref()
            .map(|key| cx.state.keys.stamp(Purpose::Cursor, &scope, key.as_bytes()));
        let cursor = cursor.unwrap_or_default();
        jsonrpc::response_with(&request.id, page.len() + cursor.len(), |out| {
            page.write(&cursor, out);
        })
    };
    let after = |key: &str| {
        let found = pages.after(key, entries, cx.revision, &cx.server.identity);
        answer(found.page())
    };
    match params.cursor {
        // Keys are never empty.
        None => Ok(after("")),
        Some(cursor) => {
            let key = cx
                .state
                .keys
                .read_stamp(Purpose::Cursor, &scope, &cursor)
                .and_then(|key| String::from_utf8(key).ok());
            let Some(key) = key else {
                return Err(cx.fail(&ErrorKind::InvalidCursor, &request.id));
            };
            Ok(after(&key))
        }
    }
}

/// The scope of a cursor: list, caller and server (MCP-PG-2).
fn cursor_scope(list: List, caller: &Caller, server: &Server) -> Vec<u8> {
    let mut scope = list.method().as_bytes().to_vec();
    for part in [
        server.tenant.uuid(),
        server.id.uuid(),
        caller.claims.sub.uuid(),
    ] {
        scope.extend_from_slice(part.as_bytes());
    }
    scope
}
