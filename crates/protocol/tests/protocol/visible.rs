//! The fixed words of what could not be done (MCP-V-1…MCP-V-11), as a tool's result and as an
//! error.

use portolan_protocol::ask::{Need, Unaskable};
use portolan_protocol::method::Method;
use portolan_protocol::visible::{Awaited, Visible};
use portolan_protocol::{RequestId, Revision};
use serde_json::json;

use crate::schema::conforms;
use crate::{identity, tree};

const R3: Revision = Revision::V2025_06_18;
const R5: Revision = Revision::V2026_07_28;

#[test]
fn v_1_to_v_11_say_what_the_table_says() {
    let step = |url: Option<&str>| Visible::BrowserStep {
        message: "Sign in.".to_owned(),
        url: url.map(str::to_owned),
    };
    let linked = "https://mcp.example.com/connect/1";
    let rows = [
        (
            Visible::Needs(Need::Form),
            -31006,
            "This tool needs the client feature \"elicitation\", which this client does not offer.",
        ),
        (
            Visible::TooManyRounds,
            -31005,
            "The upstream server asked for input too many times.",
        ),
        (
            Visible::TimedOut(Awaited::Client),
            -31001,
            "Timed out waiting for client input.",
        ),
        (
            Visible::TimedOut(Awaited::Upstream),
            -31001,
            "Timed out waiting for the upstream server.",
        ),
        (
            Visible::Lost,
            -31004,
            "The pending operation was lost. Call the tool again.",
        ),
        (
            step(Some("https://up/")),
            -31006,
            "This tool needs a step in the browser: Sign in. https://up/ Then call the tool again.",
        ),
        (
            step(None),
            -31006,
            "This tool needs a step in the browser: Sign in. Then call the tool again.",
        ),
        (
            Visible::Unreachable,
            -31000,
            "The upstream server could not be reached.",
        ),
        (
            Visible::Invalid,
            -31005,
            "The upstream server answered in an invalid way.",
        ),
        (
            Visible::Declined,
            -31006,
            "The client declined the request of the upstream server.",
        ),
        (
            Visible::NotLinked {
                url: linked.to_owned(),
            },
            -31007,
            "Connect your account first: https://mcp.example.com/connect/1",
        ),
        (
            Visible::PeopleOnly,
            -31007,
            "This uses the own account of the person who calls it, and no person is behind this call.",
        ),
        (
            Visible::MultipleChoice,
            -31006,
            "This tool needs a multiple-choice form, which this client cannot show.",
        ),
    ];
    let id = RequestId::from(3);
    for (visible, code, text) in rows {
        let (status, body) = visible.answer(Method::ToolsCall, &id, R3, &identity());
        let result = tree(&body)["result"].clone();
        conforms(R3, "CallToolResult", &result);
        assert_eq!(status, 200);
        assert_eq!(
            result,
            json!({"content": [{"type": "text", "text": text}], "isError": true})
        );
        let (_, body) = visible.answer(Method::PromptsGet, &id, R3, &identity());
        let error = &tree(&body)["error"];
        assert_eq!(error["code"], code, "{text}");
    }
}

#[test]
fn v_2_a_modern_client_that_lacks_a_capability_is_told_so_by_the_protocol() {
    for method in [Method::ToolsCall, Method::ResourcesRead] {
        let (status, body) = Visible::Needs(Need::SamplingTools).answer(
            method,
            &RequestId::from("a"),
            R5,
            &identity(),
        );
        let body = tree(&body);
        assert_eq!(
            (status, body["error"]["code"].clone()),
            (400, json!(-32021))
        );
        assert_eq!(
            body["error"]["data"]["requiredCapabilities"],
            json!({"sampling": {"tools": {}}}),
            "MCP-L-19"
        );
        conforms(R5, "MissingRequiredClientCapabilityError", &body);
    }
}

#[test]
fn why_a_client_cannot_be_asked_has_its_words() {
    assert_eq!(
        Visible::from(Unaskable::MultipleChoice),
        Visible::MultipleChoice
    );
    assert_eq!(
        Visible::from(Unaskable::Content("sound")).text(),
        "This tool needs the client feature \"sound in sampling\", which this client does not offer."
    );
}
