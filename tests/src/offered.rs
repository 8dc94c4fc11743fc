//! The items of the fixture upstreams, word for word: a list that may have one name more proves
//! nothing. They are written from the fixtures' sources, not from Portolan's output.

use crate::upstream::Fixture;

/// `tests/fixtures-upstream/typescript/content.mjs`.
const TYPESCRIPT: [&str; 35] = [
    "json_schema_2020_12_tool",
    "test_ask_beside",
    "test_ask_for_ever",
    "test_audio_content",
    "test_cancelled",
    "test_count",
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_embedded_resource",
    "test_error_handling",
    "test_headers",
    "test_image_content",
    "test_input_required_result_capabilities",
    "test_input_required_result_elicitation",
    "test_input_required_result_list_roots",
    "test_input_required_result_multi_round",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_request_state",
    "test_input_required_result_sampling",
    "test_input_required_result_tampered_state",
    "test_logging_tool",
    "test_missing_capability",
    "test_multiple_content_types",
    "test_reconnection",
    "test_sampling",
    "test_simple_text",
    "test_slow",
    "test_streaming_elicitation",
    "test_structured_content",
    "test_tool_with_logging",
    "test_tool_with_progress",
    "test_touch_resource",
    "test_trigger_prompt_change",
    "test_trigger_tool_change",
];

/// `legacy-tasks.mjs` beside it.
const TASKS_OF_SESSIONS: [&str; 3] = ["task_asks", "task_optional", "task_required"];

/// `tasks.mjs` beside it.
const TASKS: [&str; 7] = [
    "confirm_delete",
    "failing_job",
    "greet",
    "multi_input",
    "protocol_error_job",
    "slow_compute",
    "test_tool_with_task",
];

/// `tests/fixtures-upstream/python/content.py`, and the one tool that each of the two servers has in its SDK's own way.
const PYTHON: [&str; 18] = [
    "test_ask_by_schema",
    "test_audio_content",
    "test_elicitation",
    "test_embedded_resource",
    "test_error_handling",
    "test_image_content",
    "test_input_required_result_elicitation",
    "test_input_required_result_list_roots",
    "test_input_required_result_multi_round",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_sampling",
    "test_multiple_content_types",
    "test_sampling",
    "test_simple_text",
    "test_slow",
    "test_structured_content",
    "test_tool_with_logging",
    "test_tool_with_progress",
];

/// `rmcp_upstream`.
const RMCP: [&str; 7] = [
    "test_error_handling",
    "test_input_required_result_elicitation",
    "test_sampling",
    "test_simple_text",
    "test_slow",
    "test_structured_content",
    "test_tool_with_progress",
];

/// Of all but rmcp, which has the second alone.
const PROMPTS: [&str; 5] = [
    "test_input_required_result_prompt",
    "test_prompt_with_arguments",
    "test_prompt_with_embedded_resource",
    "test_prompt_with_image",
    "test_simple_prompt",
];

/// Of all; TypeScript's have the third too.
const RESOURCES: [&str; 3] = [
    "test://static-binary",
    "test://static-text",
    "test://watched-resource",
];

impl Fixture {
    /// Is it the content of `content.mjs`?
    #[must_use]
    pub fn is_typescript(self) -> bool {
        matches!(
            self,
            Self::TypeScript1
                | Self::Gated
                | Self::TypeScript2
                | Self::TypeScriptBoth
                | Self::GatedBoth
                | Self::HttpSse
                | Self::GatedSse
        )
    }

    /// The revisions that Portolan speaks with it for clients of the session era, and for those of
    /// 2026-07-28: their own era, if it knows that (MCP-X-5).
    #[must_use]
    pub fn spoken(self) -> [Option<&'static str>; 2] {
        const SESSIONS: Option<&str> = Some("2025-11-25");
        const STATELESS: Option<&str> = Some("2026-07-28");
        match self {
            Self::HttpSse | Self::GatedSse => [None, None],
            Self::TypeScript1 | Self::Gated | Self::Python1 => [SESSIONS, SESSIONS],
            Self::TypeScript2 => [STATELESS, STATELESS],
            Self::TypeScriptBoth | Self::GatedBoth | Self::Python2 | Self::Rmcp => {
                [SESSIONS, STATELESS]
            }
        }
    }

    /// Is it spoken to in the era of each client?
    #[must_use]
    pub fn knows_both_eras(self) -> bool {
        let [sessions, stateless] = self.spoken();
        sessions != stateless
    }

    /// Names of its tools, in byte order (MCP-TL-3): those of both eras.
    #[must_use]
    pub fn tools(self) -> Vec<&'static str> {
        let more: &[&[&str]] = match self {
            Self::TypeScript1 | Self::Gated => &[&TASKS_OF_SESSIONS],
            Self::TypeScript2 => &[&TASKS],
            Self::TypeScriptBoth | Self::GatedBoth => &[&TASKS, &TASKS_OF_SESSIONS],
            Self::HttpSse | Self::GatedSse => &[],
            Self::Python1 | Self::Python2 => return PYTHON.to_vec(),
            Self::Rmcp => return RMCP.to_vec(),
        };
        let mut all = [TYPESCRIPT.as_slice(), &more.concat()].concat();
        all.sort_unstable();
        all
    }

    /// Names of its prompts, in byte order.
    #[must_use]
    pub fn prompts(self) -> Vec<&'static str> {
        if self == Self::Rmcp {
            return vec![PROMPTS[1]];
        }
        PROMPTS.to_vec()
    }

    /// URIs of its resources, in byte order.
    #[must_use]
    pub fn resources(self) -> Vec<&'static str> {
        let count = if self.is_typescript() { 3 } else { 2 };
        RESOURCES[..count].to_vec()
    }

    /// Its one template.
    #[must_use]
    pub fn template(self) -> &'static str {
        "test://template/{id}/data"
    }

    /// The text of its failing tool: Python's SDKs put their own words before it.
    #[must_use]
    pub fn failure(self) -> &'static str {
        if matches!(self, Self::Python1 | Self::Python2) {
            return "Error executing tool test_error_handling: This tool intentionally returns an error for testing";
        }
        "This tool intentionally returns an error for testing"
    }

    /// The error of a prompt whose first argument is missing, as a client receives it: code, and
    /// words of its message. Python's SDKs have texts of their own.
    #[must_use]
    pub fn missing_argument(self) -> (i64, &'static str) {
        match self {
            Self::Python1 => (0, "Missing required arguments: {'arg1'}"),
            Self::Python2 => (-32603, "Internal server error"),
            _ => (
                -32602,
                "Unknown prompt or missing argument: test_prompt_with_arguments",
            ),
        }
    }

    /// The text of its tool if the client cannot be asked (MCP-X-30). Fixtures of 2026-07-28 do not
    /// ask, so that the text is Portolan's (MCP-V-1). The others receive that the method is not
    /// found, and each has its own text.
    #[must_use]
    pub fn nobody_to_ask(self, tool: &str) -> String {
        match self {
            Self::TypeScript1
            | Self::Gated
            | Self::TypeScriptBoth
            | Self::GatedBoth
            | Self::HttpSse
            | Self::GatedSse => {
                "MCP error -32601: Method not found: elicitation/create".to_owned()
            }
            Self::Python1 => {
                format!("Error executing tool {tool}: Method not found: elicitation/create")
            }
            _ => "This tool needs the client feature \"elicitation\", which this client does not offer.".to_owned(),
        }
    }
}
