//! Discovery of authorization servers that behave, and of those that do not (MCP-AU-2…MCP-AU-5,
//! MCP-AU-15, MCP-AU-16).

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use axum::{
    Router,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{StatusCode, Uri};
use portolan_net::egress::{AllowedDestination, Egress, EgressPolicy};
use portolan_upstream::oauth::{Challenge, Discovered, OauthError, discover, discover_issuer};
use serde_json::{Value, json};
use url::Url;

/// Documents by path; everything else is 404.
struct Site {
    address: SocketAddr,
    egress: Egress,
}

type Documents = Arc<BTreeMap<String, Value>>;

async fn serve(State(documents): State<Documents>, uri: Uri) -> Response {
    match documents.get(uri.path()) {
        Some(document) => axum::Json(document.clone()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

impl Site {
    async fn with(documents: impl FnOnce(&str) -> Vec<(&'static str, Value)>) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let named = documents(&format!("http://{address}"));
        let documents: BTreeMap<String, Value> = named
            .into_iter()
            .map(|(path, document)| (path.to_owned(), document))
            .collect();
        let router = Router::new()
            .fallback(serve)
            .with_state(Arc::new(documents));
        #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
        tokio::spawn(async move { axum::serve(listener, router).await });
        let egress = Egress::new(EgressPolicy {
            allow: vec![AllowedDestination::address(address.ip(), address.port())],
            ..EgressPolicy::default()
        });
        Self {
            address,
            egress: egress.unwrap(),
        }
    }

    async fn discover(&self) -> Result<Discovered, OauthError> {
        let endpoint = Url::parse(&format!("http://{}/team/mcp", self.address)).unwrap();
        discover(&self.egress, &endpoint, &Challenge::default()).await
    }
}

fn metadata(issuer: &str, origin: &str) -> Value {
    json!({
        "issuer": issuer, "authorization_endpoint": format!("{origin}/authorize"), "token_endpoint": format!("{origin}/token"),
        "code_challenge_methods_supported": ["S256"],
    })
}

const BESIDE: &str = "/.well-known/oauth-protected-resource/team/mcp";
const ROOT: &str = "/.well-known/oauth-protected-resource";
const SERVER: &str = "/.well-known/oauth-authorization-server";

fn resource(origin: &str, issuer: &str) -> Value {
    json!({ "resource": format!("{origin}/team/mcp"), "authorization_servers": [issuer] })
}

#[tokio::test]
async fn au_2_and_au_4_metadata_is_found_at_every_place_where_it_may_be() {
    let found = Site::with(|origin| {
        vec![
            (BESIDE, resource(origin, origin)),
            (SERVER, metadata(origin, origin)),
        ]
    });
    let found = found.await.discover().await.unwrap();
    assert!(found.resource.unwrap().ends_with("/team/mcp"));

    // At the root, and an issuer with a path: the third place of OpenID discovery.
    let found = Site::with(|origin| {
        let issuer = format!("{origin}/tenant");
        let document = json!({ "resource": origin, "authorization_servers": [issuer] });
        vec![
            (ROOT, document),
            (
                "/tenant/.well-known/openid-configuration",
                metadata(&issuer, origin),
            ),
        ]
    });
    let found = found.await.discover().await.unwrap();
    assert!(found.server.issuer.ends_with("/tenant"));

    let found = Site::with(|origin| {
        let issuer = format!("{origin}/tenant");
        vec![
            (BESIDE, resource(origin, &issuer)),
            (
                "/.well-known/oauth-authorization-server/tenant",
                metadata(&issuer, origin),
            ),
        ]
    });
    assert!(found.await.discover().await.is_ok());
}

#[tokio::test]
async fn au_3_a_server_of_2025_03_26_is_its_own_authorization_server() {
    let site = Site::with(|_| Vec::new()).await;
    let found = site.discover().await.unwrap();
    let origin = format!("http://{}", site.address);
    assert_eq!(found.resource, None, "AU-8 begins with 2025-06-18");
    assert_eq!(found.server.token_endpoint, format!("{origin}/token"));
    assert_eq!(
        found.server.registration_endpoint,
        Some(format!("{origin}/register"))
    );

    let site = Site::with(|origin| vec![(SERVER, metadata(origin, origin))]).await;
    assert!(site.discover().await.is_ok());
    let site = Site::with(|origin| vec![(SERVER, metadata("https://evil.example", origin))]).await;
    assert!(matches!(
        site.discover().await,
        Err(OauthError::OtherIssuer)
    ));
}

#[tokio::test]
async fn au_2_to_au_5_what_speaks_for_others_or_lacks_pkce_is_refused() {
    let other_resource = Site::with(|origin| {
        let document =
            json!({ "resource": "https://victim.example/mcp", "authorization_servers": [origin] });
        vec![(BESIDE, document), (SERVER, metadata(origin, origin))]
    });
    let refused = other_resource.await.discover().await;
    assert!(matches!(refused, Err(OauthError::OtherResource)));

    let other_issuer = Site::with(|origin| {
        let with_slash = format!("{origin}/");
        vec![
            (BESIDE, resource(origin, origin)),
            (SERVER, metadata(&with_slash, origin)),
        ]
    });
    let refused = other_issuer.await.discover().await;
    assert!(
        matches!(refused, Err(OauthError::OtherIssuer)),
        "byte for byte"
    );

    for methods in [Value::Null, json!(["plain"])] {
        let no_pkce = Site::with(|origin| {
            let mut document = metadata(origin, origin);
            document["code_challenge_methods_supported"] = methods.clone();
            vec![(BESIDE, resource(origin, origin)), (SERVER, document)]
        });
        let refused = no_pkce.await.discover().await;
        assert!(matches!(refused, Err(OauthError::NoPkce)), "{methods}");
    }
}

#[tokio::test]
async fn au_15_and_au_16_addresses_inside_and_schemes_that_are_no_web_are_never_used() {
    for inside in [
        "http://169.254.169.254",
        "https://10.0.0.1",
        "https://[::1]",
        "file:///etc/passwd",
        "javascript:alert(1)",
    ] {
        let site = Site::with(|origin| vec![(BESIDE, resource(origin, inside))]).await;
        let refused = site.discover().await;
        assert!(
            matches!(
                refused,
                Err(OauthError::UnsafeAddress | OauthError::Egress(_))
            ),
            "issuer {inside}"
        );
        for member in [
            "authorization_endpoint",
            "token_endpoint",
            "registration_endpoint",
            "revocation_endpoint",
        ] {
            let site = Site::with(|origin| {
                let mut document = metadata(origin, origin);
                document[member] = json!(inside);
                vec![(BESIDE, resource(origin, origin)), (SERVER, document)]
            });
            let refused = site.await.discover().await;
            assert!(
                matches!(
                    refused,
                    Err(OauthError::UnsafeAddress | OauthError::Egress(_))
                ),
                "{member} {inside}"
            );
        }
        let site = Site::with(|_| Vec::new()).await;
        let named = Challenge {
            resource_metadata: Url::parse(inside).ok(),
            ..Challenge::default()
        };
        let endpoint = Url::parse(&format!("http://{}/team/mcp", site.address)).unwrap();
        let refused = discover(&site.egress, &endpoint, &named).await;
        assert!(
            matches!(
                refused,
                Err(OauthError::UnsafeAddress | OauthError::Egress(_))
            ),
            "challenge {inside}"
        );
    }
}

#[tokio::test]
async fn au_4_and_au_5_an_issuer_that_somebody_names_for_an_api_says_the_rest_itself() {
    let site = Site::with(|origin| {
        let silent = |path: &str| {
            let mut document = metadata(&format!("{origin}{path}"), origin);
            let members = document.as_object_mut().unwrap();
            members.remove("code_challenge_methods_supported");
            document
        };
        let mut plain = metadata(&format!("{origin}/plain"), origin);
        plain["code_challenge_methods_supported"] = json!(["plain"]);
        let mut tokens_only = silent("/tokens");
        let members = tokens_only.as_object_mut().unwrap();
        members.remove("authorization_endpoint");
        vec![
            (SERVER, metadata(origin, origin)),
            (
                "/.well-known/openid-configuration/silent",
                silent("/silent"),
            ),
            ("/.well-known/oauth-authorization-server/plain", plain),
            (
                "/.well-known/oauth-authorization-server/tokens",
                tokens_only,
            ),
        ]
    })
    .await;
    let issuer = |path: &str| format!("http://{}{path}", site.address);
    let ask = async |path: &str| discover_issuer(&site.egress, &issuer(path)).await;
    let found = ask("").await.unwrap();
    assert_eq!(found.issuer, issuer(""));
    assert!(!found.is_nameless);
    assert!(
        ask("/silent").await.is_ok(),
        "a server that does not speak of PKCE may know it"
    );
    assert!(matches!(ask("/plain").await, Err(OauthError::NoPkce)));
    assert!(matches!(
        ask("/tokens").await,
        Err(OauthError::Unusable("metadata"))
    ));
    assert!(matches!(ask("/other").await, Err(OauthError::NotFound)));
    assert!(
        matches!(ask("/").await, Err(OauthError::OtherIssuer)),
        "byte for byte"
    );
    for unsafe_address in ["http://as.example", "ftp://as.example", "as.example"] {
        let refused = discover_issuer(&site.egress, unsafe_address).await;
        assert!(matches!(refused, Err(OauthError::UnsafeAddress)));
    }
}
