//! Questions to clients and their answers (`docs/revisions.md`, section 17 to section 19;
//! MCP-X-30…MCP-X-3I), against the official schemas where they have them.

use portolan_protocol::ask::{AskMethod, Asked, Need, Unaskable, answer, question, refusal};
use portolan_protocol::capability::ClientCapabilities;
use portolan_protocol::input_required::{
    InputRequest, InputRequired, read_responses, write_responses,
};
use portolan_protocol::translate::{Loss, Losses, Violation};
use portolan_protocol::{Raw, Revision};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::schema::conforms;
use crate::{identity, tree};

const R1: Revision = Revision::V2024_11_05;
const R2: Revision = Revision::V2025_03_26;
const R3: Revision = Revision::V2025_06_18;
const R4: Revision = Revision::V2025_11_25;
const R5: Revision = Revision::V2026_07_28;

fn raw(value: &Value) -> Raw {
    Raw::of(value).unwrap()
}

fn able() -> ClientCapabilities {
    ClientCapabilities::from_bits(0b11_1111)
}

fn ask(
    method: AskMethod,
    params: &Value,
    from: Revision,
    to: Revision,
    capabilities: &ClientCapabilities,
) -> Result<(Value, Losses), Unaskable> {
    let asked = Asked {
        from,
        to,
        capabilities,
        made_up_id: "made-up",
    };
    question(method, &raw(params), &asked).map(|shaped| (tree(&shaped.json), shaped.losses))
}

fn form(properties: &Value) -> Value {
    json!({"mode": "form", "message": "Who?", "requestedSchema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": properties, "required": []}})
}

fn request(method: AskMethod, params: Value) -> Value {
    json!({"method": method.name(), "params": params})
}

#[test]
fn x_34_dp_7_fa_9_a_form_of_today_is_one_that_2025_06_18_can_show() {
    let params = form(&json!({
        "colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}], "default": "r"},
        "size": {"type": "string", "enum": ["s", "m"], "default": "s"},
        "age": {"type": "integer", "minimum": 0, "default": 3},
        "sure": {"type": "boolean", "default": true},
        "mail": {"type": "string", "format": "email", "pattern": "@"},
    }));
    let (seen, losses) = ask(AskMethod::Elicit, &params, R5, R3, &able()).unwrap();
    assert_eq!(
        seen,
        json!({"message": "Who?", "requestedSchema": {"type": "object", "required": [], "properties": {
            "colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
            "size": {"type": "string", "enum": ["s", "m"]},
            "age": {"type": "integer", "minimum": 0},
            "sure": {"type": "boolean", "default": true},
            "mail": {"type": "string", "format": "email"},
        }}}),
        "MCP-EL-2, MCP-EL-5"
    );
    let lost: Vec<Loss> = losses.iter().collect();
    assert_eq!(
        lost,
        [Loss::SchemaDialect, Loss::FormDefault, Loss::FormPattern]
    );
    conforms(R3, "ElicitRequest", &request(AskMethod::Elicit, seen));
    let (seen, _) = ask(AskMethod::Elicit, &params, R5, R4, &able()).unwrap();
    assert_eq!(
        seen["requestedSchema"]["properties"]["colour"],
        params["requestedSchema"]["properties"]["colour"],
        "MCP-EL-6"
    );
    assert!(
        !seen.to_string().contains("enumNames"),
        "MCP-DP-7: made for 2025-06-18 only"
    );
    conforms(R4, "ElicitRequestFormParams", &seen);
}

#[test]
fn v_11_a_multiple_choice_cannot_be_shown_by_2025_06_18() {
    let params =
        form(&json!({"many": {"type": "array", "items": {"type": "string", "enum": ["a"]}}}));
    assert_eq!(
        ask(AskMethod::Elicit, &params, R5, R3, &able()),
        Err(Unaskable::MultipleChoice)
    );
    let (seen, _) = ask(AskMethod::Elicit, &params, R4, R5, &able()).unwrap();
    conforms(R5, "ElicitRequest", &request(AskMethod::Elicit, seen));
}

