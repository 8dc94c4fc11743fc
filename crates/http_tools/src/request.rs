//! Arguments and plan as an HTTP request. The credential is put on afterwards, so that it wins.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};
use url::{Position, Url};

use crate::{
    arguments::ArgumentFaults,
    body,
    parameter_style::{self, ReservedCharacters},
    plan::{Location, ParameterEncoding, PlanParameter, RequestPlan, Style},
    prepared::PreparedPlan,
    refs::escape_step,
};

/// A request without its credential.
#[derive(Debug)]
pub struct BuiltRequest {
    /// Method.
    pub method: Method,
    /// Absolute URL below the source's base URL.
    pub url: Url,
    /// Headers, content type included.
    pub headers: HeaderMap,
    /// Body, empty for none.
    pub body: Bytes,
}

/// Why no request could be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// An argument cannot travel in its place.
    #[error(transparent)]
    Arguments(#[from] ArgumentFaults),
    /// The plan or the base URL is broken.
    #[error("the tool's request cannot be built: {0}")]
    Plan(&'static str),
}

/// Builds the request of one call. `arguments` are already valid against the tool's schema.
pub fn build(
    prepared: &PreparedPlan,
    base_url: &Url,
    arguments: &Map<String, Value>,
) -> Result<BuiltRequest, BuildError> {
    let plan = prepared.plan();
    let method = prepared.method.clone();
    let method = method.ok_or(BuildError::Plan("its method is not valid"))?;
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, prepared.accept.clone());

    let (template, fixed_query) = plan
        .path
        .split_once('?')
        .unwrap_or((plan.path.as_str(), ""));
    let mut query = base_url.query().unwrap_or_default().to_owned();
    if !query.is_empty() && !fixed_query.is_empty() {
        query.push('&');
    }
    query.push_str(fixed_query);
    let mut cookies = String::new();
    for (parameter, name) in plan.parameters.iter().zip(&prepared.header_names) {
        let Some(value) = arguments.get(&parameter.argument) else {
            continue;
        };
        match parameter.location {
            Location::Query => add_to_query(&mut query, parameter, value),
            Location::Header => {
                let name = name.clone();
                let name = name.ok_or(BuildError::Plan("a header's name is not valid"))?;
                headers.insert(name, header_value(parameter, value)?);
            }
            Location::Cookie => add_cookie(&mut cookies, parameter, value),
            Location::Path => {}
        }
    }
    if !cookies.is_empty() {
        let value = HeaderValue::try_from(cookies)
            .map_err(|_| BuildError::Plan("a cookie's name is not valid"))?;
        headers.insert(header::COOKIE, value);
    }

    let mut url = base_url.clone();
    let base_path = base_url.path().trim_end_matches('/');
    url.set_path(&path_of(plan, base_path, template, arguments)?);
    url.set_query((!query.is_empty()).then_some(query.as_str()));
    url.set_fragment(None);
    if url[..Position::BeforePath] != base_url[..Position::BeforePath] {
        return Err(BuildError::Plan("its path leaves the source's base URL"));
    }

    let mut bytes = Bytes::new();
    if let Some(plan) = &plan.body
        && let Some(encoded) = body::build(plan, arguments)?
    {
        let kind = HeaderValue::try_from(encoded.content_type)
            .map_err(|_| BuildError::Plan("its content type is not valid"))?;
        headers.insert(header::CONTENT_TYPE, kind);
        bytes = encoded.bytes;
    }
    Ok(BuiltRequest {
        method,
        url,
        headers,
        body: bytes,
    })
}

fn add_to_query(query: &mut String, parameter: &PlanParameter, value: &Value) {
    match &parameter.encoding {
        ParameterEncoding::Json => parameter_style::push(
            query,
            &parameter_style::encode(&parameter.name),
            &parameter_style::encode(&value.to_string()),
        ),
        ParameterEncoding::Style {
            style,
            explode,
            allow_reserved,
        } => {
            let reserved = if *allow_reserved {
                ReservedCharacters::Kept
            } else {
                ReservedCharacters::Encoded
            };
            parameter_style::query(query, &parameter.name, value, *style, *explode, reserved);
        }
    }
}

fn add_cookie(cookies: &mut String, parameter: &PlanParameter, value: &Value) {
    let pair = match &parameter.encoding {
        ParameterEncoding::Json => {
            format!(
                "{}={}",
                parameter.name,
                parameter_style::encode(&value.to_string())
            )
        }
        ParameterEncoding::Style { explode, .. } => {
            parameter_style::cookie(&parameter.name, value, *explode)
        }
    };
    if !cookies.is_empty() {
        cookies.push_str("; ");
    }
    cookies.push_str(&pair);
}

