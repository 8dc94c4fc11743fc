//! Every revision of a client with every server behind Portolan, feature by feature: what each pair passes on, and what it loses by which rule
//! (`docs/translation-rules.md`). The servers are written with the official SDKs, one column for
//! each.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use portolan_tests::{
    behind::publish,
    mcp::{MODERN, McpClient},
    native::PNG,
    oauth::{OAuthClient, Tokens},
    person::Person,
    speaker::{Heard, REVISIONS, Speaker},
    stack::Stack,
    upstream::{Fixture, Upstream},
};
use serde_json::{Value, json};

/// The token of the server, and of nothing else.
const SECRET: &str = "pairs-canary-secret";
/// A header without samples, as the fixtures have it: 44 bytes.
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";
const LINK: &str = "test://static-text";

/// A client of one revision before one server.
struct Pair {
    fixture: Fixture,
    client: Speaker,
    /// All that the client was sent.
    visible: String,
}

/// The values of a member, in their order.
fn each<'a>(entries: &'a [Value], member: &str) -> Vec<&'a str> {
    let values = entries.iter();
    values
        .map(|entry| entry[member].as_str().unwrap_or_default())
        .collect()
}

fn named<'a>(entries: &'a [Value], name: &str) -> Result<&'a Value> {
    let found = entries.iter().find(|entry| entry["name"] == name);
    found.with_context(|| format!("no {name} in {entries:?}"))
}

/// A number, however it is written.
fn number(value: &Value) -> String {
    value
        .as_f64()
        .map_or_else(|| value.to_string(), |number| number.to_string())
}

impl Pair {
    /// Which pair it is, for who reads a failure.
    fn about(&self) -> String {
        format!(
            "a client of {} before {:?}",
            self.client.revision, self.fixture
        )
    }

    fn is_from(&self, revision: &str) -> bool {
        self.client.revision >= revision
    }

