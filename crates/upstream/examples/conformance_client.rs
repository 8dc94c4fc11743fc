//! The client under test of the official conformance suite (`conformance client --command`): our
//! upstream client with its OAuth, and around it what a person and a model would do. It allows what
//! it is asked to allow, fills forms with what they propose, and calls every tool.
#![expect(
    clippy::disallowed_methods,
    reason = "the suite tells the client in variables what it is to do"
)]

use std::{collections::VecDeque, env, error::Error, process::ExitCode, time::Duration};

use http::{HeaderMap, HeaderValue, Method, header};
use portolan_net::{
    egress::{AllowedDestination, Egress, EgressPolicy, EgressRequest},
    secrets::Secrets,
};
use portolan_protocol::{
    header::annotations,
    input_required::{InputRequired, write_responses},
    jsonrpc::Raw,
};
use portolan_upstream::{
    Client, Connection, Endpoint, ExchangeEvent, Legacy, Limits, OfferedTool, Probed, Request,
    Speaker, Standing, UpstreamError,
    oauth::{
        AuthMethod, AuthorizationAttempt, AuthorizationServer, Callback, Challenge, ClientIdentity,
        Grant, OauthError, Registration, Tokens, discover, offered_scopes, redeem, register, union,
    },
};
use serde_json::{Map, Value, json};
use tokio_util::task::TaskTracker;
use url::Url;

type Fallible<T> = Result<T, Box<dyn Error>>;

/// The suite's example for a client's metadata document.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";
const REDIRECT: &str = "http://127.0.0.1:9/callback";
/// MCP-AU-11.
const MOST_STEPS: usize = 3;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// State kept for one account.
#[derive(Default)]
struct Account {
    issuer: String,
    client: Option<ClientIdentity>,
    scope: Option<String>,
    token: Option<String>,
    tries: usize,
}

struct Run {
    egress: Egress,
    url: Url,
    context: Value,
    account: Account,
}

