//! The export of calls, as CSV (RFC 4180) or JSON Lines.

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::stream;
use http::header;
use portolan_model::member::Action;
use portolan_site::{console_error::ConsoleError, state::AuthState};
use portolan_storage::{
    StorageError,
    platform::calls::{self, SEARCHED},
};
use serde::Deserialize;
use time::format_description::well_known::Rfc3339;
use utoipa::{IntoParams, ToSchema};

use super::{CallDetail, CallFilter, member_names};
use crate::{input::QueryParameters, workspace::Workspace};

/// Calls of one read.
const PAGE: i64 = 1_000;

/// Most calls of an export.
const MOST: usize = 100_000;

/// The form of an export.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExportFormat {
    /// RFC 4180, with a line of names.
    #[default]
    Csv,
    /// One JSON object a line, as `GET …/calls/{id}` answers it.
    Jsonl,
}

/// The wanted form.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ExportQuery {
    /// `csv` or `jsonl`.
    #[serde(default)]
    #[param(inline)]
    format: ExportFormat,
}

/// The columns of the CSV form.
const COLUMNS: &str = "id,at,server,tool,caller,user_id,user,client,client_version,client_id,revision,era,outcome,status,error,wait_us,backend_us,took_us,bytes_in,bytes_out,session,trace_id,node,weight\r\n";

/// The newest 100,000 calls that the filter wants.
#[utoipa::path(get, path = "/workspaces/{ws}/calls/export", tag = "calls",
    params(("ws" = String, Path, description = "Slug"), ExportQuery, CallFilter),
    responses((status = 200, description = "One call a line.", body = String, content_type = "text/csv")))]
pub(crate) async fn export_calls(
    State(state): State<AuthState>,
    workspace: Workspace,
    QueryParameters(query): QueryParameters<ExportQuery>,
    QueryParameters(filter): QueryParameters<CallFilter>,
) -> Result<Response, ConsoleError> {
    workspace.require(Action::Read)?;
    let wanted = filter.wanted(&state, &workspace).await?;
    let names = member_names(&state, &workspace).await?;
    let (kind, ending) = match query.format {
        ExportFormat::Csv => ("text/csv; charset=utf-8", "csv"),
        ExportFormat::Jsonl => ("application/jsonl", "jsonl"),
    };
    let name = format!("attachment; filename=\"{}-calls.{ending}\"", workspace.slug);
    let headers = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CONTENT_DISPOSITION, name),
    ];
    let (tenant, format) = (workspace.id, query.format);
    // Read page by page. If the database fails, the response ends early.
    let pages = stream::try_unfold(
        (state, wanted, names, 0_usize),
        move |(state, mut wanted, names, written)| async move {
            if written >= MOST {
                return Ok::<_, StorageError>(None);
            }
            let mut tx = state.store.tenant(tenant).await?;
            let found = calls::search(&mut tx, &wanted, PAGE, SEARCHED).await?;
            drop(tx);
            let entries = found.entries;
            let mut lines = Vec::new();
            // Only the first page begins at no call.
            if wanted.before.is_none() && format == ExportFormat::Csv {
                lines.extend_from_slice(COLUMNS.as_bytes());
            }
            let is_full = i64::try_from(entries.len()).is_ok_and(|count| count >= PAGE);
            let is_last = !is_full && found.next.is_none();
            let last = entries.last().filter(|_| is_full);
            wanted.before = last.map(|last| (last.at, last.id)).or(found.next);
            let written = if is_last {
                MOST
            } else {
                written + entries.len()
            };
            for entry in entries {
                write_line(CallDetail::of(entry, &names), format, &mut lines);
            }
            Ok(Some((Bytes::from(lines), (state, wanted, names, written))))
        },
    );
    Ok((headers, Body::from_stream(pages)).into_response())
}

fn write_line(call: CallDetail, format: ExportFormat, out: &mut Vec<u8>) {
    if format == ExportFormat::Jsonl {
        if serde_json::to_writer(&mut *out, &call).is_ok() {
            out.push(b'\n');
        }
        return;
    }
    let number = |number: i64| number.to_string();
    let text = |text: Option<String>| text.unwrap_or_default();
    let fields = [
        call.id.to_string(),
        call.at.format(&Rfc3339).unwrap_or_default(),
        text(call.server_slug),
        call.tool_name,
        call.caller,
        text(call.user_id.map(|id| id.to_string())),
        text(call.user_name),
        text(call.client_name),
        text(call.client_version),
        text(call.client_id),
        text(call.revision),
        call.era,
        call.outcome,
        text(call.status.map(|status| status.to_string())),
        text(call.error),
        number(call.timing.wait_us),
        number(call.timing.backend_us),
        number(call.timing.took_us),
        number(call.bytes_in),
        number(call.bytes_out),
        text(call.session),
        text(call.trace_id),
        text(call.node),
        call.weight.to_string(),
    ];
    for (place, field) in fields.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write_field(field, out);
    }
    out.extend_from_slice(b"\r\n");
}

/// A field of CSV. Names come from clients: a text that a spreadsheet would compute begins with an
/// apostrophe (OWASP, CSV injection).
fn write_field(field: &str, out: &mut Vec<u8>) {
    let is_formula = field.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if !is_formula && !field.contains([',', '"', '\n', '\r']) {
        out.extend_from_slice(field.as_bytes());
        return;
    }
    out.push(b'"');
    if is_formula {
        out.push(b'\'');
    }
    out.extend_from_slice(field.replace('"', "\"\"").as_bytes());
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(field: &str) -> String {
        let mut out = Vec::new();
        write_field(field, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_field_is_quoted_and_never_a_formula() {
        assert_eq!(written("get_port"), "get_port");
        assert_eq!(written("a,b"), "\"a,b\"");
        assert_eq!(written("say \"hi\""), "\"say \"\"hi\"\"\"");
        assert_eq!(written("=1+1"), "\"'=1+1\"");
        assert_eq!(written("-2"), "\"'-2\"");
        assert_eq!(written("@SUM(A1)"), "\"'@SUM(A1)\"");
    }
}