#[test]
fn el_4_a_form_is_flat_or_nobody_is_asked() {
    for flat in [
        json!({"a": {"type": "string", "format": "email", "minLength": 1}, "b": {"type": "number"}, "c": {"type": "integer"}, "d": {"type": "boolean"}}),
        json!({"a": {"type": "string", "enum": ["x"]}, "b": {"enum": ["y"]}}),
        json!({"a": {"type": "array", "items": {"anyOf": [{"const": "x", "title": "X"}]}}}),
    ] {
        assert!(ask(AskMethod::Elicit, &form(&flat), R5, R4, &able()).is_ok());
    }
    for deep in [
        json!({"a": {"type": "object", "properties": {"b": {"type": "string"}}}}),
        json!({"a": {"properties": {"b": {"type": "string"}}}}),
        json!({"a": {"type": "array", "items": {"type": "object"}}}),
        json!({"a": {"type": "array"}}),
        json!({"a": true}),
    ] {
        for to in [R3, R4, R5] {
            let refused = ask(AskMethod::Elicit, &form(&deep), R5, to, &able());
            assert!(
                matches!(
                    refused,
                    Err(Unaskable::Malformed(_) | Unaskable::MultipleChoice)
                ),
                "{deep}: {refused:?}"
            );
        }
    }
    let mut root = form(&json!({}));
    root["requestedSchema"]["type"] = json!("array");
    assert!(ask(AskMethod::Elicit, &root, R5, R4, &able()).is_err());
}

#[test]
fn sm_1_sm_2_sm_4_a_conversation_with_tools_goes_whole_to_who_can_read_it() {
    let used = json!({"role": "assistant", "content": [
        {"type": "text", "text": "let me look"},
        {"type": "tool_use", "id": "1", "name": "look", "input": {"n": 1.50}},
        {"type": "tool_use", "id": "2", "name": "look", "input": {}}]});
    let results = json!({"role": "user", "content": [
        {"type": "tool_result", "toolUseId": "2", "content": []},
        {"type": "tool_result", "toolUseId": "1", "content": [{"type": "text", "text": "x"}], "isError": false}]});
    let params = |messages: Value| {
        json!({"messages": messages, "maxTokens": 9, "tools": [{"name": "look", "inputSchema": {"type": "object"}}], "toolChoice": {"mode": "auto"},
            "temperature": 0.5, "stopSequences": ["x"], "systemPrompt": "s", "metadata": {}, "modelPreferences": {"hints": [{"name": "m"}], "costPriority": 0.1}})
    };
    let whole = params(json!([used, results]));
    let (seen, losses) = ask(AskMethod::CreateMessage, &whole, R5, R4, &able()).unwrap();
    assert_eq!(seen, whole, "MCP-SM-1: nothing is lost");
    assert!(losses.is_none());
    for older in [R1, R2, R3] {
        assert_eq!(
            ask(AskMethod::CreateMessage, &whole, R5, older, &able()),
            Err(Unaskable::Needs(Need::SamplingTools)),
            "MCP-SM-2"
        );
    }
    let mut mixed = results.clone();
    mixed["content"]
        .as_array_mut()
        .unwrap()
        .push(json!({"type": "text", "text": "and"}));
    let other = json!({"role": "user", "content": [{"type": "tool_result", "toolUseId": "3", "content": []}]});
    let one = json!({"role": "user", "content": {"type": "tool_result", "toolUseId": "1", "content": []}});
    for broken in [
        json!([used, mixed]),
        json!([used, other]),
        json!([used, one]),
        json!([used]),
        json!([results]),
    ] {
        let refused = ask(
            AskMethod::CreateMessage,
            &params(broken.clone()),
            R5,
            R4,
            &able(),
        );
        assert!(
            matches!(refused, Err(Unaskable::Malformed(_))),
            "MCP-SM-4: {broken}"
        );
    }
    for without in ["messages", "maxTokens"] {
        let mut params = whole.clone();
        params.as_object_mut().unwrap().remove(without);
        assert!(ask(AskMethod::CreateMessage, &params, R5, R4, &able()).is_err());
    }
}

