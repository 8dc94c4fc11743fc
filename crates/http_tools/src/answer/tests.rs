use bytes::Bytes;
use http::HeaderValue;
use serde_json::json;
use url::Url;

use super::*;
use crate::plan::RequestPlan;

fn tool(output: Option<Value>) -> CompiledTool {
    let plan = RequestPlan {
        method: "GET".into(),
        path: "/".into(),
        parameters: vec![],
        body: None,
        accept: None,
    };
    CompiledTool::new(json!({"type": "object"}), output, plan)
}

fn response(status: u16, kind: &str, body: &[u8]) -> EgressResponse {
    let mut headers = HeaderMap::new();
    if !kind.is_empty() {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_str(kind).unwrap());
    }
    EgressResponse {
        status: StatusCode::from_u16(status).unwrap(),
        headers,
        body: Bytes::copy_from_slice(body),
        final_url: Url::parse("https://api.example.com/file?key=secret").unwrap(),
    }
}

fn shaped(output: Option<Value>, status: u16, kind: &str, body: &[u8]) -> ToolAnswer {
    shape(
        &tool(output),
        response(status, kind, body),
        &Secrets::default(),
    )
}

fn written(answer: &ToolAnswer) -> Value {
    let mut out = b"{".to_vec();
    answer.write_members(&mut out);
    out.push(b'}');
    serde_json::from_slice(&out).unwrap()
}

fn text(answer: &ToolAnswer) -> &str {
    match &answer.content[0] {
        Content::Text(text) => text,
        other => panic!("not a text: {other:?}"),
    }
}

