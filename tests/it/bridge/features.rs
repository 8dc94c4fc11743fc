//! The outcome of each feature for a pair. A probe knows all outcomes; anything else is an error.

use anyhow::{Context, Result, bail, ensure};
use portolan_tests::{
    mcp::MODERN,
    revision_upstream::{
        CHANGED, COMPLETED, CONTENTS, INSTRUCTIONS, PROMPT, RevisionUpstream, WATCHED,
    },
    speaker::{Heard, Speaker},
};
use serde_json::{Value, json};

use super::table::Way;

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A feature, in the order of the page.
pub(super) struct Feature {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// The steps of the probe.
    pub(super) about: &'static str,
    /// The first revision of a server that has it.
    pub(super) since: &'static str,
}

const fn feature(
    name: &'static str,
    title: &'static str,
    since: &'static str,
    about: &'static str,
) -> Feature {
    Feature {
        name,
        title,
        about,
        since,
    }
}

pub(super) const FEATURES: [Feature; 23] = [
    feature(
        "open",
        "Initialize or discover",
        "2024-11-05",
        "The client opens a session in its own revision, or calls `server/discover`, and reads the\n\
         server's instructions.",
    ),
    feature(
        "list",
        "Definitions of tools",
        "2024-11-05",
        "The client lists tools. One of them has all members that the server's revision knows.",
    ),
    feature(
        "call",
        "Call",
        "2024-11-05",
        "The client calls a tool that answers with a text.",
    ),
    feature(
        "results",
        "Content of results",
        "2024-11-05",
        "A tool answers with every kind of content that the server's revision knows.",
    ),
    feature(
        "progress",
        "Progress",
        "2024-11-05",
        "A tool reports progress three times, with a message where the revision has it.",
    ),
    feature(
        "logs",
        "Logs of a call",
        "2024-11-05",
        "A tool writes a log line while it runs, at a level that the client wants.",
    ),
    feature(
        "elicitation",
        "Elicitation by form",
        "2025-06-18",
        "A tool asks for a name, with a default, and for a color, with titles.",
    ),
    feature(
        "multi-select",
        "Elicitation with multiple choice",
        "2025-11-25",
        "A tool asks for several values of a list.",
    ),
    feature(
        "url",
        "Elicitation by URL",
        "2025-11-25",
        "A tool asks for a step in the browser.",
    ),
    feature(
        "url-error",
        "Step in the browser by an error",
        "2025-11-25",
        "A tool refuses the call with -32042 until the person has visited a page. Only servers of \
         2025-11-25 do so.",
    ),
    feature(
        "sampling",
        "Sampling",
        "2024-11-05",
        "A tool asks for a completion of the client's model.",
    ),
    feature(
        "sampling-tools",
        "Sampling with tools",
        "2025-11-25",
        "A tool asks for a completion in which the model may use tools.",
    ),
    feature(
        "roots",
        "Roots",
        "2024-11-05",
        "A tool asks for the client's roots.",
    ),
    feature(
        "resources",
        "Resources",
        "2024-11-05",
        "The client reads a resource, and one that does not exist.",
    ),
    feature(
        "subscription",
        "Subscription to a resource",
        "2024-11-05",
        "The client subscribes to a resource, and the server changes it.",
    ),
    feature(
        "list-changed",
        "Changed list",
        "2024-11-05",
        "The server changes the definition of a tool.",
    ),
    feature(
        "prompts",
        "Prompts",
        "2024-11-05",
        "The client lists prompts and gets one.",
    ),
    feature(
        "completion",
        "Completion",
        "2024-11-05",
        "The client asks to complete an argument; from 2025-06-18 on it sends the context.",
    ),
    feature(
        "cancel",
        "Cancellation",
        "2024-11-05",
        "The client cancels a call while the tool runs.",
    ),
    feature(
        "early-cancel",
        "Cancellation before the answer begins",
        "2024-11-05",
        "The client cancels a call whose server has sent nothing, not even the head of its answer.",
    ),
    feature(
        "tasks",
        "Tasks",
        "2025-11-25",
        "The client calls a tool that runs as a task only.",
    ),
    feature(
        "broken-stream",
        "Broken stream of the server",
        "2024-11-05",
        "The server's stream of a call ends before the answer.",
    ),
    feature(
        "resume",
        "Lost connection of the client",
        "2024-11-05",
        "The client's connection breaks while the tool runs, and the client wants the result.",
    ),
];

