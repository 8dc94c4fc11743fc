//! The official Rust SDK, in both of its lifecycles.
#![expect(
    deprecated,
    reason = "sampling and roots are on their way out of the protocol, and still asked for"
)]

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use portolan_tests::{mcp::MODERN, native::PNG, process::eventually, upstream::Fixture};
use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData,
    model::{
        CallToolRequestParams, ClientCapabilities, ClientConfig, CreateMessageRequestParams,
        CreateMessageResult, ElicitRequestParams, ElicitResult, GetPromptRequestParams,
        Implementation, JsonObject, ListRootsResult, PaginatedRequestParams,
        ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams,
    },
    service::{NotificationContext, RequestContext, RoleClient, RunningService},
    transport::{
        StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Expected, PAGE, PARTS, composed, each_was_called_in_its_own_era, is_python, is_whole};
use crate::clients::authorized_by_the_rust_sdk;

/// The SDK runs its handlers beside the calls.
const PATIENCE: Duration = Duration::from_secs(20);
const FORM: &str = "elicitation/create";
const MODEL: &str = "sampling/createMessage";
const ROOTS: &str = "roots/list";

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn object(value: &Value) -> JsonObject {
    value.as_object().cloned().unwrap_or_default()
}

/// How far it is, of how much, and in words.
type Step = (f64, Option<f64>, Option<String>);

/// Answers questions, and records them and progress.
#[derive(Debug, Clone, Default)]
struct Answering {
    asked: Arc<Mutex<Vec<(&'static str, Value)>>>,
    told: Arc<Mutex<Vec<Step>>>,
}

impl Answering {
    fn answer<T: DeserializeOwned>(
        &self,
        method: &'static str,
        params: Value,
        answer: Value,
    ) -> Result<T, ErrorData> {
        locked(&self.asked).push((method, params));
        serde_json::from_value(answer).map_err(broken)
    }

    /// The questions since the last call of this function.
    fn asked(&self) -> Vec<(&'static str, Value)> {
        std::mem::take(&mut *locked(&self.asked))
    }
}

fn broken(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

impl ClientHandler for Answering {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder()
            .enable_roots()
            .enable_sampling()
            .enable_elicitation()
            .build();
        ClientConfig::new(capabilities, Implementation::new("rust-sdk", "3.9.0"))
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let params = serde_json::to_value(params).map_err(broken)?;
        let mut content = JsonObject::new();
        for name in object(&params["requestedSchema"]["properties"]).keys() {
            let said = match name.as_str() {
                "name" | "username" => "Ada",
                "email" => "ada@example.com",
                "color" => "blue",
                _ => "harbours",
            };
            content.insert(name.clone(), said.into());
        }
        let answer = json!({"action": "accept", "content": content});
        self.answer(FORM, params, answer)
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let params = serde_json::to_value(params).map_err(broken)?;
        let answer = json!({"role": "assistant", "model": "m", "content": text("Hello")});
        self.answer(MODEL, params, answer)
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        self.answer(ROOTS, Value::Null, json!({"roots": [{"uri": "file:///a"}]}))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        locked(&self.told).push((params.progress, params.total, params.message));
    }
}

struct Walk {
    client: RunningService<RoleClient, Answering>,
    answering: Answering,
    /// Which lifecycle it is, for who reads a failure.
    about: &'static str,
}

impl Walk {
    async fn page(&self, method: &str, cursor: Option<String>) -> Result<Value> {
        let (client, params) = (
            &self.client,
            Some(PaginatedRequestParams::default().with_cursor(cursor)),
        );
        let page = match method {
            "tools/list" => serde_json::to_value(client.list_tools(params).await?),
            "prompts/list" => serde_json::to_value(client.list_prompts(params).await?),
            "resources/list" => serde_json::to_value(client.list_resources(params).await?),
            "resources/templates/list" => {
                serde_json::to_value(client.list_resource_templates(params).await?)
            }
            _ => bail!("{method} is no list"),
        };
        Ok(page?)
    }