async fn run() -> Fallible<()> {
    let url = env::args().next_back().ok_or("an address")?.parse()?;
    let context = env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    // The suite's servers are on whatever port was free.
    let ports = 1024..=u16::MAX;
    let allow = ports.flat_map(|port| {
        ["localhost", "127.0.0.1"].map(|host| AllowedDestination::host(host, port))
    });
    let mut run = Run {
        egress: Egress::new(EgressPolicy {
            allow: allow.collect(),
            ..EgressPolicy::default()
        })?,
        url,
        context: serde_json::from_str(&context).unwrap_or_default(),
        account: Account::default(),
    };
    let mut done = VecDeque::new();
    loop {
        match run.visit(&mut done).await {
            Ok(()) => return Ok(()),
            Err(UpstreamError::Unauthorized { challenge }) => {
                run.sign_in(&Challenge::read(challenge.as_deref()), false)
                    .await?;
            }
            Err(UpstreamError::Forbidden { challenge }) => {
                let challenge = Challenge::read(challenge.as_deref());
                if challenge.error.as_deref() != Some("insufficient_scope") {
                    return Err("forbidden".into());
                }
                run.sign_in(&challenge, true).await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

impl Run {
    fn client(&self) -> Client {
        let mut headers = HeaderMap::new();
        if let Some(token) = &self.account.token
            && let Ok(value) = HeaderValue::try_from(format!("Bearer {token}"))
        {
            headers.insert(header::AUTHORIZATION, value);
        }
        let endpoint = Endpoint {
            url: self.url.clone(),
            headers,
            secrets: Secrets::default(),
            limits: Limits {
                silence: Duration::from_secs(10),
                ..Limits::default()
            },
        };
        Client::new(self.egress.clone(), endpoint)
    }

    /// Everything that a client does with a server. `done` are the tools that were called already.
    async fn visit(&self, done: &mut VecDeque<String>) -> Result<(), UpstreamError> {
        let speaker = Speaker {
            capabilities: Raw::of(&json!({ "elicitation": { "form": {} } }))
                .unwrap_or(Raw::empty_object()),
            ..Speaker::ourselves()
        };
        let tracker = TaskTracker::new();
        let version = env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").unwrap_or_default();
        let probed = if version.is_empty() || version == "2026-07-28" {
            self.client().probe(&speaker, &tracker).await?
        } else {
            // The suite says which lifecycle it runs.
            let (legacy, facts) = Legacy::open(&self.client(), &speaker).await?;
            Probed {
                connection: Connection::Legacy(legacy),
                facts,
            }
        };
        let connection = with_speaker(self.client(), &probed.connection, &speaker);
        let offer = probed.offer().await?;
        // MCP-X-23: some ask outside of the request that made them ask.
        let standing = match &connection {
            Connection::Legacy(_) => connection.stand(&[]).await?,
            Connection::Modern(_) | Connection::Link(_) => None,
        };
        let hearing = tokio::spawn(hear(connection.clone(), standing));
        let planned = self.context["toolCalls"].as_array();
        for tool in &offer.tools {
            // MCP-H-17.
            if done.contains(&tool.name) || tool.has_faulty_headers {
                continue;
            }
            let calls: Vec<Value> = match planned {
                Some(planned) => planned
                    .iter()
                    .filter(|call| call["name"] == tool.name)
                    .map(|call| call["arguments"].clone())
                    .collect(),
                None => vec![Value::Object(arguments(&tool.input_schema))],
            };
            for arguments in calls {
                match call(&connection, tool, &arguments).await {
                    Ok(()) | Err(UpstreamError::Refused(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            done.push_back(tool.name.clone());
        }
        hearing.abort();
        connection.end().await;
        Ok(())
    }

    /// The client that the suite gives, if it gives one.
    fn entered(&self, server: &AuthorizationServer) -> Option<ClientIdentity> {
        let text = |name: &str| self.context[name].as_str().map(str::to_owned);
        let key = text("private_key_pem");
        Some(ClientIdentity {
            client_id: text("client_id")?,
            method: match (&key, text("client_secret")) {
                (Some(_), _) => AuthMethod::PrivateKeyJwt,
                (None, Some(_)) => AuthMethod::with_secret(server),
                (None, None) => AuthMethod::None,
            },
            secret: key.or_else(|| text("client_secret")),
        })
    }

    /// Gets a token by an authorization code. The suite's server redirects at once.
    async fn by_code(
        &self,
        server: &AuthorizationServer,
        client: &ClientIdentity,
        resource: Option<&str>,
        scope: Option<&str>,
        now: time::OffsetDateTime,
    ) -> Fallible<Tokens> {
        let attempt = AuthorizationAttempt::begin()?;
        let id = &client.client_id;
        let address = attempt.address(&self.egress, server, id, REDIRECT, resource, scope)?;
        let answer = self
            .egress
            .send(EgressRequest::new(Method::GET, address))
            .await?;
        let back = answer.headers.get(header::LOCATION).ok_or("a redirect")?;
        let back = Url::parse(back.to_str()?)?;
        let of = |name: &str| {
            let mut pairs = back.query_pairs();
            pairs
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.into_owned())
        };
        if of("state").as_deref() != Some(&attempt.state) {
            return Err(OauthError::MixedUp.into());
        }
        let callback = Callback {
            code: of("code"),
            error: of("error"),
            iss: of("iss"),
        };
        let code = AuthorizationAttempt::check(server, &callback)?;
        let grant = Grant::Code {
            code: &code,
            verifier: &attempt.verifier,
            redirect_uri: REDIRECT,
        };
        Ok(redeem(&self.egress, server, client, grant, resource, None, now).await?)
    }

    /// Gets a token: as a person's client, or by client credentials where the suite gives a client
    /// for that.
    async fn sign_in(&mut self, challenge: &Challenge, more: bool) -> Fallible<()> {
        self.account.tries += 1;
        if self.account.tries > MOST_STEPS {
            return Err("the server asks for more again and again".into());
        }
        let found = discover(&self.egress, &self.url, challenge).await?;
        let server = &found.server;
        if self.account.issuer != server.issuer {
            // MCP-AU-7: nothing of another authorization server is used at this one.
            self.account = Account {
                issuer: server.issuer.clone(),
                tries: self.account.tries,
                ..Account::default()
            };
        }
        let earlier = self.account.scope.as_deref().filter(|_| more);
        let scope = offered_scopes(challenge, &found, earlier);
        let resource = found.resource.as_deref();
        let now = time::OffsetDateTime::now_utc();
        let scenario = env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
        let by_client = scenario.contains("client-credentials");
        let client = match (self.entered(server), self.account.client.clone()) {
            (Some(entered), _) => entered,
            (None, Some(known)) => known,
            (None, None) if server.client_id_metadata_document_supported => {
                ClientIdentity::public(DOCUMENT)
            }
            (None, None) => {
                let ourselves = Registration {
                    client_name: "Portolan",
                    client_uri: "https://portolan.example",
                    redirect_uri: REDIRECT,
                    scope: scope.as_deref(),
                };
                register(&self.egress, server, &ourselves).await?
            }
        };
        let tokens = if by_client {
            let grant = Grant::ClientCredentials;
            redeem(
                &self.egress,
                server,
                &client,
                grant,
                resource,
                scope.as_deref(),
                now,
            )
            .await?
        } else {
            self.by_code(server, &client, resource, scope.as_deref(), now)
                .await?
        };
        let granted = tokens.scope.clone().or(scope).unwrap_or_default();
        self.account.scope = Some(union(&granted, ""));
        self.account.token = Some(tokens.access);
        self.account.client = Some(client);
        Ok(())
    }
}

/// The same connection for a speaker who can fill in a form.
fn with_speaker(client: Client, connection: &Connection, speaker: &Speaker) -> Connection {
    match connection {
        Connection::Modern(_) => {
            Connection::Modern(portolan_upstream::Modern::new(client, speaker.clone()))
        }
        other => other.clone(),
    }
}

/// Answers what is asked outside of a request, until the stream is over.
async fn hear(connection: Connection, standing: Option<Standing>) {
    let Some(mut standing) = standing else {
        return;
    };
    while let Ok(event) = standing.next().await {
        if let ExchangeEvent::Request { id, params, .. } = event {
            // If this answer does not arrive, the next request to the server fails.
            let _ = connection.answer(&id, &Ok(filled(&params))).await;
        }
    }
}

/// Calls a tool, with answers to what it asks, until it is done.
async fn call(
    connection: &Connection,
    tool: &OfferedTool,
    arguments: &Value,
) -> Result<(), UpstreamError> {
    let (mirrored, _) = annotations(&tool.input_schema);
    let mut params = json!({ "name": tool.name, "arguments": arguments });
    for _ in 0..10 {
        let raw = Raw::of(&params).unwrap_or(Raw::empty_object());
        let request = Request {
            mirrored: &mirrored,
            ..Request::new("tools/call", raw)
        };
        let mut exchange = connection.call(&request).await?;
        let answer = loop {
            match exchange.next().await? {
                ExchangeEvent::Answer(answer) => break answer,
                ExchangeEvent::Request { id, params, .. } => {
                    connection.answer(&id, &Ok(filled(&params))).await?;
                }
                _ => {}
            }
        };
        let Ok(result) = answer else { return Ok(()) };
        if !InputRequired::is(&result) {
            return Ok(());
        }
        let Ok(asked) = InputRequired::read(&result) else {
            return Ok(());
        };
        let answers: Vec<(String, Raw)> = asked
            .requests
            .iter()
            .map(|(key, request)| (key.clone(), filled(&request.params)))
            .collect();
        let named = answers.iter().map(|(key, answer)| (key.as_str(), answer));
        let responses = write_responses(named);
        params = json!({ "name": tool.name, "arguments": arguments });
        params["inputResponses"] = serde_json::from_slice(responses.as_bytes()).unwrap_or_default();
        if let Some(state) = asked.state {
            params["requestState"] = json!(state);
        }
    }
    Ok(())
}

/// A form with what it proposes, and something where it proposes nothing.
fn filled(params: &Raw) -> Raw {
    let params: Value = serde_json::from_slice(params.as_bytes()).unwrap_or_default();
    let content = arguments(&params["requestedSchema"]);
    Raw::of(&json!({ "action": "accept", "content": content })).unwrap_or(Raw::empty_object())
}

/// Values that a schema would take.
fn arguments(schema: &Value) -> Map<String, Value> {
    let members = schema["properties"].as_object();
    let value = |schema: &Value| {
        if let Some(proposed) = schema.get("default").or_else(|| schema["enum"].get(0)) {
            return proposed.clone();
        }
        match schema["type"].as_str() {
            Some("integer" | "number") => json!(3),
            Some("boolean") => json!(true),
            Some("array") => json!([]),
            Some("object") => json!({}),
            _ => json!("portolan"),
        }
    };
    let members = members.into_iter().flatten();
    members
        .map(|(name, schema)| (name.clone(), value(schema)))
        .collect()
}
