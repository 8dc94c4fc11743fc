//! The guards, in the order of MCP-E-1.

use crate::wire::*;

#[tokio::test]
async fn e_1_an_unknown_server_without_a_token_is_answered_like_a_known_one() {
    let node = Node::start().await;
    let mut answers = Vec::new();
    for path in [PATH, "/t/nobody/nothing/mcp"] {
        for verb in ["POST", "GET", "DELETE"] {
            let request = Request::builder()
                .method(verb)
                .uri(path)
                .body(Body::empty())
                .unwrap();
            let answer = node.send(request).await;
            assert_eq!(answer.status, 401);
            let challenge = answer.header("www-authenticate").replace(path, "PATH");
            assert_eq!(
                challenge,
                format!(
                    "Bearer resource_metadata=\"{ISSUER}/.well-known/oauth-protected-resourcePATH\", scope=\"mcp\""
                )
            );
            answers.push((answer.body, challenge));
        }
    }
    assert!(
        answers.windows(2).all(|pair| pair[0] == pair[1]),
        "README point 5"
    );
}

#[tokio::test]
async fn point_5_a_good_token_of_somebody_else_finds_nothing() {
    let node = Node::start().await;
    node.seed("/t/acme/other/mcp", None);
    let mut stranger = node.claims();
    stranger.tid = Id::generate();
    // The result of a load for a tenant without the slug of the path.
    node.state
        .catalog
        .seed(stranger.tid, &Target::parse(PATH).unwrap(), &[], None);
    let foreign = node
        .post(
            &[("authorization", &node.sign(&stranger))],
            &initialize("2025-11-25"),
        )
        .await;
    assert_eq!((foreign.status, foreign.code()), (404, -32600));
    let mut wide = node.claims();
    wide.aud = format!("{ISSUER}/t/acme/mcp");
    let mut request = node.request(
        "POST",
        &[("authorization", &node.sign(&wide))],
        initialize("2025-11-25").to_string(),
    );
    *request.uri_mut() = "/t/acme/other/mcp".parse().unwrap();
    let unknown = node.send(request).await;
    assert_eq!((unknown.status, unknown.body), (404, foreign.body), "alike");
}

#[tokio::test]
async fn ar_12_a_token_for_a_sibling_server_is_not_accepted() {
    let node = Node::start().await;
    for (aud, status) in [
        ("/t/acme/other/mcp", 401),
        ("/t/beta/pets/mcp", 401),
        ("/t/acme/mcp", 200),
        ("/mcp", 200),
        ("/t/acme-old/pets/mcp", 200),
        ("", 401),
    ] {
        let claims = AccessClaims {
            aud: format!("{ISSUER}{aud}"),
            ..node.claims()
        };
        let answer = node
            .post(
                &[("authorization", &node.sign(&claims))],
                &initialize("2025-11-25"),
            )
            .await;
        assert_eq!(answer.status, status, "{aud:?}");
        if status == 401 {
            assert!(
                answer
                    .header("www-authenticate")
                    .starts_with("Bearer error=\"invalid_token\", error_description=\"")
            );
        }
    }
}

#[tokio::test]
async fn ar_5_case_118_a_token_without_the_scope_gets_403_with_the_scope_it_needs() {
    let node = Node::start().await;
    let claims = AccessClaims {
        scope: "offline_access".to_owned(),
        ..node.claims()
    };
    let answer = node
        .post(
            &[("authorization", &node.sign(&claims))],
            &initialize("2025-11-25"),
        )
        .await;
    assert_eq!(answer.status, 403);
    assert!(
        answer
            .header("www-authenticate")
            .starts_with("Bearer error=\"insufficient_scope\", scope=\"mcp\", resource_metadata=")
    );
}

#[tokio::test]
async fn ar_11_case_114_two_credentials_are_400_and_a_huge_one_is_401() {
    let node = Node::start().await;
    let mut twice = node.request("POST", &[], initialize("2025-11-25").to_string());
    twice
        .headers_mut()
        .append("authorization", node.token().parse().unwrap());
    assert_eq!(node.send(twice).await.status, 400);
    let huge = format!("Bearer {}", "x".repeat(5 * 1024));
    let answer = node
        .post(&[("authorization", &huge)], &initialize("2025-11-25"))
        .await;
    assert_eq!(answer.status, 401);
    assert!(
        answer
            .header("www-authenticate")
            .starts_with("Bearer error=\"invalid_token\"")
    );
}