/// A client before a server.
pub(super) struct Pair {
    pub(super) client: Speaker,
    pub(super) upstream: RevisionUpstream,
    pub(super) way: Way,
}

/// Lossless, or what is lost.
fn unless(lost: &[&str]) -> String {
    if lost.is_empty() {
        "=".to_owned()
    } else {
        format!("~{}", lost.join(","))
    }
}

/// A refusal that the client sees. Each has its own words or its own number.
fn refused(answer: &Value) -> Result<String> {
    let result = &answer["result"];
    let words = result["content"][0]["text"].as_str().unwrap_or_default();
    let known = [
        ("The client cannot do what", "x server-refuses"),
        ("This tool needs the client feature", "x feature"),
        ("This tool needs a multiple-choice form", "x multi-select"),
        ("This tool needs a step in the browser", "~browser"),
    ];
    let found = known.iter().find(|(begin, _)| words.starts_with(begin));
    if let (Some((_, outcome)), true) = (found, result["isError"] == true) {
        return Ok((*outcome).to_owned());
    }
    bail!("no refusal that is known: {answer}")
}

impl Pair {
    fn server_is_from(&self, revision: &str) -> bool {
        self.upstream.revision() >= revision
    }

    fn client_is_from(&self, revision: &str) -> bool {
        self.client.revision >= revision
    }

    /// Do both sides know what came with `revision`?
    fn both_are_from(&self, revision: &str) -> bool {
        self.server_is_from(revision) && self.client_is_from(revision)
    }

    fn key(&self, word: &str) -> String {
        format!("{word} of {} {:?}", self.client.revision, self.way)
    }

    pub(super) async fn outcome_of(&mut self, feature: &str) -> Result<String> {
        let known = FEATURES.iter().find(|one| one.name == feature);
        let since = known.context("a feature of the list")?.since;
        if !self.server_is_from(since) {
            return Ok("-".to_owned());
        }
        // A session of two programs passes through `portolan connect` as it is (MCP-L-2).
        let opened = self.client.opened["protocolVersion"].as_str();
        if opened.is_some_and(|agreed| agreed != self.client.revision) {
            ensure!(self.way == Way::Connect, "{}", self.client.opened);
            ensure!(
                opened == Some(self.upstream.revision()),
                "{}",
                self.client.opened
            );
            let outcome = if self.client_is_from(self.upstream.revision()) {
                "~older"
            } else {
                "x newer"
            };
            return Ok(outcome.to_owned());
        }
        match feature {
            "open" => self.open().await,
            "list" => self.list().await,
            "call" => self.call().await,
            "results" => self.results().await,
            "progress" => self.progress().await,
            "logs" => self.logs().await,
            "elicitation" => self.elicitation().await,
            "multi-select" => self.multi_select().await,
            "url" => self.url().await,
            "url-error" => self.url_error().await,
            "sampling" => self.question("sample", "sampling/createMessage").await,
            "sampling-tools" => {
                self.question("sample_tools", "sampling/createMessage")
                    .await
            }
            "roots" => self.question("roots", "roots/list").await,
            "resources" => self.resources().await,
            "subscription" => self.subscription().await,
            "list-changed" => self.list_changed().await,
            "prompts" => self.prompts().await,
            "completion" => self.completion().await,
            "cancel" => self.cancel().await,
            "early-cancel" => self.early_cancel().await,
            "tasks" => self.tasks().await,
            "broken-stream" => self.broken_stream().await,
            "resume" => self.resume().await,
            other => bail!("no probe of {other}"),
        }
    }

