//! Rules for a client metadata document and for its URL (AUTH-C1, AUTH-C3). The input is text
//! alone; the fuzz target `client_document` uses this module too.

use super::{
    members::{about, redirect_uris, string, strings},
    names, strict_json,
};
use portolan_keys::{ClientKeys, InvalidKeys};
use portolan_model::client::AuthMethod;
use serde_json::{Map, Value, json};
use url::{Host, Url};

/// Why a URL or a document is refused. The text is for the page that the user sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unacceptable {
    /// The text cannot be the URL of a document or of keys.
    #[error("not an acceptable URL: {0}")]
    Url(&'static str),
    /// The document breaks a rule.
    #[error("the app's description is not acceptable: {0}")]
    Content(&'static str),
}

/// Checks the URL of a document (AUTH-C1). The text is used unchanged; a URL that a parser would
/// repair is refused.
pub fn check_url(text: &str) -> Result<Url, Unacceptable> {
    let fault = |why| Err(Unacceptable::Url(why));
    let Some(rest) = text.strip_prefix("https://") else {
        return fault("it does not begin with https");
    };
    if text.len() > 512 {
        return fault("it is longer than 512 characters");
    }
    if !text.bytes().all(|b| matches!(b, 0x21..=0x7e)) || text.contains('\\') {
        return fault("it has characters that do not belong in a URL");
    }
    if text.contains('#') {
        return fault("it has a fragment");
    }
    if text.contains('?') {
        return fault("it has a query");
    }
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    if authority.contains('@') {
        return fault("it has user information");
    }
    if path.is_empty() || path == "/" {
        return fault("it has no path");
    }
    let lower = path.to_ascii_lowercase().replace("%2e", ".");
    if lower
        .split('/')
        .any(|segment| segment == "." || segment == "..")
    {
        return fault("its path has dot segments");
    }
    let Ok(url) = Url::parse(text) else {
        return fault("it is not a URL");
    };
    let Some(Host::Domain(host)) = url.host() else {
        return fault("its host is an address");
    };
    if url.port().is_some() {
        return fault("it names a port");
    }
    let written = authority.strip_suffix(":443").unwrap_or(authority);
    if !written.eq_ignore_ascii_case(host) {
        return fault("its host is not written plainly");
    }
    if url.path() != path {
        return fault("its path is not written plainly");
    }
    Ok(url)
}

/// The contents of a valid document.
#[derive(Debug)]
pub(crate) struct Described {
    /// The name that people see.
    pub(crate) name: String,
    pub(crate) redirect_uris: Vec<String>,
    /// The grant types that this service supports.
    pub(crate) grant_types: Vec<String>,
    pub(crate) application_type: &'static str,
    pub(crate) auth_method: AuthMethod,
    /// The members that are stored.
    pub(crate) metadata: Map<String, Value>,
}

impl Described {
    /// Reads a document by the rules of AUTH-C3.
    pub(crate) fn read(client_id: &str, body: &[u8]) -> Result<Self, Unacceptable> {
        let document = strict_json::object(body).ok_or(Unacceptable::Content(
            "it is not a JSON object, repeats a name or is nested too deeply",
        ))?;
        let fault = Unacceptable::Content;
        if string(&document, "client_id") != Some(client_id) {
            return Err(fault("its client_id is not its address"));
        }
        if document.contains_key("client_secret")
            || document.contains_key("client_secret_expires_at")
        {
            return Err(fault("it contains a secret"));
        }
        let keys = keys_of(&document)?;
        let offers = strings(&document, "token_endpoint_auth_methods_supported");
        let offers = |word: &str| offers.as_ref().is_some_and(|list| list.contains(&word));
        let is_silent = !document.contains_key("token_endpoint_auth_methods_supported");
        let auth_method = match string(&document, "token_endpoint_auth_method") {
            Some("none") => AuthMethod::None,
            Some("private_key_jwt") if keys.is_some() => AuthMethod::PrivateKeyJwt,
            Some("private_key_jwt") if offers("none") => AuthMethod::None,
            Some("private_key_jwt") => {
                return Err(fault(
                    "it authenticates by private_key_jwt, but has neither jwks nor jwks_uri",
                ));
            }
            // Negotiated, the stronger method first (AUTH-C3).
            None if offers("private_key_jwt") && keys.is_some() => AuthMethod::PrivateKeyJwt,
            None if is_silent || offers("none") => AuthMethod::None,
            _ => {
                return Err(fault(
                    "its token_endpoint_auth_method cannot be used with a public document",
                ));
            }
        };
        let grant_types = match strings(&document, "grant_types") {
            None => vec!["authorization_code", "refresh_token"],
            Some(types) if types.contains(&"authorization_code") => types,
            Some(_) => return Err(fault("its grant_types lack authorization_code")),
        };
        let grant_types: Vec<String> = grant_types
            .into_iter()
            .filter(|word| ["authorization_code", "refresh_token"].contains(word))
            .map(str::to_owned)
            .collect();
        let redirect_uris = redirect_uris(&document).map_err(fault)?;
        let native = redirect_uris.iter().any(|uri| !uri.starts_with("https:"));
        let name = string(&document, "client_name")
            .and_then(names::clean)
            .unwrap_or_else(|| "Unnamed client".to_owned());
        let mut metadata = about(&document);
        metadata.insert("client_name".to_owned(), json!(name));
        metadata.insert("redirect_uris".to_owned(), json!(redirect_uris));
        metadata.insert("grant_types".to_owned(), json!(grant_types));
        metadata.insert(
            "token_endpoint_auth_method".to_owned(),
            json!(auth_method.as_str()),
        );
        if auth_method == AuthMethod::PrivateKeyJwt
            && let Some((member, value)) = keys
        {
            metadata.insert(member.to_owned(), value);
        }
        Ok(Self {
            name,
            redirect_uris,
            grant_types,
            application_type: if native { "native" } else { "web" },
            auth_method,
            metadata,
        })
    }
}

/// The member that names the document's keys, checked: `jwks`, else `jwks_uri`, which may be on
/// another host (AUTH-C3). A private key in `jwks` invalidates the document, whether its client
/// uses keys or not. Keys of an unsupported type are ignored.
fn keys_of(document: &Map<String, Value>) -> Result<Option<(&'static str, Value)>, Unacceptable> {
    let uri = match document.get("jwks_uri") {
        None => None,
        Some(uri) => {
            let text = uri
                .as_str()
                .ok_or(Unacceptable::Content("its jwks_uri is not a URL"))?;
            check_url(text)?;
            Some(("jwks_uri", uri.clone()))
        }
    };
    match document.get("jwks") {
        None => Ok(uri),
        Some(jwks) => match ClientKeys::read(jwks) {
            Ok(_) => Ok(Some(("jwks", jwks.clone()))),
            Err(InvalidKeys::Secret) => Err(Unacceptable::Content(
                "it contains a key that is not public",
            )),
            Err(InvalidKeys::Form | InvalidKeys::NoneUsable) => Ok(uri),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://app.example/oauth/client.json";

    fn read(change: impl FnOnce(&mut Map<String, Value>)) -> Result<Described, Unacceptable> {
        let mut document = json!({
            "client_id": URL, "client_name": "App", "redirect_uris": ["http://localhost/callback"],
            "grant_types": ["authorization_code", "refresh_token"], "token_endpoint_auth_method": "none"
        });
        change(document.as_object_mut().unwrap());
        Described::read(URL, document.to_string().as_bytes())
    }

    #[test]
    fn cases_77_and_83_only_plain_https_urls_are_client_ids() {
        for good in [
            URL,
            "https://vscode.dev/oauth/client-metadata.json",
            "https://app.example:443/x",
        ] {
            assert!(check_url(good).is_ok(), "{good}");
        }
        for bad in [
            "http://app.example/x",
            "https://app.example:8443/x",
            "https://u@app.example/x",
            "https://app.example/x#y",
            "https://app.example/a/../x",
            "https://app.example/a/%2e%2E/x",
            "https://app.example/./x",
            "https://app.example/x?y",
            "https://app.example",
            "https://app.example/",
            "https://127.0.0.1/x",
            "https://2130706433/x",
            "https://0x7f.1/x",
            "https://[::1]/x",
            "https://0x7f000001/x",
            "https://0177.0.0.1/x",
            "https://[::ffff:10.0.0.1]/x",
            "https://93.184.216.34/x",
            "https://app.example\\x/y",
            "https://app%2eexample/x",
            "https:///x",
            "https://app.example/a\"b",
            "https://app.example/<x>",
            "https://app.example/{x}",
        ] {
            assert!(matches!(check_url(bad), Err(Unacceptable::Url(_))), "{bad}");
        }
        assert!(check_url(&format!("https://app.example/{}", "x".repeat(512))).is_err());
    }

    #[test]
    fn c3_a_good_document_describes_a_public_client() {
        let described = read(|_| {}).unwrap();
        assert_eq!(described.name, "App");
        assert_eq!(described.application_type, "native");
        let defaults = read(|document| drop(document.remove("grant_types"))).unwrap();
        assert_eq!(
            defaults.grant_types,
            ["authorization_code", "refresh_token"]
        );
    }

    #[test]
    fn cases_81_and_82_bad_documents_are_refused() {
        type Change = fn(&mut Map<String, Value>);
        let changes: [(&str, Change); 9] = [
            ("slash", |d| {
                drop(d.insert("client_id".into(), json!(format!("{URL}/"))))
            }),
            ("case", |d| {
                drop(d.insert("client_id".into(), json!(URL.to_uppercase())))
            }),
            ("secret", |d| {
                drop(d.insert("client_secret".into(), json!("x")))
            }),
            ("symmetric", |d| {
                drop(d.insert("jwks".into(), json!({"keys": [{"kty": "oct", "k": "x"}]})))
            }),
            ("private", |d| {
                drop(d.insert("jwks".into(), json!({"keys": [{"kty": "EC", "d": "x"}]})))
            }),
            ("basic", |d| {
                drop(d.insert(
                    "token_endpoint_auth_method".into(),
                    json!("client_secret_basic"),
                ))
            }),
            ("key only", |d| {
                drop(d.insert(
                    "token_endpoint_auth_method".into(),
                    json!("private_key_jwt"),
                ))
            }),
            ("grant", |d| {
                drop(d.insert("grant_types".into(), json!(["refresh_token"])))
            }),
            ("redirect", |d| {
                drop(d.insert("redirect_uris".into(), json!(["javascript:alert(1)"])))
            }),
        ];
        for (name, change) in changes {
            assert!(
                matches!(read(change), Err(Unacceptable::Content(_))),
                "{name}"
            );
        }
    }

    /// REVIEW-S-15: as at registration.
    #[test]
    fn s15_links_of_a_document_are_kept_over_https_only() {
        let described = read(|d| {
            for (member, uri) in [
                ("client_uri", "javascript:alert(1)"),
                ("tos_uri", "http://app.example/tos"),
                ("policy_uri", "https://app.example/policy"),
            ] {
                d.insert(member.into(), json!(uri));
            }
        });
        let kept = described.unwrap().metadata;
        let has = ["client_uri", "tos_uri", "policy_uri"].map(|member| kept.contains_key(member));
        assert_eq!(has, [false, false, true], "{kept:?}");
    }

    #[test]
    fn c3_a_client_that_can_do_without_a_key_is_taken_at_its_word() {
        let both = json!(["none", "private_key_jwt"]);
        assert!(
            read(|d| {
                d.insert(
                    "token_endpoint_auth_method".into(),
                    json!("private_key_jwt"),
                );
                d.insert("token_endpoint_auth_methods_supported".into(), both.clone());
            })
            .is_ok()
        );
        assert!(
            read(|d| {
                d.remove("token_endpoint_auth_method");
                d.insert(
                    "token_endpoint_auth_methods_supported".into(),
                    json!(["private_key_jwt"]),
                );
            })
            .is_err()
        );
    }

    #[test]
    fn c3_keys_of_no_use_do_not_spoil_the_document_of_a_public_client() {
        for jwks in [
            json!({"keys": []}),
            json!({"keys": [{"kty": "RSA", "n": "AQ", "e": "AQAB"}]}),
            json!({}),
        ] {
            let described = read(|d| drop(d.insert("jwks".into(), jwks.clone()))).unwrap();
            assert_eq!(described.auth_method, AuthMethod::None, "{jwks}");
            assert!(described.metadata.get("jwks").is_none());
            assert!(
                read(|d| {
                    let method = json!("private_key_jwt");
                    d.insert("jwks".into(), jwks.clone());
                    d.insert("token_endpoint_auth_method".into(), method);
                })
                .is_err(),
                "{jwks}"
            );
        }
        let secret = json!({"kty": "EC", "d": "x"});
        assert!(read(|d| drop(d.insert("jwks".into(), secret))).is_err());
    }
}
