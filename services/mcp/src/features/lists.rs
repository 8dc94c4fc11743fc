//! The four lists: cached pages, with a cursor that is valid for its caller only
//! (MCP-PG-1…MCP-PG-3).

use portolan_keys::Purpose;
use portolan_protocol::{error::ErrorKind, jsonrpc};

use crate::{
    call::Call,
    caller::Caller,
    catalog::{
        pages::{List, ListItem, ListParams, Page, Pages},
        server::Server,
    },
    error::McpError,
};

/// Answers one of the lists.
pub(crate) fn answer(call: &Call, list: List) -> Result<Vec<u8>, McpError> {
    let (server, revision) = (&call.server, call.revision);
    let offers = &server.offers;
    let pages = match list {
        List::Tools => server.pages(revision),
        _ => offers.pages(list, revision, &server.identity),
    };
    if list == List::Tools
        && let Some(session) = &call.session
        && let Some(shown) = server.tools_for(revision, &session.id.capabilities())
    {
        let pages = Pages::unwritten(list, server.page_size);
        return page(call, list, &pages, &shown);
    }
    match list {
        List::Tools => page(call, list, pages, &server.tools),
        List::Prompts => page(call, list, pages, &offers.prompts),
        List::Resources => page(call, list, pages, &offers.resources),
        List::Templates => page(call, list, pages, &offers.templates),
    }
}

fn page<T: ListItem>(
    call: &Call,
    list: List,
    pages: &Pages,
    entries: &[T],
) -> Result<Vec<u8>, McpError> {
    let params: ListParams = call.read()?;
    let scope = cursor_scope(list, &call.caller, &call.server);
    let answer = |page: &Page| {
        let cursor = page.goes_on_after.as_ref().map(|key| {
            call.state
                .keys
                .stamp(Purpose::Cursor, &scope, key.as_bytes())
        });
        let cursor = cursor.unwrap_or_default();
        jsonrpc::response_with(&call.id, page.len() + cursor.len(), |out| {
            page.write(&cursor, out);
        })
    };
    let after = |key: &str| {
        let found = pages.after(key, entries, call.revision, &call.server.identity);
        answer(found.page())
    };
    match params.cursor {
        // Keys are never empty.
        None => Ok(after("")),
        Some(cursor) => {
            let key = call
                .state
                .keys
                .read_stamp(Purpose::Cursor, &scope, &cursor)
                .and_then(|key| String::from_utf8(key).ok());
            let Some(key) = key else {
                return Err(call.fail(&ErrorKind::InvalidCursor));
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