/// Error text for a value that would lead to another resource.
const DOTS: &str = "must not be or contain the path segment `.` or `..`, however it is written: it is part of the path";
/// Times that a value is decoded: by the API, and by what stands before it.
const DECODED: usize = 3;

/// Whether a text has a dot segment (RFC 3986 §3.3) between slashes of either kind, as it is or
/// decoded again (REVIEW-S-11). Some APIs stand behind a proxy that decodes a path before it is
/// routed. What follows a semicolon is no part of a segment's name for some.
fn has_dot_segment(text: &str) -> bool {
    let is_dots = |segment: &str| {
        let name = segment.split(';').next().unwrap_or_default();
        matches!(name.trim(), "." | "..")
    };
    let mut text = Cow::Borrowed(text);
    for _ in 0..DECODED {
        if text.split(['/', '\\']).any(is_dots) {
            return true;
        }
        // Borrowed: nothing is encoded.
        let Cow::Owned(decoded) = percent_decode_str(&text).decode_utf8_lossy() else {
            return false;
        };
        text = Cow::Owned(decoded);
    }
    false
}

/// Fills the template, behind the path of the base URL. A value may neither be empty nor a dot
/// segment: `DELETE /pets/` and `/pets/..` are other resources than the one the model named.
fn path_of(
    plan: &RequestPlan,
    base_path: &str,
    template: &str,
    arguments: &Map<String, Value>,
) -> Result<String, BuildError> {
    let mut out = String::with_capacity(base_path.len() + template.len() + 32);
    out.push_str(base_path);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else {
            break;
        };
        out.push_str(before);
        let parameter = plan
            .parameters
            .iter()
            .find(|parameter| parameter.location == Location::Path && parameter.name == name)
            .ok_or(BuildError::Plan(
                "a placeholder of its path has no argument",
            ))?;
        let fault = |message: &str| {
            ArgumentFaults::one(format!("/{}", escape_step(&parameter.argument)), message)
        };
        let value = arguments
            .get(&parameter.argument)
            .ok_or_else(|| fault("is required but missing"))?;
        let begin = out.len();
        match &parameter.encoding {
            ParameterEncoding::Json => out.push_str(&parameter_style::encode(&value.to_string())),
            ParameterEncoding::Style { style, explode, .. } => {
                parameter_style::path(&mut out, name, value, *style, *explode);
            }
        }
        let text = &out[begin..];
        let bare = matches!(
            parameter.encoding,
            ParameterEncoding::Style {
                style: Style::Simple,
                ..
            }
        );
        if text.is_empty() && bare {
            return Err(fault("must not be empty: it is part of the path").into());
        }
        rest = after;
        let decoded = percent_decode_str(text).decode_utf8_lossy();
        if has_dot_segment(&decoded) {
            return Err(fault(DOTS).into());
        }
        // Text next to the value may turn it into a dot segment.
        let filled = &out[base_path.len()..];
        let segment = filled.rsplit('/').next().unwrap_or_default();
        if matches!(segment, "." | "..") && (rest.is_empty() || rest.starts_with('/')) {
            return Err(fault(DOTS).into());
        }
    }
    out.push_str(rest);
    let decoded = percent_decode_str(&out[base_path.len()..]).decode_utf8_lossy();
    if has_dot_segment(&decoded) && !has_dot_segment(template) {
        return Err(ArgumentFaults::one("", DOTS).into());
    }
    Ok(out)
}

