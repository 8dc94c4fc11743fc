//! The URLs without a server, or without a tenant: the server they name, and the tokens they accept
//! (AUTH-5.1, AUTH-5.4).

use portolan_storage::platform::tenants::Reach;

use crate::streams::list_changes::tell_tenant;
use crate::wire::*;

/// A workspace's own URL, and the one whose tenant is the token's.
const WORKSPACE: &str = "/t/acme/mcp";
const PLATFORM: &str = "/mcp";

impl Node {
    /// A node whose tenant has a server, which is its default one.
    async fn with_default() -> Self {
        let node = Self::start().await;
        let own = Target::parse(PATH).unwrap();
        let entry = node.state.catalog.resolve(node.tenant, &own).await;
        let server = entry.unwrap().server.clone();
        for path in [WORKSPACE, PLATFORM] {
            node.seed(path, server.clone());
        }
        node
    }

    /// A request with the token for `aud`, a path of this origin.
    fn request_at(
        &self,
        path: &str,
        aud: &str,
        verb: &str,
        more: &[(&str, &str)],
        body: String,
    ) -> Request<Body> {
        let claims = AccessClaims {
            aud: format!("{ISSUER}{aud}"),
            ..self.claims()
        };
        let token = self.sign(&claims);
        let headers: Vec<(&str, &str)> = more
            .iter()
            .copied()
            .chain([("authorization", token.as_str())])
            .collect();
        let mut request = self.request(verb, &headers, body);
        *request.uri_mut() = path.parse().unwrap();
        request
    }

    async fn begin_at(&self, path: &str, aud: &str) -> Answer {
        let body = initialize("2025-11-25").to_string();
        self.send(self.request_at(path, aud, "POST", &[], body))
            .await
    }
}

#[tokio::test]
async fn section_5_4_a_token_opens_the_default_server_if_it_names_no_other() {
    let node = Node::with_default().await;
    for is_wide in [true, false] {
        let reach = Reach {
            workspace_tokens: is_wide,
            ..Reach::default()
        };
        for path in [PATH, WORKSPACE, PLATFORM] {
            let target = Target::parse(path).unwrap();
            node.state.catalog.change_reach(node.tenant, &target, reach);
        }
        let if_wide = if is_wide { 200 } else { 401 };
        for (path, aud, status) in [
            (WORKSPACE, "/t/acme/mcp", 200),
            (WORKSPACE, "/t/acme-old/mcp", 200),
            (WORKSPACE, "/mcp", 200),
            // CASE-97, also where that server is the default one.
            (WORKSPACE, "/t/acme/pets/mcp", 401),
            (WORKSPACE, "/t/beta/mcp", 401),
            (PLATFORM, "/mcp", 200),
            (PLATFORM, "/t/acme/mcp", 200),
            (PLATFORM, "/t/acme/pets/mcp", 401),
            (PLATFORM, "/t/beta/mcp", 401),
            (PATH, "/t/acme/pets/mcp", 200),
            (PATH, "/t/acme/mcp", if_wide),
            (PATH, "/t/acme-old/mcp", if_wide),
            (PATH, "/mcp", if_wide),
        ] {
            let answer = node.begin_at(path, aud).await;
            assert_eq!(answer.status, status, "{aud} at {path}, {is_wide}");
            if status == 401 {
                let challenge = answer.header("www-authenticate");
                let metadata = format!("{ISSUER}/.well-known/oauth-protected-resource{path}\"");
                assert!(
                    challenge.starts_with("Bearer error=\"invalid_token\"")
                        && challenge.contains(&metadata),
                    "{challenge}"
                );
            }
        }
    }
}

#[tokio::test]
async fn section_5_1_a_session_goes_on_at_every_url_of_its_server() {
    let node = Node::with_default().await;
    let begun = node.begin_at(PLATFORM, "/mcp").await;
    let session = begun.header("mcp-session-id").to_owned();
    for path in [PLATFORM, WORKSPACE, PATH, "/mcp/", "/t/acme/mcp/"] {
        let body = rpc("ping", json!({})).to_string();
        let with = [("mcp-session-id", session.as_str())];
        let answer = node
            .send(node.request_at(path, "/mcp", "POST", &with, body))
            .await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }
}

#[tokio::test]
async fn section_5_1_without_a_default_server_the_url_answers_like_an_unknown_one() {
    let node = Node::start().await;
    let unknown = "/t/acme/nothing/mcp";
    for path in [WORKSPACE, PLATFORM, unknown] {
        node.seed(path, None);
    }
    let mut answers = Vec::new();
    for path in [WORKSPACE, PLATFORM, unknown] {
        let answer = node.begin_at(path, "/mcp").await;
        answers.push((answer.status, answer.body));
    }
    assert_eq!(answers[0].0, 404);
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));

    let mut challenges = Vec::new();
    for path in [WORKSPACE, PLATFORM, "/t/nobody/mcp"] {
        let request = Request::builder()
            .method("POST")
            .uri(path)
            .body(Body::empty())
            .unwrap();
        let answer = node.send(request).await;
        assert_eq!(answer.status, 401, "{path}");
        let ours = format!("resource{path}\"");
        let challenge = answer.header("www-authenticate").to_owned();
        challenges.push((answer.body, challenge.replace(&ours, "PATH")));
    }
    assert!(
        challenges.windows(2).all(|pair| pair[0] == pair[1]),
        "nothing is looked up: {challenges:?}"
    );
}

#[tokio::test]
async fn section_5_1_streams_end_where_the_url_leads_to_another_server() {
    let node = Node::with_default().await;
    let session = node.begin_at(WORKSPACE, "/t/acme/mcp").await;
    let session = session.header("mcp-session-id").to_owned();
    let open = async |path: &str| {
        let with = [("mcp-session-id", session.as_str())];
        let request = node.request_at(path, "/t/acme/mcp", "GET", &with, String::new());
        let response = node.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        let mut body = response.into_body();
        frame(&mut body).await.unwrap();
        frame(&mut body).await.unwrap();
        body
    };
    let mut at_workspace = open(WORKSPACE).await;
    let mut at_server = open(PATH).await;
    tell_tenant(&node.state, node.tenant).await;
    assert!(is_quiet(&mut at_workspace).await, "it leads where it led");
    let other = PublishedServer {
        id: Id::generate(),
        ..node.row(Vec::new())
    };
    node.seed(WORKSPACE, Some(node.built(other, &LimitSet::default())));
    tell_tenant(&node.state, node.tenant).await;
    while frame(&mut at_workspace).await.is_some() {}
    assert!(is_quiet(&mut at_server).await, "its own URL is as it was");

    // A token with less access than before closes its streams.
    let reach = Reach {
        workspace_tokens: false,
        ..Reach::default()
    };
    let target = Target::parse(PATH).unwrap();
    node.state.catalog.change_reach(node.tenant, &target, reach);
    tell_tenant(&node.state, node.tenant).await;
    while frame(&mut at_server).await.is_some() {}
}

#[tokio::test]
async fn o_1_the_older_transport_is_served_at_every_url_of_a_server() {
    let node = Node::with_default().await;
    for (path, messages) in [
        ("/sse", "/messages?sessionId="),
        ("/t/acme/sse", "/t/acme/messages?sessionId="),
    ] {
        let with = [("accept", "text/event-stream")];
        let request = node.request_at(path, "/mcp", "GET", &with, String::new());
        let response = node.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        let mut body = response.into_body();
        let told = frame(&mut body).await.unwrap();
        let begin = format!("event: endpoint\ndata: {messages}");
        assert!(told.starts_with(&begin), "{told}");
    }
}