#[test]
fn a_json_object_is_text_and_structured_content_tl_13() {
    let answer = shaped(
        None,
        200,
        "application/json; charset=utf-8",
        b"{ \"a b\" : [ 1,\n 2.50 ],\"s\":\"x \\\" y\" }\n",
    );
    assert_eq!(text(&answer), r#"{"a b":[1,2.50],"s":"x \" y"}"#);
    assert_eq!(answer.structured().unwrap().get(), text(&answer));
    assert_eq!(
        written(&answer),
        json!({"content": [{"type": "text", "text": text(&answer)}], "structuredContent": {"a b": [1, 2.5], "s": "x \" y"}})
    );
}

/// Media types have no case (RFC 9110 §8.3.1).
#[test]
fn a_media_type_in_capitals_is_that_media_type() {
    for kind in ["Application/JSON", "APPLICATION/problem+JSON; Q=1"] {
        let answer = shaped(None, 200, kind, br#"{"a":"\\\" [{"}"#);
        assert!(answer.structured().is_some(), "{kind}");
    }
    let image = shaped(None, 200, "Image/PNG", b"png");
    assert!(matches!(&image.content[0], Content::Image { mime, .. } if mime == "image/png"));
}

#[test]
fn a_json_list_is_text_only_tl_10() {
    let answer = shaped(None, 200, "application/vnd.api+json", b"[1, 2]");
    assert_eq!(text(&answer), "[1,2]");
    assert!(answer.structured().is_none() && !answer.is_error);
}

#[test]
fn an_answer_that_breaks_its_schema_is_an_error_that_explains_tl_12() {
    let schema =
        json!({"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}});
    let answer = shaped(Some(schema), 200, "application/json", br#"{"id":"seven"}"#);
    assert!(answer.is_error && answer.structured().is_none());
    assert!(
        text(&answer).contains("- /id is a string, but must be of type \"integer\""),
        "{}",
        text(&answer)
    );
    assert!(
        text(&answer).contains(r#"{"id":"seven"}"#),
        "the answer itself is still readable"
    );
}

#[test]
fn images_audio_text_and_other_bytes_have_their_own_blocks_tl_14() {
    let image = shaped(None, 200, "image/png", b"\x89PNG");
    assert_eq!(
        written(&image)["content"][0],
        json!({"type": "image", "data": "iVBORw==", "mimeType": "image/png"})
    );
    let audio = shaped(None, 200, "audio/mpeg", b"ID3");
    assert_eq!(written(&audio)["content"][0]["type"], "audio");
    assert!(text(&audio.without_audio()).contains("audio/mpeg"));
    let blob = shaped(None, 200, "application/pdf", b"%PDF");
    assert_eq!(
        written(&blob)["content"][0],
        json!({"type": "resource", "resource": {"uri": "https://api.example.com/file", "mimeType": "application/pdf", "blob": "JVBERg=="}})
    );
    assert_eq!(
        text(&shaped(
            None,
            200,
            "text/csv; charset=iso-8859-1",
            b"caf\xe9\x1b[31m"
        )),
        "caf\u{e9}[31m"
    );
}

#[test]
fn no_content_says_so() {
    let answer = shaped(None, 204, "", b"");
    assert!(!answer.is_error);
    assert!(text(&answer).contains("204 No Content"));
}

#[test]
fn a_refusal_is_an_error_with_status_and_a_bounded_excerpt() {
    let body = vec![b'x'; 20_000];
    let answer = shaped(None, 500, "text/plain", &body);
    assert!(answer.is_error);
    assert_eq!(
        (answer.status, answer.outcome),
        (Some(500), CallOutcome::ToolError)
    );
    assert!(text(&answer).starts_with("The API answered 500 Internal Server Error.\n\nxxx"));
    assert!(text(&answer).len() < 4_400);
    let html = shaped(
        None,
        502,
        "text/html",
        b"<html><style>p{}</style><script>alert(1)</script><h1>Bad\x07 Gateway</h1></html>",
    );
    assert_eq!(
        text(&html),
        "The API answered 502 Bad Gateway.\n\nBad Gateway"
    );
}

/// REVIEW-S-5: whatever the status, and wherever it stands.
#[test]
fn s5_a_secret_that_the_api_echoes_is_masked_in_every_answer() {
    let mut secrets = Secrets::default();
    secrets.add_header("Bearer sk-secret-123");
    let object = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let json = br#"{"a":"Bearer sk-secret-123", "b": [{"sk-secret-123": "x sk-secret-123"}]}"#;
    for (output, status, kind, body) in [
        (None, 403, "application/json", &json[..]),
        (None, 200, "application/json", json),
        (None, 200, "", json),
        (Some(object.clone()), 200, "application/json", json),
        (
            Some(object.clone()),
            200,
            "application/json",
            br#"{"a":1,"b":"sk-secret-123"}"#,
        ),
        (Some(object), 200, "text/html", b"<p>sk-secret-123</p>"),
        (
            None,
            200,
            "text/plain",
            b"Authorization: Bearer sk-secret-123",
        ),
        (None, 200, "application/json", b"{ sk-secret-123"),
        (None, 500, "text/html", b"<p>sk-secret-123</p>"),
        (None, 500, "text/plain", b"sk-secret-123"),
    ] {
        let answer = shape(&tool(output), response(status, kind, body), &secrets);
        let shown = text(&answer);
        assert!(!shown.contains("sk-secret"), "{status} {kind}: {shown}");
        assert!(shown.contains("••••"), "{status} {kind}: {shown}");
        let mut written = Vec::new();
        answer.write_members(&mut written);
        let written = String::from_utf8(written).unwrap();
        assert!(!written.contains("sk-secret"), "{written}");
        let whole: Value = serde_json::from_str(&format!("{{{written}}}")).unwrap();
        assert_eq!(
            whole["structuredContent"].is_object(),
            answer.structured != Structured::None
        );
    }
    for kind in ["image/png", "audio/wav", "application/zip"] {
        let answer = shape(
            &tool(None),
            response(200, kind, b"\xff sk-secret-123"),
            &secrets,
        );
        let data = match &answer.content[0] {
            Content::Image { data, .. }
            | Content::Audio { data, .. }
            | Content::Blob { data, .. } => data,
            Content::Text(text) => panic!("{text}"),
        };
        let bytes = STANDARD.decode(data).unwrap();
        assert!(
            !String::from_utf8_lossy(&bytes).contains("sk-secret"),
            "{kind}"
        );
    }
    let mut moved = response(302, "text/plain", b"");
    let to = HeaderValue::from_static("https://a.example/sk-secret-123");
    moved.headers.insert(header::LOCATION, to);
    let answer = shape(&tool(None), moved, &secrets);
    assert!(
        text(&answer).contains("https://a.example/••••"),
        "{}",
        text(&answer)
    );
}

#[test]
fn an_answer_that_is_packed_is_an_honest_error_and_is_never_unpacked() {
    let bomb = vec![0x1f; 1024 * 1024];
    for (coding, kind) in [
        ("gzip", "application/json"),
        ("br", "text/plain"),
        ("zstd, gzip", "image/png"),
    ] {
        let mut response = response(200, kind, &bomb);
        let coding = HeaderValue::from_static(coding);
        response
            .headers
            .insert(header::CONTENT_ENCODING, coding.clone());
        let answer = shape(&tool(None), response, &Secrets::default());
        assert!(answer.is_error, "{coding:?}");
        let said = text(&answer);
        assert!(
            said.contains(coding.to_str().unwrap()) && said.len() < 300,
            "{said}"
        );
    }
    let mut plain = response(200, "text/plain", b"as it is");
    let none = HeaderValue::from_static("identity");
    plain.headers.insert(header::CONTENT_ENCODING, none);
    let answer = shape(&tool(None), plain, &Secrets::default());
    assert_eq!(text(&answer), "as it is");
}

#[test]
fn garbage_that_claims_to_be_json_is_an_honest_error() {
    let answer = shaped(None, 200, "application/json", b"<html>login</html>");
    assert!(answer.is_error);
    assert!(
        text(&answer).contains("not usable JSON"),
        "{}",
        text(&answer)
    );
    let glued = shaped(None, 200, "application/json", b"{\"a\": tru e}");
    assert!(glued.is_error, "white space within a word is not removed");
    let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    assert!(shaped(None, 200, "application/json", deep.as_bytes()).is_error);
}