    /// MCP-PG-1, MCP-TL-3: all pages of a list, in their order.
    async fn lists(&self, method: &str, member: &str, key: &str, wanted: &[String]) -> Result<()> {
        let (mut found, mut pages, mut cursor) = (Vec::new(), 0, None);
        while found.len() <= wanted.len() {
            let page = self.page(method, cursor).await?;
            let entries = page[member].as_array().context("entries")?;
            found.extend(entries.iter().map(|one| one[key].clone()));
            pages += 1;
            cursor = page["nextCursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        let about = self.about;
        assert_eq!(Value::from(found), json!(wanted), "{about}, {method}");
        assert_eq!(pages, wanted.len().div_ceil(PAGE), "{about}, {method}");
        Ok(())
    }

    async fn call(&self, word: &str, name: &str, arguments: &Value) -> Result<Value> {
        let request =
            CallToolRequestParams::new(format!("{word}_{name}")).with_arguments(object(arguments));
        let called = self.client.call_tool(request).await;
        let result = called.with_context(|| format!("{}, {word}: {name}", self.about))?;
        Ok(serde_json::to_value(result)?)
    }

    /// A call whose result is this content and no error.
    async fn gives(
        &self,
        word: &str,
        name: &str,
        arguments: &Value,
        content: Value,
    ) -> Result<Value> {
        let result = self.call(word, name, arguments).await?;
        let about = self.about;
        assert_eq!(
            result["content"], content,
            "{about}, {word}: {name}: {result}"
        );
        assert_ne!(result["isError"], true, "{about}, {word}: {name}: {result}");
        Ok(result)
    }

    /// Results as the server of the part gave them, but for the names that its resources have here
    /// (MCP-X-6B, MCP-RE-12).
    async fn results(&self, word: &str, fixture: Fixture) -> Result<()> {
        let (about, nothing) = (self.about, json!({}));
        let simple = json!([text("This is a simple text response for testing.")]);
        self.gives(word, "test_simple_text", &nothing, simple)
            .await?;
        let link = json!({"type": "resource_link", "uri": format!("{word}://static-text"), "name": "static-text",
            "mimeType": "text/plain"});
        let written = text(r#"{"city":"Kiel","degrees":21.5}"#);
        let city = json!({"city": "Kiel"});
        let result = self
            .gives(
                word,
                "test_structured_content",
                &city,
                json!([written, link]),
            )
            .await?;
        assert_eq!(
            result["structuredContent"],
            json!({"city": "Kiel", "degrees": 21.5}),
            "{about}, {word}"
        );
        let failed = self.call(word, "test_error_handling", &nothing).await?;
        assert_eq!(
            (&failed["content"], &failed["isError"]),
            (&json!([text(fixture.failure())]), &json!(true)),
            "{about}, {word}: {failed}"
        );
        if is_whole(fixture) {
            let image = json!([{"type": "image", "data": PNG, "mimeType": "image/png"}]);
            self.gives(word, "test_image_content", &nothing, image)
                .await?;
        }
        Ok(())
    }

    /// MCP-X-76: progress under the client's own token.
    async fn notices(&self, word: &str) -> Result<()> {
        let told = &self.answering.told;
        locked(told).clear();
        let done = json!([text("Reported progress.")]);
        self.gives(word, "test_tool_with_progress", &json!({}), done)
            .await?;
        let arrived = async || locked(told).len() >= 3;
        let waited = eventually("progress is told", PATIENCE, arrived).await;
        let (about, told) = (self.about, locked(told).clone());
        waited.with_context(|| format!("{about}, {word}: {told:?}"))?;
        let wanted = [(0.0, "begun"), (50.0, "half"), (100.0, "done")]
            .map(|(step, words)| (step, Some(100.0), Some(words.to_owned())));
        assert_eq!(told, wanted, "{about}, {word}");
        Ok(())
    }

    async fn prompts(&self, word: &str) -> Result<()> {
        let (about, name) = (self.about, format!("{word}_test_prompt_with_arguments"));
        let given = json!({"arg1": "海图", "arg2": "2"});
        let request = GetPromptRequestParams::new(&name).with_arguments(object(&given));
        let prompt = serde_json::to_value(self.client.get_prompt(request).await?)?;
        let said = text("Prompt with arguments: arg1='海图', arg2='2'");
        assert_eq!(
            prompt["messages"],
            json!([{"role": "user", "content": said}]),
            "{about}, {word}"
        );
        assert_eq!(
            prompt["description"], "A prompt with arguments.",
            "{about}, {word}"
        );
        let completed = self
            .client
            .complete_prompt_argument(&name, "arg1", "par", None)
            .await?;
        let wanted = json!({"values": ["paris", "park", "party"], "total": 3, "hasMore": false});
        assert_eq!(json!(completed), wanted, "{about}, {word}");
        Ok(())
    }

    async fn read(&self, uri: &str) -> Result<Value> {
        let request = ReadResourceRequestParams::new(uri);
        let read = self.client.read_resource(request).await?;
        Ok(serde_json::to_value(read)?["contents"].take())
    }

    async fn resources(&self, word: &str) -> Result<()> {
        let about = self.about;
        let said = "This is the content of the static text resource.";
        for (path, mime_type, member, held) in [
            ("static-text", "text/plain", "text", said),
            ("static-binary", "image/png", "blob", PNG),
        ] {
            let uri = format!("{word}://{path}");
            let wanted = json!([{"uri": uri, "mimeType": mime_type, member: held}]);
            assert_eq!(self.read(&uri).await?, wanted, "{about}");
        }
        let uri = format!("{word}://template/7/data");
        let read = self.read(&uri).await?;
        assert_eq!(
            (&read[0]["uri"], &read[0]["mimeType"]),
            (&json!(uri), &json!("application/json")),
            "{about}: {read}"
        );
        let data: Value = serde_json::from_str(read[0]["text"].as_str().unwrap_or_default())?;
        assert_eq!(
            data,
            json!({"id": "7", "templateTest": true, "data": "Data for ID: 7"}),
            "{about}, {word}"
        );
        let template = format!("{word}://template/{{id}}/data");
        let completed = self
            .client
            .complete_resource_argument(template, "id", "park", None)
            .await?;
        let wanted = json!({"values": ["park"], "total": 1, "hasMore": false});
        assert_eq!(json!(completed), wanted, "{about}, {word}");
        let Err(none) = self.read(&format!("{word}://nothing")).await else {
            bail!("{about}, {word}: what is not there was read");
        };
        assert!(
            none.to_string().contains("esource not found"),
            "{about}, {word}: {none}"
        );
        Ok(())
    }

    /// A tool that asks `methods` and then answers `words`. Returns its result, and the parameters
    /// of the first question.
    async fn ends(
        &self,
        word: &str,
        name: &str,
        arguments: &Value,
        words: &str,
        methods: &[&str],
    ) -> Result<(Value, Value)> {
        self.answering.asked();
        let said = json!([text(words)]);
        let result = self.gives(word, name, arguments, said).await?;
        let mut asked = self.answering.asked();
        let first = asked.first().map_or(Value::Null, |(_, one)| one.clone());
        asked.sort_unstable_by_key(|(method, _)| *method);
        let found: Vec<&str> = asked.iter().map(|(method, _)| *method).collect();
        assert_eq!(found, methods, "{}, {word}: {name}: {asked:?}", self.about);
        Ok((result, first))
    }

    /// MCP-X-20, MCP-X-22, MCP-X-28, MCP-X-29: for any eras of the two sides, the question reaches
    /// the handler, and its answer reaches the server that asked.
    async fn questions(&self, word: &str, fixture: Fixture) -> Result<()> {
        let (about, nothing) = (self.about, json!({}));
        let name = "test_input_required_result_elicitation";
        let (_, asked) = self
            .ends(word, name, &nothing, "Hello, Ada!", &[FORM])
            .await?;
        assert_eq!(
            (&asked["message"], &asked["requestedSchema"]["required"]),
            (&json!("What is your name?"), &json!(["name"])),
            "{about}, {word}: {asked}"
        );
        let prompt = json!({"prompt": "Say hello"});
        let (_, asked) = self
            .ends(
                word,
                "test_sampling",
                &prompt,
                "LLM response: Hello",
                &[MODEL],
            )
            .await?;
        let said = json!([{"role": "user", "content": text("Say hello")}]);
        assert_eq!(
            (&asked["messages"], &asked["maxTokens"]),
            (&said, &json!(100)),
            "{about}, {word}: {asked}"
        );
        if !is_whole(fixture) {
            return Ok(());
        }
        let name = "test_input_required_result_list_roots";
        self.ends(word, name, &nothing, "Roots: file:///a", &[ROOTS])
            .await?;
        let name = "test_input_required_result_multi_round";
        self.ends(word, name, &nothing, "Ada likes blue.", &[FORM, FORM])
            .await?;
        let name = "test_input_required_result_multiple_inputs";
        let all = [FORM, ROOTS, MODEL];
        self.ends(word, name, &nothing, "Hello Ada, 1 roots", &all)
            .await?;
        let request =
            GetPromptRequestParams::new(format!("{word}_test_input_required_result_prompt"));
        let prompt = serde_json::to_value(self.client.get_prompt(request).await?)?;
        assert_eq!(
            prompt["messages"],
            json!([{"role": "user", "content": text("Context: harbours")}]),
            "{about}, {word}: PR-6"
        );
        if is_python(fixture) {
            let name = "test_ask_by_schema";
            let (liked, _) = self
                .ends(word, name, &nothing, "You like blue.", &[FORM])
                .await?;
            let wanted = json!({"result": "You like blue."});
            assert_eq!(liked["structuredContent"], wanted, "{about}, {word}");
        }
        Ok(())
    }

    async fn whole(&self) -> Result<()> {
        let all = Expected::new();
        for (method, member, key, wanted) in [
            ("tools/list", "tools", "name", &all.tools),
            ("prompts/list", "prompts", "name", &all.prompts),
            ("resources/list", "resources", "uri", &all.resources),
            (
                "resources/templates/list",
                "resourceTemplates",
                "uriTemplate",
                &all.templates,
            ),
        ] {
            self.lists(method, member, key, wanted).await?;
        }
        for (word, fixture) in PARTS {
            self.results(word, fixture).await?;
            self.notices(word).await?;
            self.prompts(word).await?;
            self.resources(word).await?;
            self.questions(word, fixture).await?;
        }
        Ok(())
    }
}

/// MCP-PR-6, MCP-X-20, MCP-X-22, MCP-X-28, MCP-X-29, MCP-X-76: as the other SDKs, in both eras.
#[tokio::test]
async fn tl_7_re_12_rust_sdk_walks_through_five_servers_in_both_eras() -> Result<()> {
    let (upstreams, _stack, person, published) = composed().await?;
    let http = authorized_by_the_rust_sdk(&person, &published.url).await?;
    let discover = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: None,
    };
    for (lifecycle, version) in [
        (discover, MODERN),
        (ClientLifecycleMode::Initialize, "2025-11-25"),
    ] {
        let answering = Answering::default();
        let transport = StreamableHttpClientTransport::with_client(
            http.clone(),
            StreamableHttpClientTransportConfig::with_uri(published.url.clone()),
        );
        let client = answering
            .clone()
            .serve_with_lifecycle(transport, lifecycle)
            .await?;
        let server = client.peer_info().context("about the server")?;
        assert_eq!(server.protocol_version.as_str(), version);
        let walk = Walk {
            client,
            answering,
            about: version,
        };
        walk.whole().await?;
        walk.client.cancel().await?;
    }
    each_was_called_in_its_own_era(&upstreams, 2);
    Ok(())
}