#[test]
fn x_38_the_older_names_of_choices_pass() {
    let params = form(&json!({"c": {"type": "string", "enum": ["a"], "enumNames": ["A"]}}));
    for to in [R3, R4, R5] {
        let (seen, _) = ask(AskMethod::Elicit, &params, R3, to, &able()).unwrap();
        assert_eq!(
            seen["requestedSchema"]["properties"]["c"]["enumNames"],
            json!(["A"])
        );
    }
}

#[test]
fn x_32_x_35_and_fa_9_the_id_of_a_question_by_url_lives_in_2025_11_25_only() {
    let from_r4 =
        json!({"mode": "url", "message": "m", "url": "https://up/", "elicitationId": "e"});
    let (seen, losses) = ask(AskMethod::Elicit, &from_r4, R4, R5, &able()).unwrap();
    assert_eq!(
        seen,
        json!({"mode": "url", "message": "m", "url": "https://up/"})
    );
    assert!(losses.has(Loss::ElicitationId));
    let from_r5 = json!({"mode": "url", "message": "m", "url": "https://up/"});
    let (seen, losses) = ask(AskMethod::Elicit, &from_r5, R5, R4, &able()).unwrap();
    assert_eq!(seen["elicitationId"], "made-up");
    assert!(losses.is_none());
    conforms(R4, "ElicitRequestURLParams", &seen);
}

#[test]
fn x_30_x_33_x_3a_x_3b_and_x_3f_nothing_is_asked_that_was_not_declared() {
    let url = json!({"mode": "url", "message": "m", "url": "https://up/"});
    let tools = json!({"messages": [], "maxTokens": 1, "tools": []});
    let plain = json!({"messages": [], "maxTokens": 1});
    let none = ClientCapabilities::default();
    for (method, params, need) in [
        (AskMethod::Elicit, form(&json!({})), Need::Form),
        (AskMethod::Elicit, url.clone(), Need::Url),
        (AskMethod::CreateMessage, plain, Need::Sampling),
        (AskMethod::CreateMessage, tools.clone(), Need::SamplingTools),
        (AskMethod::ListRoots, json!({}), Need::Roots),
    ] {
        for to in Revision::ALL {
            assert_eq!(
                ask(method, &params, R5, to, &none),
                Err(Unaskable::Needs(need))
            );
        }
        let required = tree(need.required().as_bytes());
        conforms(R5, "ClientCapabilities", &required);
        assert_eq!(
            Need::first_required(&raw(&required)),
            Some(need),
            "MCP-L-19"
        );
    }
    // Declared, but not of that revision (MCP-EL-1, MCP-SM-3).
    for to in [R1, R2] {
        assert_eq!(
            ask(AskMethod::Elicit, &form(&json!({})), R5, to, &able()),
            Err(Unaskable::Needs(Need::Form))
        );
    }
    for (method, params, need) in [
        (AskMethod::Elicit, url, Need::Url),
        (AskMethod::CreateMessage, tools, Need::SamplingTools),
    ] {
        assert_eq!(
            ask(method, &params, R5, R3, &able()),
            Err(Unaskable::Needs(need))
        );
    }
}

#[test]
fn x_3c_x_3d_and_fa_10_messages_of_several_blocks_become_one_or_cannot_be_asked() {
    let message = |content: Value| json!({"maxTokens": 9, "messages": [{"role": "user", "content": content}]});
    let text = |text: &str| json!({"type": "text", "text": text});
    let sample =
        |content: Value, to| ask(AskMethod::CreateMessage, &message(content), R5, to, &able());
    let (seen, losses) = sample(json!([text("a")]), R2).unwrap();
    assert_eq!(seen["messages"][0]["content"], text("a"));
    assert!(losses.is_none());
    let (seen, losses) = sample(json!([text("a"), text("b")]), R3).unwrap();
    assert_eq!(seen["messages"][0]["content"], text("a\nb"));
    assert!(losses.has(Loss::JoinedBlocks));
    conforms(
        R3,
        "CreateMessageRequest",
        &request(AskMethod::CreateMessage, seen),
    );
    let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
    assert!(matches!(
        sample(json!([text("a"), image]), R3),
        Err(Unaskable::Content(_))
    ));
    let (seen, _) = sample(json!([text("a"), image]), R4).unwrap();
    conforms(R4, "CreateMessageRequestParams", &seen);
    let audio = json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"});
    assert!(
        matches!(sample(audio.clone(), R1), Err(Unaskable::Content(_))),
        "MCP-X-3D"
    );
    assert!(sample(audio, R2).is_ok());
}