    async fn open(&mut self) -> Result<String> {
        let mut lost = Vec::new();
        if self.client.revision == MODERN {
            let mut found = self.client.ask("server/discover", json!({})).await?;
            if self.way == Way::Connect && self.upstream.revision() != MODERN {
                // A client of both eras opens a session now.
                ensure!(found.answer["error"]["code"] == -32601, "{}", found.answer);
                self.call().await?;
                found = self.client.ask("server/discover", json!({})).await?;
                lost.push("discover");
            }
            self.client.opened = found.answer["result"].clone();
            let versions = &self.client.opened["supportedVersions"];
            ensure!(versions[0] == MODERN, "{}", found.answer);
        }
        let opened = &self.client.opened;
        match opened.get("instructions") {
            Some(own) => ensure!(own == INSTRUCTIONS, "{opened}"),
            None => lost.push("instructions"),
        }
        Ok(unless(&lost))
    }

    /// MCP-X-60, MCP-X-64.
    async fn list(&mut self) -> Result<String> {
        let (tools, _) = self.client.list("tools/list", "tools").await?;
        let rich = tools.iter().find(|tool| tool["name"] == "rich");
        let rich = rich.with_context(|| format!("{tools:?}"))?;
        let mut lost = Vec::new();
        for (member, since) in [
            ("annotations", "2025-03-26"),
            ("title", "2025-06-18"),
            ("outputSchema", "2025-06-18"),
            ("icons", "2025-11-25"),
        ] {
            // Empty annotations say nothing.
            let is_there = rich.get(member).is_some_and(|value| *value != json!({}));
            ensure!(!is_there || self.both_are_from(since), "{member}: {rich}");
            if self.server_is_from(since) && !is_there {
                let key = if self.client_is_from(since) {
                    ensure!(member == "outputSchema", "{member}: {rich}");
                    "any-value"
                } else {
                    "definition"
                };
                if !lost.contains(&key) {
                    lost.push(key);
                }
            }
        }
        Ok(unless(&lost))
    }

    async fn call(&mut self) -> Result<String> {
        let heard = self.client.call("plain", json!({})).await?;
        ensure!(heard.said() == "plain", "{}", heard.answer);
        Ok(unless(&[]))
    }

    /// MCP-X-61…MCP-X-64.
    async fn results(&mut self) -> Result<String> {
        let heard = self.client.call("rich", json!({})).await?;
        let result = &heard.answer["result"];
        ensure!(heard.said() == "rich", "{}", heard.answer);
        let blocks = result["content"].as_array().context("content")?;
        let kinds: Vec<&str> = blocks
            .iter()
            .filter_map(|block| block["type"].as_str())
            .collect();
        let has_words = |words: &str| {
            blocks.iter().any(|block| {
                block["text"]
                    .as_str()
                    .is_some_and(|text| text.contains(words))
            })
        };
        let mut lost = Vec::new();
        if self.server_is_from("2025-03-26") && !kinds.contains(&"audio") {
            ensure!(has_words("[audio, audio/wav"), "MCP-V-7: {result}");
            lost.push("audio");
        }
        if self.server_is_from("2025-06-18") {
            if !kinds.contains(&"resource_link") {
                ensure!(has_words("[resource link] tide"), "MCP-V-7: {result}");
                lost.push("link");
            }
            let structured = result.get("structuredContent");
            if let Some(structured) = structured {
                let whole = if self.server_is_from(MODERN) {
                    json!([1, 2])
                } else {
                    json!({"depth": 1})
                };
                ensure!(*structured == whole, "{result}");
            } else if self.client_is_from("2025-06-18") {
                ensure!(has_words("[1,2]"), "MCP-X-64: {result}");
                lost.push("any-value");
            } else {
                lost.push("structured");
            }
        }
        Ok(unless(&lost))
    }