#[tokio::test]
async fn case_104_a_token_whose_tenant_is_not_the_paths_opens_nothing() {
    let node = Node::start().await;
    let mut foreign = node.claims();
    foreign.tid = Id::generate();
    // `aud` is right and the signature is ours; the tenant of the token does not have the slug of
    // the path. A valid token of another tenant gets 404 and not 401 (README point 5): with another
    // token its holder would find no server either.
    node.state
        .catalog
        .seed(foreign.tid, &Target::parse(PATH).unwrap(), &[], None);
    let answer = node
        .post(
            &[("authorization", &node.sign(&foreign))],
            &initialize("2025-11-25"),
        )
        .await;
    assert_eq!(
        (answer.status, answer.code()),
        (404, -32600),
        "as for a server that is not there: nothing is told of acme"
    );
    assert!(answer.headers.get("www-authenticate").is_none());
}

#[tokio::test]
async fn ar_1_expired_forged_and_revoked_tokens_are_401_also_when_they_were_good_before() {
    let node = Node::start().await;
    let token = node.token();
    let good = async || {
        node.post(&[("authorization", &token)], &initialize("2025-11-25"))
            .await
    };
    assert_eq!(good().await.status, 200);
    let forged = format!("{token}x");
    assert_eq!(
        node.post(&[("authorization", &forged)], &initialize("2025-11-25"))
            .await
            .status,
        401
    );
    node.revocations.insert(
        portolan_cluster::Revocation::Grant(node.grant),
        NOW + time::Duration::HOUR,
    );
    let revoked = good().await;
    assert_eq!(revoked.status, 401);
    assert!(revoked.header("www-authenticate").contains("revoked"));
    node.revocations.purge(NOW + time::Duration::HOUR);
    node.clock.advance(time::Duration::seconds(3_640));
    let expired = good().await;
    assert_eq!(
        expired.status, 401,
        "the remembered token ends with its exp"
    );
    assert!(expired.header("www-authenticate").contains("has expired"));
}

#[tokio::test]
async fn ar_11_two_credentials_are_400_and_one_in_the_query_is_none() {
    let node = Node::start().await;
    let token = node.token();
    let two = node
        .post(
            &[("authorization", &token), ("Authorization", &token)],
            &initialize("2025-11-25"),
        )
        .await;
    assert_eq!(two.status, 400);
    let uri = format!(
        "{PATH}?access_token={}",
        token.trim_start_matches("Bearer ")
    );
    let query = node
        .send(
            Request::builder()
                .method("POST")
                .uri(uri)
                .body(Body::empty())
                .unwrap(),
        )
        .await;
    assert_eq!(query.status, 401, "AUTH-K5");
    assert!(!query.header("www-authenticate").contains("error"));
}

#[tokio::test]
async fn t_2_sd_12_sd_13_a_foreign_origin_is_refused_before_anything_is_looked_at() {
    let node = Node::start().await;
    for origin in ["https://evil.example", "null", "http://mcp.example.com"] {
        for verb in ["POST", "GET", "DELETE", "OPTIONS", "PUT"] {
            let request = Request::builder()
                .method(verb)
                .uri(PATH)
                .header("origin", origin);
            let answer = node.send(request.body(Body::empty()).unwrap()).await;
            assert_eq!(answer.status, 403, "{verb} from {origin}");
            assert!(!answer.has(header::ACCESS_CONTROL_ALLOW_ORIGIN));
        }
    }
    let own = node
        .post(&[("origin", ISSUER)], &initialize("2025-11-25"))
        .await;
    assert_eq!(
        (own.status, own.header("access-control-allow-origin")),
        (200, ISSUER)
    );
}

#[tokio::test]
async fn t_5_sd_21_other_verbs_are_405_with_allow_before_the_token_is_asked_for() {
    let node = Node::start().await;
    for verb in ["PUT", "PATCH", "HEAD", "TRACE"] {
        let answer = node
            .send(
                Request::builder()
                    .method(verb)
                    .uri(PATH)
                    .body(Body::empty())
                    .unwrap(),
            )
            .await;
        assert_eq!(
            (answer.status, answer.header("allow")),
            (405, "POST, GET, DELETE, OPTIONS"),
            "{verb}"
        );
    }
}