#[test]
fn x_3e_sm_5_and_dp_5_context_is_asked_for_only_where_it_is_offered() {
    let params = json!({"messages": [], "maxTokens": 1, "includeContext": "thisServer"});
    let mut shy = able();
    shy.sampling_context = false;
    let seen = |to, capabilities: &ClientCapabilities| {
        let (seen, losses) = ask(AskMethod::CreateMessage, &params, R3, to, capabilities).unwrap();
        (
            seen.get("includeContext").is_some(),
            losses.has(Loss::IncludeContext),
        )
    };
    assert_eq!(seen(R3, &shy), (true, false));
    assert_eq!(seen(R4, &shy), (false, true));
    assert_eq!(seen(R5, &able()), (true, false));
}

#[test]
fn x_39_and_el_8_an_answer_is_checked_against_what_was_asked() {
    // MCP-JS-12: by rules of our own, and not by the schema files, which take the number of an
    // answer for an integer.
    let params = form(&json!({
        "name": {"type": "string", "minLength": 2}, "age": {"type": "integer", "maximum": 150}, "weight": {"type": "number"},
        "sure": {"type": "boolean"}, "colour": {"type": "string", "oneOf": [{"const": "r", "title": "R"}]},
        "many": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "maxItems": 1},
    }));
    let mut params = params;
    params["requestedSchema"]["required"] = json!(["name"]);
    let check = |content: Value| {
        let result = json!({"action": "accept", "content": content});
        answer(AskMethod::Elicit, &raw(&params), &raw(&result), R5).map(|shaped| tree(&shaped.json))
    };
    let good = json!({"name": "Jo", "age": 3.0, "weight": 1.25, "sure": false, "colour": "r", "many": ["b"], "extra": "x"});
    assert_eq!(
        check(good.clone()).unwrap(),
        json!({"action": "accept", "content": good}),
        "MCP-EL-7: fractions are legal"
    );
    for (bad, path) in [
        (json!({}), "name"),
        (json!({"name": "J"}), "name"),
        (json!({"name": "Jo", "age": 1.5}), "age"),
        (json!({"name": "Jo", "age": 151}), "age"),
        (json!({"name": "Jo", "sure": "yes"}), "sure"),
        (json!({"name": "Jo", "colour": "b"}), "colour"),
        (json!({"name": "Jo", "many": ["c"]}), "many"),
        (json!({"name": "Jo", "many": ["a", "b"]}), "many"),
        (json!({"name": "Jo", "extra": {}}), "extra"),
    ] {
        let misfit = check(bad).unwrap_err();
        assert_eq!(misfit.path, format!("result.content.{path}"));
    }
    assert!(check(json!([])).is_err());
}

#[test]
fn el_7_content_goes_only_with_an_accepted_form() {
    let form = raw(&form(&json!({})));
    let url = raw(&json!({"mode": "url", "message": "m", "url": "https://up/"}));
    for (params, action, expected) in [
        (&form, "decline", json!({"action": "decline"})),
        (&form, "cancel", json!({"action": "cancel"})),
        (&url, "accept", json!({"action": "accept"})),
    ] {
        let result = json!({"action": action, "content": {"secret": 1}, "resultType": "complete"});
        let seen = answer(AskMethod::Elicit, params, &raw(&result), R4).unwrap();
        assert_eq!(tree(&seen.json), expected);
    }
    let odd = json!({"action": "maybe"});
    assert!(answer(AskMethod::Elicit, &form, &raw(&odd), R4).is_err());
}