    /// MCP-X-76.
    async fn progress(&mut self) -> Result<String> {
        let heard = self.client.call("progress", json!({})).await?;
        let told = heard.told("notifications/progress");
        let steps: Vec<Option<f64>> = told.iter().map(|one| one["progress"].as_f64()).collect();
        ensure!(steps == [Some(1.0), Some(2.0), Some(3.0)], "{heard:?}");
        let has_words = told.iter().all(|one| one["message"].is_string());
        if self.both_are_from("2025-03-26") {
            ensure!(has_words, "{told:?}");
        } else if self.server_is_from("2025-03-26") {
            ensure!(
                told.iter().all(|one| one.get("message").is_none()),
                "{told:?}"
            );
            return Ok(unless(&["message"]));
        }
        Ok(unless(&[]))
    }

    /// MCP-X-72…MCP-X-75.
    async fn logs(&mut self) -> Result<String> {
        let heard = self.client.call("log", json!({})).await?;
        let told = heard.told("notifications/message");
        ensure!(told.len() == 1 && told[0]["data"] == "A line.", "{heard:?}");
        Ok(unless(&[]))
    }

    /// The answer that the server got, if the client was asked.
    fn answered(heard: &Heard, method: &str) -> Result<Option<Value>> {
        let Some(answer) = heard.said().strip_prefix("answered ") else {
            ensure!(heard.asked().is_empty(), "asked in vain: {heard:?}");
            return Ok(None);
        };
        ensure!(heard.asked() == [method], "{heard:?}");
        Ok(Some(serde_json::from_str(answer)?))
    }

    /// MCP-X-30, MCP-X-34.
    async fn elicitation(&mut self) -> Result<String> {
        let heard = self.client.call("elicit", json!({})).await?;
        let Some(answer) = Self::answered(&heard, "elicitation/create")? else {
            return refused(&heard.answer);
        };
        let content = json!({"color": "blue", "name": "Ada"});
        ensure!(answer["content"] == content, "{answer}");
        let fields = &heard.questions[0]["params"]["requestedSchema"]["properties"];
        let color = &fields["color"];
        let has_titles = color["oneOf"][0]["title"] == "Blue" || color["enumNames"][0] == "Blue";
        ensure!(has_titles, "{fields}");
        let has_default = fields["name"]["default"] == "Grace";
        let is_lost = self.server_is_from("2025-11-25") && !has_default;
        Ok(unless(if is_lost { &["default"] } else { &[] }))
    }

    /// MCP-V-11.
    async fn multi_select(&mut self) -> Result<String> {
        let heard = self.client.call("choose", json!({})).await?;
        let Some(answer) = Self::answered(&heard, "elicitation/create")? else {
            return refused(&heard.answer);
        };
        ensure!(
            answer["content"] == json!({"many": ["harbours"]}),
            "{answer}"
        );
        Ok(unless(&[]))
    }

    /// MCP-X-32, MCP-X-33, MCP-X-35, MCP-V-6.
    async fn url(&mut self) -> Result<String> {
        let heard = self.client.call("link", json!({})).await?;
        let Some(answer) = Self::answered(&heard, "elicitation/create")? else {
            let is_text = heard.said().contains("https://example.com/fee");
            let outcome = refused(&heard.answer)?;
            ensure!(outcome != "~browser" || is_text, "{}", heard.answer);
            return Ok(outcome);
        };
        ensure!(answer == json!({"action": "accept"}), "{answer}");
        let params = &heard.questions[0]["params"];
        ensure!(params["url"] == "https://example.com/fee", "{params}");
        let done = heard.told("notifications/elicitation/complete");
        let mut lost = Vec::new();
        if self.client.revision == "2025-11-25" {
            let id = params["elicitationId"].as_str().context("an id")?;
            ensure!(
                done.iter().all(|one| one["elicitationId"] == id),
                "{heard:?}"
            );
            if done.is_empty() {
                lost.push("completion-signal");
            }
        } else if self.upstream.revision() == "2025-11-25" {
            lost.push("completion-signal");
        }
        Ok(unless(&lost))
    }

