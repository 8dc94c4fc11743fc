//! REVIEW-F1: every limit of the MCP endpoint is a setting, stands on the operators' page, and is
//! shown to the owners of workspaces.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{collections::BTreeSet, fs, path::Path};

use portolan::settings::SETTINGS;
use portolan_model::limits::LimitName;

/// Fields of the endpoint's configuration that are no limits: origins, pages, times and sizes of
/// memory.
const NO_LIMITS: &[&str] = &[
    "allowed_origins",
    "list_page_size",
    "verified_tokens",
    "catalogues",
    "registry_max_stale_secs",
    "ask_person_secs",
    "ask_program_secs",
    "park_secs",
    "task_after_secs",
    "call_log_queue",
];

/// Settings of limits that no workspace has of its own.
const OF_NODES: &[&str] = &[
    "address_requests_per_minute",
    "node_running_calls",
    "node_open_streams",
    "node_parked_calls",
    "node_resumes_per_second",
    "node_resumes_waiting",
];

/// The setting of a workspace's limit.
const fn setting(name: LimitName) -> &'static str {
    match name {
        LimitName::TenantCalls => "tenant_calls_per_minute",
        LimitName::ClientRequests => "calls_per_minute",
        LimitName::ToolCalls => "tool_calls_per_minute",
        LimitName::RunningCalls => "tenant_running_calls",
        LimitName::OpenStreams => "tenant_open_streams",
        LimitName::StreamOpens => "stream_opens_per_minute",
        LimitName::SessionStreams => "session_open_streams",
        LimitName::Listens => "client_listens",
        LimitName::ParkedCalls => "client_parked_calls",
        LimitName::Tasks => "client_tasks",
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(path),
    )
    .unwrap()
}

/// The part of the operators' page about limits.
fn page() -> String {
    let page = read("docs/operating.md");
    let (_, rest) = page.split_once("\n## Limits\n").unwrap();
    rest.split_once("\n## ").unwrap().0.to_owned()
}

#[test]
fn f1_every_limit_in_the_code_is_a_setting() {
    let config = read("services/mcp/src/config.rs");
    let (_, fields) = config.split_once("pub struct McpConfig {").unwrap();
    let (fields, _) = fields.split_once("\n}").unwrap();
    let fields: BTreeSet<&str> = fields
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub ")?.split_once(':'))
        .map(|(name, _)| name)
        .collect();
    let wiring = read("services/portolan/src/wiring.rs");
    let (_, set) = wiring.split_once("config: McpConfig {").unwrap();
    let (set, _) = set.split_once("..McpConfig::default()").unwrap();
    let is_set = |field: &str| set.contains(&format!("\n                {field}: "));
    for field in &fields {
        let is_limit = !NO_LIMITS.contains(field);
        assert!(!is_limit || is_set(field), "{field} is not a setting");
    }
    for known in NO_LIMITS {
        assert!(fields.contains(known), "there is no {known} any more");
    }
    assert!(fields.len() > 20, "{fields:?}");
}

#[test]
fn f1_every_limit_has_a_setting_that_the_operators_page_names() {
    let page = page();
    let of_workspaces = LimitName::ALL.map(setting);
    for name in of_workspaces.iter().chain(OF_NODES) {
        let is_setting = SETTINGS.iter().any(|setting| setting.name == *name);
        assert!(is_setting, "{name} is not a setting");
        assert!(page.contains(&format!("`{name}`")), "{name} is not named");
    }
    // And it names no setting that there is not.
    let named = page.lines().filter(|line| line.starts_with("| "));
    for line in named.skip(1) {
        let cell = line.split('|').nth(2).unwrap();
        for name in cell.split('`').skip(1).step_by(2) {
            let is_setting = SETTINGS.iter().any(|setting| setting.name == name);
            assert!(is_setting, "{name}: {line}");
        }
    }
}

#[test]
fn f1_every_limit_of_a_workspace_is_shown_in_the_console() {
    let form = read("web/src/components/limits-form.tsx");
    let api = read("services/console/src/limits.rs");
    for name in LimitName::ALL {
        let word = name.as_str();
        assert!(
            form.contains(&format!("\n  {word}: {{\n")),
            "{word} has no words"
        );
        assert!(
            api.contains(&format!("\n    {word}: Option<Option<u32>>,")),
            "{word}"
        );
    }
}