#[tokio::test]
async fn t_11_a_preflight_needs_no_token() {
    let node = Node::start().await;
    let request = Request::builder()
        .method("OPTIONS")
        .uri(PATH)
        .header("origin", ISSUER)
        .header("access-control-request-method", "POST")
        .header(
            "access-control-request-headers",
            "authorization, mcp-param-pet, x-other",
        );
    let answer = node.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status, 204);
    assert_eq!(
        answer.header("access-control-allow-headers"),
        "authorization, mcp-param-pet"
    );
    assert!(
        answer
            .header("access-control-expose-headers")
            .contains("Mcp-Session-Id")
    );
}

#[tokio::test]
async fn e_1_type_then_accept_then_size_then_parse_then_shape() {
    let node = Node::start().await;
    let (text, html) = (("content-type", "text/plain"), ("accept", "text/html"));
    let big = "x".repeat(4 * 1024 * 1024 + 1);
    let status = |headers: &[(&str, &str)], body: &str| {
        let request = node.request("POST", headers, body.to_owned());
        let node = &node;
        async move { node.send(request).await }
    };
    assert_eq!(
        status(&[text, html], &big).await.status,
        415,
        "T-6 before T-7"
    );
    assert_eq!(status(&[html], &big).await.status, 406, "T-7 before size");
    assert_eq!(status(&[], &big).await.status, 413, "MCP-J-19");
    let parse = status(&[], "{").await;
    assert_eq!((parse.status, parse.code()), (400, -32700));
    assert!(parse.json().get("id").is_none(), "MCP-J-7");
    let shape = status(&[], "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}").await;
    assert_eq!((shape.status, shape.code()), (400, -32600), "MCP-J-2");
    let unsessioned = status(&[], "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}").await;
    assert_eq!(
        (unsessioned.status, unsessioned.code()),
        (400, -32600),
        "MCP-E-5"
    );
    assert_eq!(unsessioned.json()["id"], 7);
    let no_token = node.request("POST", &[("authorization", ""), text, html], big.clone());
    assert_eq!(
        node.send(no_token).await.status,
        401,
        "the token before the body"
    );
}