    /// MCP-X-3A…MCP-X-3F, MCP-X-20…MCP-X-2C.
    async fn question(&mut self, tool: &str, method: &str) -> Result<String> {
        let heard = self.client.call(tool, json!({})).await?;
        let Some(answer) = Self::answered(&heard, method)? else {
            return refused(&heard.answer);
        };
        if method == "roots/list" {
            ensure!(answer["roots"][0]["uri"] == "file:///a", "{answer}");
        } else {
            ensure!(answer["model"] == "m", "{answer}");
        }
        Ok(unless(&[]))
    }

    /// MCP-X-66, MCP-X-67: what does not exist has the number of the client's revision.
    async fn resources(&mut self) -> Result<String> {
        let read = self.client.ask("resources/read", json!({"uri": WATCHED}));
        let read = read.await?.answer;
        ensure!(read["result"]["contents"][0]["text"] == CONTENTS, "{read}");
        let none = self
            .client
            .ask("resources/read", json!({"uri": "sea://depth/none"}));
        let none = none.await?.answer;
        let code = if self.client.revision == MODERN {
            -32602
        } else {
            -32002
        };
        ensure!(none["error"]["code"] == code, "{none}");
        Ok(unless(&[]))
    }

    /// MCP-X-40, MCP-X-42, MCP-X-44.
    async fn subscription(&mut self) -> Result<String> {
        let answer = self.client.watch(WATCHED).await?;
        let uris = &answer["params"]["notifications"]["resourceSubscriptions"];
        ensure!(
            answer["result"] == json!({})
                || uris[0] == WATCHED
                || answer["result"]["resultType"] == "complete",
            "{answer}"
        );
        self.client.call("touch", json!({})).await?;
        let updated = self.client.until("notifications/resources/updated").await?;
        ensure!(updated["params"]["uri"] == WATCHED, "{updated}");
        Ok(unless(&[]))
    }

    /// MCP-X-41, MCP-X-42, MCP-X-44.
    async fn list_changed(&mut self) -> Result<String> {
        self.client.call("change", json!({})).await?;
        self.client.until(CHANGED).await?;
        Ok(unless(&[]))
    }

    async fn prompts(&mut self) -> Result<String> {
        let (prompts, _) = self.client.list("prompts/list", "prompts").await?;
        ensure!(prompts[0]["name"] == "describe", "{prompts:?}");
        let params = json!({"name": "describe", "arguments": {"what": "the pier"}});
        let got = self.client.ask("prompts/get", params).await?.answer;
        let said = &got["result"]["messages"][0]["content"]["text"];
        ensure!(*said == format!("{PROMPT}the pier"), "{got}");
        Ok(unless(&[]))
    }

    /// MCP-X-6E: servers of every revision get the context (ADR 36).
    async fn completion(&mut self) -> Result<String> {
        let mut params = json!({"ref": {"type": "ref/prompt", "name": "describe"},
            "argument": {"name": "what", "value": "nor"}});
        let has_context = self.client_is_from("2025-06-18");
        if has_context {
            params["context"] = json!({"arguments": {"where": "the pier"}});
        }
        let completed = self.client.ask("completion/complete", params).await?.answer;
        let value = &completed["result"]["completion"]["values"][0];
        let whole = if has_context { COMPLETED } else { "north" };
        ensure!(*value == whole, "{completed}");
        Ok(unless(&[]))
    }

    /// MCP-X-77…MCP-X-79.
    async fn cancel(&mut self) -> Result<String> {
        let key = self.key("cancel");
        self.client.begin("wait", json!({"key": key})).await?;
        self.upstream.until(&format!("waiting {key}")).await?;
        self.client.cancel().await?;
        self.upstream.until(&format!("cancelled {key}")).await?;
        Ok(unless(&[]))
    }

    /// MCP-X-77…MCP-X-79: the server has the request and runs the tool, but its answer has not begun.
    async fn early_cancel(&mut self) -> Result<String> {
        let key = self.key("early cancel");
        let arguments = json!({"key": key});
        self.client.begin_silent("wait_silently", arguments).await?;
        self.upstream.until(&format!("waiting {key}")).await?;
        self.client.cancel().await?;
        self.upstream.until(&format!("cancelled {key}")).await?;
        Ok(unless(&[]))
    }