#[test]
fn sm_6_and_rt_1_answers_have_what_the_asker_needs() {
    let said = json!({"role": "assistant", "model": "m", "stopReason": "endTurn", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]});
    let params = raw(&json!({}));
    let seen = answer(AskMethod::CreateMessage, &params, &raw(&said), R3).unwrap();
    assert_eq!(
        tree(&seen.json)["content"],
        json!({"type": "text", "text": "a\nb"})
    );
    conforms(R3, "CreateMessageResult", &tree(&seen.json));
    let seen = answer(AskMethod::CreateMessage, &params, &raw(&said), R5).unwrap();
    assert_eq!(tree(&seen.json), said);
    for bad in [
        json!({"role": "assistant", "content": {}}),
        json!([]),
        json!({"roots": 1}),
    ] {
        for method in AskMethod::ALL {
            assert!(answer(method, &params, &raw(&bad), R5).is_err());
        }
    }
    // MCP-RT-3: what a client says of its folders is passed on and never acted upon, whatever path
    // it is.
    let roots = json!({"roots": [{"uri": "file:///a", "name": "a"}, {"uri": "file:///../etc"}]});
    let seen = answer(AskMethod::ListRoots, &params, &raw(&roots), R1).unwrap();
    assert_eq!(tree(&seen.json), roots);
    assert!(
        answer(
            AskMethod::ListRoots,
            &params,
            &raw(&json!({"roots": [{}]})),
            R1
        )
        .is_err()
    );
}

#[test]
fn x_2b_and_x_2c_what_stands_for_an_answer_that_never_came() {
    let told = |method| refusal(method).map(|raw| tree(raw.as_bytes()));
    assert_eq!(told(AskMethod::Elicit), Some(json!({"action": "cancel"})));
    assert_eq!(told(AskMethod::ListRoots), Some(json!({"roots": []})));
    assert_eq!(told(AskMethod::CreateMessage), None, "MCP-X-2A");
}

#[test]
fn mr_2_and_mr_3_a_result_that_asks_is_read_and_written() {
    let value = json!({"resultType": "input_required", "requestState": "s\u{e9}", "inputRequests": {
        "who": {"method": "elicitation/create", "params": {"message": "m", "requestedSchema": {"type": "object", "properties": {}}}},
        "where": {"method": "roots/list"},
    }});
    let raw_value = raw(&value);
    assert!(InputRequired::is(&raw_value));
    let read = InputRequired::read(&raw_value).unwrap();
    assert_eq!(read.requests[1].1.method, AskMethod::ListRoots);
    let written = tree(&read.to_json(&identity()));
    conforms(R5, "InputRequiredResult", &written);
    assert_eq!(written["requestState"], value["requestState"]);
    assert_eq!(
        written["inputRequests"]["who"],
        value["inputRequests"]["who"]
    );
    assert!(
        written.get("ttlMs").is_none(),
        "MCP-MR-14: no caching hints"
    );
    for bad in [
        json!({"resultType": "input_required"}),
        json!({"resultType": "input_required", "requestState": 7}),
        json!({"resultType": "input_required", "inputRequests": {"a": {"method": "tools/call", "params": {}}}}),
        json!({"resultType": "input_required", "inputRequests": {"a": {"method": "elicitation/create"}}}),
        json!({"resultType": "input_required", "inputRequests": []}),
    ] {
        assert_eq!(
            InputRequired::read(&raw(&bad)),
            Err(Violation::InputRequired),
            "{bad}"
        );
    }
}

#[test]
fn x_7j_a_question_carries_a_token_of_ours_and_what_its_client_says_goes_under_that_of_its_asker() {
    use portolan_protocol::progress::{passed_on, want, wanted};
    let asked = raw(&json!({"message": "m", "_meta": {"progressToken": 7, "a.b/c": 1}}));
    assert_eq!(tree(wanted(&asked).unwrap().as_bytes()), 7);
    assert!(wanted(&raw(&json!({"message": "m"}))).is_none());
    assert!(wanted(&raw(&json!({"_meta": {"progressToken": {}}}))).is_none());
    let ours = want(&asked, "ours");
    assert_eq!(
        tree(ours.as_bytes()),
        json!({"message": "m", "_meta": {"a.b/c": 1, "progressToken": "ours"}})
    );
    let said = raw(&json!({"progressToken": "ours", "progress": 1.5, "total": 3, "message": "x"}));
    let (progress, passed) = passed_on(&said, &raw(&json!(7))).unwrap();
    assert!((progress - 1.5).abs() < f64::EPSILON);
    assert_eq!(
        tree(passed.as_bytes()),
        json!({"progressToken": 7, "progress": 1.5, "total": 3, "message": "x"})
    );
    for odd in [json!({"progressToken": "ours"}), json!({"progress": "1"})] {
        assert!(passed_on(&raw(&odd), &raw(&json!(7))).is_none());
    }
}