#[tokio::test]
async fn e_15_a_server_that_cannot_be_looked_up_is_503_and_never_404() {
    let node = Node::start().await;
    let mut request = node.request("POST", &[], initialize("2025-11-25").to_string());
    *request.uri_mut() = "/t/acme/unseen/mcp".parse().unwrap();
    let answer = node.send(request).await;
    assert_eq!((answer.status, answer.code()), (503, -32017), "Appendix B");
    assert_eq!(
        answer.json()["error"]["data"],
        json!({"reason": "registry"})
    );
    assert!((1..=5).contains(&answer.header("retry-after").parse::<u64>().unwrap()));
    // The message was not read, but its revision is known: it reserves the codes of STREAM-B
    // (MCP-ER-13).
    let version = ("mcp-protocol-version", "2026-07-28");
    let mut modern = node.request("POST", &[version], String::new());
    *modern.uri_mut() = "/t/acme/unseen/mcp".parse().unwrap();
    let modern = node.send(modern).await;
    assert_eq!((modern.status, modern.code()), (503, -32603));
    // Postgres is away after a change: the last good catalogue is served (STREAM-17.4).
    node.state.catalog.outdate(None);
    assert_eq!(node.post(&[], &initialize("2025-11-25")).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn t_14_over_the_limit_is_429_with_the_id_and_the_time_to_wait() {
    let node = Node::with(McpConfig {
        client_requests_per_minute: 2,
        ..McpConfig::default()
    })
    .await;
    let session = node.initialize("2025-11-25").await;
    assert_eq!(node.call(&session, "ping", json!({})).await.status, 200);
    let over = node.call(&session, "ping", json!({})).await;
    assert_eq!(
        (over.status, over.code(), over.json()["id"].clone()),
        (429, -32014, json!(1))
    );
    assert_eq!(over.header("retry-after"), "30");
    assert_eq!(
        node.counted(),
        [(LimitName::ClientRequests, 1)],
        "REVIEW-F1"
    );
    assert_eq!(
        over.json()["error"]["data"],
        json!({"reason": "principal", "retryAfterMs": 30_000})
    );
    node.clock.advance(30 * time::Duration::SECOND);
    tokio::time::advance(Duration::from_secs(30)).await;
    assert_eq!(node.call(&session, "ping", json!({})).await.status, 200);
}

#[tokio::test]
async fn e3_metadata_is_served_for_any_well_formed_path_and_not_at_the_root() {
    let node = Node::start().await;
    let get = |path: &str| {
        let request = Request::builder()
            .uri(format!("/.well-known/oauth-protected-resource{path}"))
            .header("origin", "https://any.example");
        node.send(request.body(Body::empty()).unwrap())
    };
    for path in [
        PATH,
        "/t/acme/pets/mcp/",
        "/t/no-such-tenant/at-all/mcp",
        "/mcp",
    ] {
        let answer = get(path).await;
        assert_eq!(
            (answer.status, answer.header("cache-control")),
            (200, "public, max-age=300")
        );
        assert_eq!(answer.header("access-control-allow-origin"), "*");
        assert_eq!(answer.json()["resource"], format!("{ISSUER}{path}"));
    }
    for path in ["", "/", "/t/acme", "/elsewhere"] {
        let answer = get(path).await;
        assert_eq!(
            (answer.status, answer.json()),
            (404, json!({"error": "not_found"})),
            "{path:?}"
        );
    }
}

#[tokio::test]
async fn e3_both_spellings_of_the_url_are_served_without_a_redirect() {
    let node = Node::start().await;
    let slashed = format!("{PATH}/");
    node.seed(&slashed, None);
    let request = Request::builder()
        .method("POST")
        .uri(&slashed)
        .body(Body::empty())
        .unwrap();
    let answer = node.send(request).await;
    assert_eq!(answer.status, 401);
    assert!(
        answer
            .header("www-authenticate")
            .contains("/t/acme/pets/mcp/\"")
    );
    assert!(answer.has(AUTHENTICATE));
}

#[tokio::test]
async fn j_19_a_client_that_is_still_sending_gets_to_read_the_refusal() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let node = Node::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = node.router.clone();
    TaskTracker::new().spawn(async move { axum::serve(listener, router).await });
    let size = 6 * 1024 * 1024;
    for (token, status) in [(node.token(), "413"), ("Bearer nonsense".to_owned(), "401")] {
        let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST {PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        socket.write_all(&vec![b' '; size]).await.unwrap();
        let mut answer = [0; 12];
        socket.read_exact(&mut answer).await.unwrap();
        assert_eq!(
            std::str::from_utf8(&answer).unwrap(),
            format!("HTTP/1.1 {status}")
        );
    }
}

#[tokio::test]
async fn case_136_a_node_that_is_cut_off_sends_every_token_away_and_no_client_to_sign_in() {
    let node = Node::start().await;
    let remembered = node.token();
    let begin = initialize("2025-11-25");
    let with = [("authorization", remembered.as_str())];
    assert_eq!(node.post(&with, &begin).await.status, 200);
    let gone = node.sign(&AccessClaims {
        exp: NOW.unix_timestamp() - 600,
        ..node.claims()
    });
    let key = format!(
        "Bearer {}",
        portolan_keys::SecretToken::generate(portolan_keys::TokenForm::ApiKey)
            .unwrap()
            .expose()
    );
    node.revocations.cut_off(true);
    for token in [
        remembered.as_str(),
        node.token().as_str(),
        gone.as_str(),
        key.as_str(),
        "bearer garbage",
        "Bearer  a.b.c",
    ] {
        for verb in ["POST", "GET", "DELETE"] {
            let request = node.request(verb, &[("authorization", token)], begin.to_string());
            let answer = node.send(request).await;
            assert_eq!(
                (answer.status, answer.code()),
                (503, -32017),
                "{verb} {token}"
            );
            let seconds: u64 = answer.header("retry-after").parse().unwrap();
            assert!((1..=5).contains(&seconds), "{seconds}");
            assert!(!answer.has(AUTHENTICATE));
        }
    }
    // A client without a token learns where to get one.
    let request = node.request("POST", &[("authorization", "")], begin.to_string());
    let answer = node.send(request).await;
    assert!(answer.status == 401 && answer.has(AUTHENTICATE));
    node.revocations.cut_off(false);
    assert_eq!(node.post(&with, &begin).await.status, 200);
    let answer = node.post(&[("authorization", &gone)], &begin).await;
    assert_eq!(answer.status, 401, "judged again");
}
