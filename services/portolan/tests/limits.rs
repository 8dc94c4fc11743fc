//! REVIEW-F1: every limit of the MCP endpoint is a setting, stands on the operators' page, and is
//! shown to the owners of workspaces.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{fs, path::Path};

use portolan::settings::GROUPS;
use portolan_model::limits::LimitName;

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

fn is_known(name: &str) -> bool {
    let mut settings = GROUPS.iter().flat_map(|group| group.settings);
    settings.any(|setting| setting.name == name)
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
fn f1_every_limit_has_a_setting_that_the_operators_page_names() {
    let page = page();
    let of_workspaces = LimitName::ALL.map(setting);
    for name in of_workspaces.iter().chain(OF_NODES) {
        let is_setting = is_known(name);
        assert!(is_setting, "{name} is not a setting");
        assert!(page.contains(&format!("`{name}`")), "{name} is not named");
    }
    // And it names no setting that there is not.
    let named = page.lines().filter(|line| line.starts_with("| "));
    for line in named.skip(1) {
        let cell = line.split('|').nth(2).unwrap();
        for name in cell.split('`').skip(1).step_by(2) {
            let is_setting = is_known(name);
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