    async fn ask(&mut self, method: &str, params: Value) -> Result<Heard> {
        let heard = self.client.ask(method, params).await?;
        self.visible += &format!("{heard:?}");
        Ok(heard)
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Result<Heard> {
        let params = json!({"name": tool, "arguments": arguments});
        self.ask("tools/call", params).await
    }

    /// A call whose result is this content and no error.
    async fn gives(&mut self, tool: &str, arguments: Value, content: Value) -> Result<Heard> {
        let heard = self.call(tool, arguments).await?;
        let (about, answer) = (self.about(), &heard.answer);
        assert_eq!(
            answer["result"]["content"], content,
            "{about}, {tool}: {answer}"
        );
        assert_ne!(
            answer["result"]["isError"], true,
            "{about}, {tool}: {answer}"
        );
        Ok(heard)
    }

    /// MCP-X-60: what later revisions added to definitions is not for older clients. MCP-TL-3: the
    /// order is that of the bytes.
    async fn lists(&mut self) -> Result<()> {
        let (about, fixture) = (self.about(), self.fixture);
        let (tools, _) = self.client.list("tools/list", "tools").await?;
        assert_eq!(each(&tools, "name"), fixture.tools(), "{about}");
        let hints = named(&tools, "test_simple_text")?.get("annotations");
        let read_only = json!({"readOnlyHint": true});
        let known = self.is_from("2025-03-26").then_some(&read_only);
        assert_eq!(hints, known, "{about}: FA-1");
        let structured = named(&tools, "test_structured_content")?;
        assert_eq!(
            structured["inputSchema"]["required"],
            json!(["city"]),
            "{about}"
        );
        let output = structured
            .get("outputSchema")
            .map(|schema| schema["required"].clone());
        let known = self.is_from("2025-06-18");
        assert_eq!(
            output,
            known.then(|| json!(["city", "degrees"])),
            "{about}: {structured}"
        );

        let (prompts, _) = self.client.list("prompts/list", "prompts").await?;
        assert_eq!(each(&prompts, "name"), fixture.prompts(), "{about}");
        let prompt = named(&prompts, "test_prompt_with_arguments")?;
        let arguments = prompt["arguments"].as_array().context("arguments")?;
        assert_eq!(each(arguments, "name"), ["arg1", "arg2"], "{about}");
        assert!(
            arguments.iter().all(|one| one["required"] == true),
            "{about}: {prompt}"
        );
        let (resources, _) = self.client.list("resources/list", "resources").await?;
        assert_eq!(each(&resources, "uri"), fixture.resources(), "{about}");
        assert_eq!(
            each(&resources, "mimeType")[..2],
            ["image/png", "text/plain"],
            "{about}"
        );
        let listed = self
            .client
            .list("resources/templates/list", "resourceTemplates");
        let (templates, _) = listed.await?;
        assert_eq!(
            each(&templates, "uriTemplate"),
            [fixture.template()],
            "{about}"
        );
        Ok(())
    }

    /// MCP-J-17, MCP-X-65: the envelope is ours, and only for who knows it. MCP-X-61…MCP-X-63,
    /// MCP-V-7: a content type that a revision lacks becomes a text.
    async fn results(&mut self) -> Result<()> {
        let (about, is_modern) = (self.about(), self.is_from(MODERN));
        let text = |text: &str| json!({"type": "text", "text": text});
        let simple = json!([text("This is a simple text response for testing.")]);
        let heard = self.gives("test_simple_text", json!({}), simple).await?;
        let result = &heard.answer["result"];
        let envelope = result.get("resultType").and_then(Value::as_str);
        assert_eq!(envelope, is_modern.then_some("complete"), "{about}");
        let card = &result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"];
        assert_eq!(
            card.as_str(),
            is_modern.then_some("theirs"),
            "{about}: {result}"
        );

        let heard = self.call("test_error_handling", json!({})).await?;
        let result = &heard.answer["result"];
        assert_eq!(result["isError"], true, "{about}: {result}");
        assert_eq!(
            result["content"],
            json!([text(self.fixture.failure())]),
            "{about}"
        );

        let has_structured = self.is_from("2025-06-18");
        let link = if has_structured {
            json!({"type": "resource_link", "uri": LINK, "name": "static-text", "mimeType": "text/plain"})
        } else {
            text(&format!("[resource link] static-text {LINK}"))
        };
        let written = text(r#"{"city":"Kiel","degrees":21.5}"#);
        let arguments = json!({"city": "Kiel"});
        let heard = self
            .gives("test_structured_content", arguments, json!([written, link]))
            .await?;
        let weather = json!({"city": "Kiel", "degrees": 21.5});
        assert_eq!(
            heard.answer["result"].get("structuredContent"),
            has_structured.then_some(&weather),
            "{about}"
        );
        if self.fixture == Fixture::Rmcp {
            return Ok(());
        }
        let image = json!([{"type": "image", "data": PNG, "mimeType": "image/png"}]);
        self.gives("test_image_content", json!({}), image).await?;
        let sound = if self.is_from("2025-03-26") {
            json!({"type": "audio", "data": WAV, "mimeType": "audio/wav"})
        } else {
            text("[audio, audio/wav, 44 bytes: not supported by this protocol revision]")
        };
        self.gives("test_audio_content", json!({}), json!([sound]))
            .await?;
        let held = json!({"uri": "test://embedded-resource", "mimeType": "text/plain",
            "text": "This is an embedded resource content."});
        let held = json!([{"type": "resource", "resource": held}]);
        self.gives("test_embedded_resource", json!({}), held)
            .await?;
        Ok(())
    }

    /// MCP-X-76: under the client's own token, growing, with words from 2025-03-26 on.
    /// MCP-X-72…MCP-X-75, MCP-LG-4: logs from the level that the client wants.
    async fn notices(&mut self) -> Result<()> {
        let about = self.about();
        let heard = self.call("test_tool_with_progress", json!({})).await?;
        assert_eq!(heard.said(), "Reported progress.", "{about}: {heard:?}");
        let told = heard.told("notifications/progress");
        let steps: Vec<(String, String)> = told
            .iter()
            .map(|step| (number(&step["progress"]), number(&step["total"])))
            .collect();
        let expected = ["0", "50", "100"].map(|step| (step.to_owned(), "100".to_owned()));
        assert_eq!(steps, expected, "{about}: {heard:?}");
        let own = told[0]["progressToken"].as_str().unwrap_or_default();
        assert!(own.starts_with("progress-"), "{about}: {told:?}");
        assert!(
            told.iter().all(|step| step["progressToken"] == own),
            "{about}: {told:?}"
        );
        let words: Vec<Option<&str>> = told.iter().map(|step| step["message"].as_str()).collect();
        let knows = self.is_from("2025-03-26");
        let expected = ["begun", "half", "done"].map(|word| knows.then_some(word));
        assert_eq!(words, expected, "{about}: FA-6");
        if self.fixture == Fixture::Rmcp {
            return Ok(());
        }
        let heard = self.call("test_tool_with_logging", json!({})).await?;
        let told = heard.told("notifications/message");
        let expected = [
            "Tool execution started",
            "Tool processing data",
            "Tool execution completed",
        ]
        .map(|line| json!({"level": "info", "logger": "fixture", "data": line}));
        assert_eq!(told, expected.each_ref(), "{about}: {heard:?}");
        Ok(())
    }

    /// MCP-X-66, MCP-X-67: what is not there has the number of the client's revision.
    async fn prompts_and_resources(&mut self) -> Result<()> {
        let (about, fixture) = (self.about(), self.fixture);
        let name = "test_prompt_with_arguments";
        let params = json!({"name": name, "arguments": {"arg1": "海图", "arg2": "2"}});
        let got = self.ask("prompts/get", params).await?.answer;
        let said = json!({"type": "text", "text": "Prompt with arguments: arg1='海图', arg2='2'"});
        assert_eq!(
            got["result"]["messages"],
            json!([{"role": "user", "content": said}]),
            "{about}"
        );
        assert_eq!(
            got["result"]["description"], "A prompt with arguments.",
            "{about}"
        );
        let params = json!({"name": name, "arguments": {"arg2": "2"}});
        let refused = self.ask("prompts/get", params).await?.answer;
        // MCP-X-5: in a session, Python's two servers are one SDK's.
        let answers = match fixture {
            Fixture::Python2 if !self.is_from(MODERN) => Fixture::Python1,
            fixture => fixture,
        };
        let (code, words) = answers.missing_argument();
        assert_eq!(refused["error"]["code"], code, "{about}: {refused}");
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(words), "{about}: {refused}");

        let text = "This is the content of the static text resource.";
        for (uri, mime_type, member, held) in [
            (LINK, "text/plain", "text", text),
            ("test://static-binary", "image/png", "blob", PNG),
        ] {
            let read = self.ask("resources/read", json!({"uri": uri})).await?;
            let expected = json!([{"uri": uri, "mimeType": mime_type, member: held}]);
            let contents = &read.answer["result"]["contents"];
            assert_eq!(*contents, expected, "{about}: {}", read.answer);
        }
        let uri = "test://template/7/data";
        let read = self.ask("resources/read", json!({"uri": uri})).await?;
        let contents = &read.answer["result"]["contents"];
        let whole = (&contents[0]["uri"], &contents[0]["mimeType"]);
        assert_eq!(whole, (&json!(uri), &json!("application/json")), "{about}");
        let data: Value = serde_json::from_str(contents[0]["text"].as_str().unwrap_or_default())?;
        assert_eq!(
            data,
            json!({"id": "7", "templateTest": true, "data": "Data for ID: 7"}),
            "{about}"
        );
        let uri = "test://nothing";
        let none = self.ask("resources/read", json!({"uri": uri})).await?;
        let code = if self.is_from(MODERN) { -32602 } else { -32002 };
        let error = &none.answer["error"];
        assert_eq!(
            (&error["code"], &error["data"]["uri"]),
            (&json!(code), &json!(uri)),
            "{about}: RE-4, RE-5: {error}"
        );

        // MCP-CP-3: of a prompt, and of a template.
        let of_prompt = json!({"type": "ref/prompt", "name": name});
        let of_template = json!({"type": "ref/resource", "uri": fixture.template()});
        for (reference, argument, typed, values) in [
            (of_prompt, "arg1", "par", json!(["paris", "park", "party"])),
            (of_template, "id", "park", json!(["park"])),
        ] {
            let params = json!({"ref": reference, "argument": {"name": argument, "value": typed}});
            let total = values.as_array().map_or(0, Vec::len);
            let completed = self.ask("completion/complete", params).await?.answer;
            let expected = json!({"values": values, "total": total, "hasMore": false});
            assert_eq!(
                completed["result"]["completion"], expected,
                "{about}: {completed}"
            );
        }
        Ok(())
    }

    /// MCP-X-20, MCP-X-22, MCP-X-28, MCP-X-29: a question reaches the client in its own way.
    /// MCP-X-30, MCP-V-1: a client that cannot be asked gets an error with the reason.
    async fn elicitation(&mut self) -> Result<()> {
        let (about, fixture, can) = (self.about(), self.fixture, self.is_from("2025-06-18"));
        let greeting = "test_input_required_result_elicitation";
        let heard = self.call(greeting, json!({})).await?;
        if !can {
            let is_refused = heard.answer.get("error").is_some();
            // MCP-X-5: a server of both eras reports it in a session, in the words of its SDK.
            if fixture.knows_both_eras() {
                let is_failed = heard.answer["result"]["isError"] == true;
                assert!(is_failed || is_refused, "{about}: {}", heard.answer);
            } else {
                assert_eq!(heard.said(), fixture.nobody_to_ask(greeting), "{about}");
                assert_eq!(heard.answer["result"]["isError"], true, "{about}");
            }
            assert_eq!(heard.asked(), [""; 0], "{about}: {:?}", heard.questions);
            return Ok(());
        }
        assert_eq!(heard.said(), "Hello, Ada!", "{about}: {}", heard.answer);
        assert_eq!(heard.asked(), ["elicitation/create"], "{about}");
        let params = &heard.questions[0]["params"];
        assert_eq!(params["message"], "What is your name?", "{about}");
        let schema = &params["requestedSchema"];
        assert_eq!(schema["required"], json!(["name"]), "{about}: {schema}");
        // MCP-X-34: 2025-06-18 knows of no modes.
        let mode = params.get("mode").and_then(Value::as_str);
        if self.client.revision == "2025-06-18" {
            assert_eq!(mode, None, "{about}: {params}");
        } else {
            assert!(matches!(mode, None | Some("form")), "{about}: {params}");
        }
        if fixture == Fixture::Rmcp {
            return Ok(());
        }
        let message = json!({"message": "Who are you?"});
        let heard = self.call("test_elicitation", message).await?;
        let content = heard
            .said()
            .strip_prefix("User response: action=accept, content=")
            .with_context(|| format!("{about}: {}", heard.answer))?;
        assert_eq!(
            serde_json::from_str::<Value>(content)?,
            json!({"username": "Ada", "email": "ada@example.com"}),
            "{about}"
        );
        let params = json!({"name": "test_input_required_result_prompt"});
        let got = self.ask("prompts/get", params).await?;
        let content = &got.answer["result"]["messages"][0]["content"];
        assert_eq!(
            content["text"], "Context: harbours",
            "{about}: PR-6: {}",
            got.answer
        );
        Ok(())
    }

    /// MCP-SM-1, MCP-RT-1: sampling and roots are of every revision.
    async fn sampling_and_roots(&mut self) -> Result<()> {
        let about = self.about();
        let prompt = json!({"prompt": "Say hello"});
        let heard = self.call("test_sampling", prompt).await?;
        assert_eq!(
            heard.said(),
            "LLM response: Hello",
            "{about}: {}",
            heard.answer
        );
        assert_eq!(heard.asked(), ["sampling/createMessage"], "{about}");
        let params = &heard.questions[0]["params"];
        let asked = json!([{"role": "user", "content": {"type": "text", "text": "Say hello"}}]);
        assert_eq!(params["messages"], asked, "{about}");
        assert_eq!(params["maxTokens"], 100, "{about}");
        if self.fixture == Fixture::Rmcp {
            return Ok(());
        }
        let heard = self
            .call("test_input_required_result_list_roots", json!({}))
            .await?;
        assert_eq!(
            heard.said(),
            "Roots: file:///a",
            "{about}: {}",
            heard.answer
        );
        assert_eq!(heard.asked(), ["roots/list"], "{about}");
        Ok(())
    }

    /// MCP-XT-2: two rounds, and three questions at once.
    async fn rounds(&mut self) -> Result<()> {
        if self.fixture == Fixture::Rmcp || !self.is_from("2025-06-18") {
            return Ok(());
        }
        let about = self.about();
        let heard = self
            .call("test_input_required_result_multi_round", json!({}))
            .await?;
        assert_eq!(heard.said(), "Ada likes blue.", "{about}: {}", heard.answer);
        assert_eq!(heard.asked(), ["elicitation/create"; 2], "{about}");
        let heard = self
            .call("test_input_required_result_multiple_inputs", json!({}))
            .await?;
        assert_eq!(
            heard.said(),
            "Hello Ada, 1 roots",
            "{about}: {}",
            heard.answer
        );
        let mut asked = heard.asked();
        asked.sort_unstable();
        let all = ["elicitation/create", "roots/list", "sampling/createMessage"];
        assert_eq!(asked, all, "{about}");
        Ok(())
    }

    /// Python's SDKs make a form out of a class, and structured content out of a text.
    async fn in_the_way_of_python(&mut self) -> Result<()> {
        if !matches!(self.fixture, Fixture::Python1 | Fixture::Python2) {
            return Ok(());
        }
        let about = self.about();
        let heard = self.call("test_ask_by_schema", json!({})).await?;
        let result = &heard.answer["result"];
        if !self.is_from("2025-06-18") {
            let words = self.fixture.nobody_to_ask("test_ask_by_schema");
            assert_eq!(heard.said(), words, "{about}: X-30, V-1");
            return Ok(());
        }
        assert_eq!(heard.said(), "You like blue.", "{about}: {result}");
        assert_eq!(
            result["structuredContent"],
            json!({"result": "You like blue."}),
            "{about}"
        );
        assert_eq!(
            heard.questions[0]["params"]["message"], "What is your favorite color?",
            "{about}"
        );
        Ok(())
    }
}

/// MCP-XT-12: the client's token and its names for things never reach the server, the server's
/// secret and sessions never reach the client.
fn nothing_crosses(upstream: &Upstream, tokens: &Tokens, visible: &str) {
    let (seen, mut secrets) = (upstream.seen(), vec![SECRET.to_owned()]);
    assert!(seen.len() > 50, "{}", seen.len());
    for one in &seen {
        let body = String::from_utf8_lossy(&one.body);
        let all = format!("{} {:?} {body}", one.path, one.headers);
        assert!(
            one.header("authorization")
                .is_some_and(|own| own.ends_with(SECRET)),
            "{all}"
        );
        assert!(!all.contains(&tokens.access), "{all}");
        assert!(!all.contains("\"progress-"), "MCP-X-19: {all}");
        secrets.extend(one.header("mcp-session-id").map(str::to_owned));
    }
    for secret in secrets {
        assert!(!visible.contains(&secret), "{secret} was shown");
    }
}

async fn every_revision_before(fixture: Fixture) -> Result<()> {
    let upstream = Upstream::start_for_token(fixture, SECRET)?;
    let stack = Stack::builder().allow_egress(upstream.address()).start()?;
    let owner = Person::sign_up(&stack, "ann").await?;
    let console = owner.console();
    console.create_workspace("harbour").await?;
    let more = json!({"credential": {"kind": "bearer", "token": SECRET}});
    let published = publish(&console, "harbour", &upstream, &more).await?;
    let client = OAuthClient::register(stack.url(), "Harness").await?;
    let tokens = client.authorize(&owner, &published.url).await?;
    let mcp = McpClient::new(&published.url)?.with_token(&tokens.access)?;
    let mut visible = String::new();
    for revision in REVISIONS {
        let mut pair = Pair {
            fixture,
            client: Speaker::open(&mcp, revision).await?,
            visible: String::new(),
        };
        pair.lists().await?;
        pair.results().await?;
        pair.notices().await?;
        pair.prompts_and_resources().await?;
        pair.elicitation().await?;
        pair.sampling_and_roots().await?;
        pair.rounds().await?;
        pair.in_the_way_of_python().await?;
        visible += &pair.visible;
    }
    nothing_crosses(&upstream, &tokens, &visible);
    // MCP-X-1, MCP-X-5: asked once what it speaks, and from then on in the era of the client, if it
    // knows that.
    let calls = upstream.seen_of("tools/call");
    let versions: BTreeSet<Option<&str>> = calls
        .iter()
        .map(|call| call.header("mcp-protocol-version"))
        .collect();
    let expected: BTreeSet<Option<&str>> = fixture.spoken().into();
    assert_eq!(versions, expected, "{fixture:?}");
    Ok(())
}

#[tokio::test]
async fn xt_12_clients_of_every_revision_before_typescript_of_the_session_era() -> Result<()> {
    every_revision_before(Fixture::TypeScript1).await
}

#[tokio::test]
async fn xt_12_clients_of_every_revision_before_typescript_of_2026_07_28() -> Result<()> {
    every_revision_before(Fixture::TypeScript2).await
}

/// MCP-XT-6: over the two endpoints of 2024-11-05, whose stream is shared by all messages.
#[tokio::test]
async fn xt_6_clients_of_every_revision_before_a_server_of_2024_11_05() -> Result<()> {
    every_revision_before(Fixture::HttpSse).await
}

/// MCP-X-3: its SDK refuses the question for the era under an id of its own.
#[tokio::test]
async fn x_3_xt_12_clients_of_every_revision_before_python_of_the_session_era() -> Result<()> {
    every_revision_before(Fixture::Python1).await
}

#[tokio::test]
async fn xt_12_clients_of_every_revision_before_python_of_2026_07_28() -> Result<()> {
    every_revision_before(Fixture::Python2).await
}

#[tokio::test]
async fn xt_12_clients_of_every_revision_before_rust_of_2026_07_28() -> Result<()> {
    every_revision_before(Fixture::Rmcp).await
}