#[test]
fn mr_12_answers_are_objects() {
    let good = json!({"a": {"action": "accept"}, "b": {}});
    let read = read_responses(&raw(&good)).unwrap();
    let written = write_responses(read.iter().map(|(key, value)| (key.as_str(), value)));
    assert_eq!(tree(written.as_bytes()), good);
    for bad in [json!([]), json!({"a": null}), json!({"a": 1})] {
        assert!(read_responses(&raw(&bad)).is_err(), "{bad}");
    }
}

#[test]
fn x_14_capabilities_toward_an_upstream_are_those_of_its_revision() {
    for revision in Revision::ALL {
        let mut out = Vec::new();
        able().write(revision, &mut out);
        let written = tree(&out);
        conforms(revision, "ClientCapabilities", &written);
        let read = ClientCapabilities::read(&raw(&written));
        assert_eq!(read.elicitation_form, revision.facts().elicitation);
        assert_eq!(read.sampling_tools, revision >= R4);
        assert!(read.roots && read.sampling);
    }
}

proptest! {
    #[test]
    fn questions_and_answers_of_any_shape_are_asked_or_refused_and_never_panic(
        text in "[\\[\\]{}\":,a-z0-9.]{0,40}", from in 0..5_usize, to in 0..5_usize, which in 0..3_usize,
        members in prop::collection::vec((prop::sample::select(vec!["mode", "message", "url", "requestedSchema", "messages", "maxTokens", "roots", "action", "content", "role", "model", "properties", "type", "enum", "oneOf", "required", "items"]), any::<u8>()), 0..8),
    ) {
        let pick = |n: u8| match n % 8 {
            0 => json!("url"), 1 => json!("object"), 2 => json!(["a", {"const": "a"}]), 3 => json!({"type": "object", "properties": {"a": {"type": "string", "oneOf": [1]}}}),
            4 => json!(null), 5 => json!(1.5), 6 => json!("accept"), _ => json!([{"role": "user", "content": [{"type": "text"}], "uri": 3}]),
        };
        let built = Value::Object(members.into_iter().map(|(name, n)| (name.to_owned(), pick(n))).collect());
        let candidates = [Raw::parse(text).ok(), Some(raw(&built))];
        let (from, to) = (Revision::ALL[from], Revision::ALL[to]);
        let capabilities = able();
        let asked = Asked { from, to, capabilities: &capabilities, made_up_id: "x" };
        for candidate in candidates.into_iter().flatten() {
            if let Ok(shaped) = question(AskMethod::ALL[which], &candidate, &asked) {
                prop_assert!(tree(&shaped.json).is_object());
            }
            if let Ok(shaped) = answer(AskMethod::ALL[which], &candidate, &candidate, to) {
                prop_assert!(tree(&shaped.json).is_object());
            }
            if let Ok(read) = InputRequired::read(&candidate) {
                prop_assert!(read.state.is_some() || !read.requests.is_empty());
            }
            let _ = read_responses(&candidate);
        }
    }

    #[test]
    fn mr_5_keys_and_state_survive_byte_for_byte(keys in prop::collection::btree_set(".{0,12}", 1..4), state in prop::option::of(".{0,64}")) {
        let requests: Vec<(String, InputRequest)> = keys.into_iter().map(|key| {
            (key, InputRequest { method: AskMethod::ListRoots, params: Raw::empty_object() })
        }).collect();
        let asked = InputRequired { requests, state };
        let read = InputRequired::read(&Raw::parse(asked.to_json(&identity())).unwrap()).unwrap();
        prop_assert_eq!(read, asked);
    }
}