    /// MCP-X-33, MCP-X-36, MCP-X-37.
    async fn url_error(&mut self) -> Result<String> {
        if self.upstream.revision() != "2025-11-25" {
            return Ok("-".to_owned());
        }
        let (page, paid) = ("https://example.com/fee", "The fee is paid.");
        let arguments = json!({"key": self.key("fee")});
        let heard = self.client.call("fee", arguments.clone()).await?;
        if heard.answer["error"]["code"] == -32042 {
            let pages = &heard.answer["error"]["data"]["elicitations"];
            ensure!(pages[0]["url"] == page, "{}", heard.answer);
            let again = self.client.call("fee", arguments).await?;
            ensure!(again.said() == paid, "{}", again.answer);
            return Ok(unless(&[]));
        }
        if heard.said() == paid {
            ensure!(heard.asked() == ["elicitation/create"], "{heard:?}");
            let params = &heard.questions[0]["params"];
            ensure!(params["url"] == page, "{params}");
            return Ok(unless(&[]));
        }
        let outcome = refused(&heard.answer)?;
        ensure!(
            outcome == "~browser" && heard.said().contains(page),
            "{heard:?}"
        );
        Ok(outcome)
    }

    /// MCP-X-7E: the rest of the stream is read with its last event id, or the client gets an error.
    /// The tool is not called again.
    async fn broken_stream(&mut self) -> Result<String> {
        let heard = self.client.call("hang_up", json!({})).await?;
        if heard.said() == "You came back." {
            return Ok(unless(&[]));
        }
        let is_lost =
            heard.answer["error"]["code"] == -31004 || heard.answer["result"]["isError"] == true;
        ensure!(is_lost, "{}", heard.answer);
        Ok("x lost".to_owned())
    }

    /// MCP-X-50…MCP-X-53.
    async fn tasks(&mut self) -> Result<String> {
        let mut params = json!({"name": "task", "arguments": {}});
        match self.client.revision {
            "2025-11-25" => params["task"] = json!({"ttl": 60_000}),
            MODERN => self.client.able["extensions"] = json!({(TASKS): {}}),
            _ => {}
        }
        let heard = self.client.ask("tools/call", params).await?;
        let result = &heard.answer["result"];
        let done = "The task is done.";
        if heard.said() == done {
            return Ok(unless(&["waits"]));
        }
        let task = result.get("task").unwrap_or(result);
        let Some(id) = task["taskId"].as_str() else {
            return refused(&heard.answer);
        };
        let id = json!({"taskId": id});
        let result = if self.client.revision == MODERN {
            loop {
                let got = self.client.ask("tasks/get", id.clone()).await?.answer;
                let got = &got["result"];
                match got["status"].as_str() {
                    Some("completed") => break got["result"].clone(),
                    Some("working") => {}
                    _ => bail!("{got}"),
                }
            }
        } else {
            let got = self.client.ask("tasks/result", id).await?.answer;
            got["result"].clone()
        };
        ensure!(result["content"][0]["text"] == done, "{result}");
        Ok(unless(&[]))
    }

    /// MCP-X-7A, MCP-X-7E, MCP-X-79, MCP-O-6.
    async fn resume(&mut self) -> Result<String> {
        if self.way.is_stdio() {
            return Ok("-".to_owned());
        }
        let key = self.key("resume");
        self.client.begin("wait", json!({"key": key})).await?;
        self.upstream.until(&format!("waiting {key}")).await?;
        let last = self.client.lose_connection().await?;
        let Some(last) = last.filter(|_| self.client.revision != MODERN) else {
            self.upstream.until(&format!("cancelled {key}")).await?;
            return Ok("x no-resume".to_owned());
        };
        self.upstream.release(&key);
        let answer = self.client.come_back(&last).await?;
        let said = &answer["result"]["content"][0]["text"];
        ensure!(*said == format!("waited {key}"), "{answer}");
        ensure!(!self.upstream.has_seen(&format!("cancelled {key}")));
        Ok(unless(&[]))
    }
}