/// The value of a header parameter. CR, LF and other controls never reach the wire (MCP-AB-44);
/// other characters travel as UTF-8.
fn header_value(parameter: &PlanParameter, value: &Value) -> Result<HeaderValue, BuildError> {
    let text = match &parameter.encoding {
        ParameterEncoding::Json => value.to_string(),
        ParameterEncoding::Style { explode, .. } => parameter_style::header(value, *explode),
    };
    if text.chars().any(char::is_control) {
        let path = format!("/{}", escape_step(&parameter.argument));
        return Err(ArgumentFaults::one(
            path,
            "must not contain line breaks or control characters: it is sent as a header",
        )
        .into());
    }
    HeaderValue::try_from(text).map_err(|_| BuildError::Plan("a header's value is not valid"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parameter(name: &str, location: Location) -> PlanParameter {
        let style = location.default_style();
        let encoding = ParameterEncoding::Style {
            style,
            explode: style == Style::Form,
            allow_reserved: false,
        };
        PlanParameter {
            argument: name.to_owned(),
            name: name.to_owned(),
            location,
            encoding,
        }
    }

    fn plan(path: &str, parameters: Vec<PlanParameter>) -> RequestPlan {
        RequestPlan {
            method: "GET".into(),
            path: path.into(),
            parameters,
            body: None,
            accept: None,
        }
    }

    fn request(
        plan: &RequestPlan,
        base: &str,
        arguments: &Value,
    ) -> Result<BuiltRequest, BuildError> {
        build(
            &PreparedPlan::new(plan.clone()),
            &Url::parse(base).unwrap(),
            arguments.as_object().unwrap(),
        )
    }

    #[test]
    fn the_base_path_and_its_query_stay_in_front() {
        let plan = plan(
            "/pets/{id}?fixed=1",
            vec![
                parameter("id", Location::Path),
                parameter("q", Location::Query),
            ],
        );
        let built = request(
            &plan,
            "https://api.example.com/v1/?k=v",
            &json!({"id": "a b", "q": ["x", "y"]}),
        )
        .unwrap();
        assert_eq!(
            built.url.as_str(),
            "https://api.example.com/v1/pets/a%20b?k=v&fixed=1&q=x&q=y"
        );
    }

    #[test]
    fn s11_a_path_value_cannot_name_another_resource() {
        let plan = plan("/pets/{id}", vec![parameter("id", Location::Path)]);
        for value in [
            "..",
            ".",
            "",
            "../../admin",
            "a/../b",
            "a/./b",
            "..\\secret",
            "%2e%2e",
            "..%2fsecret",
            "a%2F..%5cb",
            "%252e%252e%252fsecret",
            "..;x/secret",
            "a/..",
        ] {
            let error = request(&plan, "https://a.example/v1", &json!({"id": value})).unwrap_err();
            assert!(matches!(error, BuildError::Arguments(_)), "{value:?}");
        }
        for (value, sent) in [
            ("a/b", "a%2Fb"),
            ("..a", "..a"),
            ("a.b..c", "a.b..c"),
            ("100%", "100%25"),
            ("heads/v1.0", "heads%2Fv1.0"),
        ] {
            let built = request(&plan, "https://a.example/v1", &json!({"id": value})).unwrap();
            assert_eq!(built.url.path(), format!("/v1/pets/{sent}"));
        }
        let list = request(&plan, "https://a.example/v1", &json!({"id": ["../b", "a"]}));
        assert!(list.is_err(), "a list is one text");
        let beside = self::plan("/a/..{id}", vec![parameter("id", Location::Path)]);
        assert!(request(&beside, "https://a.example", &json!({"id": "/b"})).is_err());
    }

    #[test]
    fn a_base_path_of_dots_is_no_fault_of_the_arguments() {
        let plan = plan("{id}", vec![parameter("id", Location::Path)]);
        // The base URL's own text is beside the value, and is the source's.
        let built = request(&plan, "https://a.example/v1..", &json!({"id": "x"})).unwrap();
        assert_eq!(built.url.path(), "/v1..x");
        for value in [".", "..", "%2e"] {
            let refused = request(&plan, "https://a.example/v1", &json!({"id": value}));
            assert!(refused.is_err(), "{value}");
        }
    }

    #[test]
    fn a_part_of_a_plan_that_is_not_valid_fails_calls_that_need_it() {
        let bad = plan("/x", vec![parameter("X Note", Location::Header)]);
        assert!(request(&bad, "https://a.example", &json!({})).is_ok());
        let error = request(&bad, "https://a.example", &json!({"X Note": "a\nb"})).unwrap_err();
        assert_eq!(error, BuildError::Plan("a header's name is not valid"));
        let method = RequestPlan {
            method: "GE T".into(),
            ..plan("/x", vec![])
        };
        let error = request(&method, "https://a.example", &json!({})).unwrap_err();
        assert_eq!(error, BuildError::Plan("its method is not valid"));
        let asks = RequestPlan {
            accept: Some("text/csv".into()),
            ..plan("/x", vec![])
        };
        let built = request(&asks, "https://a.example", &json!({})).unwrap();
        assert_eq!(built.headers[header::ACCEPT], "text/csv");
    }

    #[test]
    fn a_header_with_a_line_break_is_refused_with_its_path_ab_44() {
        let plan = plan("/x", vec![parameter("X-Note", Location::Header)]);
        let error = request(
            &plan,
            "https://a.example",
            &json!({"X-Note": "a\r\nX-Admin: 1"}),
        )
        .unwrap_err();
        let BuildError::Arguments(faults) = error else {
            panic!("is an argument fault")
        };
        assert_eq!(faults.faults[0].path, "/X-Note");
    }

    #[test]
    fn cookies_are_joined_and_absent_arguments_are_not_sent() {
        let plan = plan(
            "/x",
            vec![
                parameter("a", Location::Cookie),
                parameter("b", Location::Cookie),
                parameter("c", Location::Query),
            ],
        );
        let built = request(&plan, "https://a.example", &json!({"a": 1, "b": "x;y"})).unwrap();
        assert_eq!(built.headers[header::COOKIE], "a=1; b=x%3By");
        assert_eq!(built.url.query(), None);
    }
}
