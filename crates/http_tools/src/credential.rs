//! What opens an API: the kinds, their check, their hint, and how they are put on a request.

use std::{borrow::Cow, fmt};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use portolan_net::secrets::Secrets;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::parameter_style;

/// Where an API key travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyPlace {
    /// A header.
    Header,
    /// The query.
    Query,
    /// A cookie.
    Cookie,
}

/// How an OAuth client names itself at the token endpoint (RFC 6749 §2.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    /// HTTP Basic.
    #[default]
    Basic,
    /// In the form body.
    Post,
}

/// A header of the kind `headers`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CredentialHeader {
    /// Name.
    pub name: String,
    /// Secret value.
    pub value: String,
}

/// A credential. Its JSON is what is sealed at rest; `Debug` shows the kind only.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Credential {
    /// One key.
    ApiKey {
        /// Where it travels.
        #[serde(rename = "in")]
        place: KeyPlace,
        /// Name of the header, query parameter or cookie.
        name: String,
        /// The key.
        value: String,
    },
    /// `Authorization: Bearer …`
    Bearer {
        /// The token.
        token: String,
    },
    /// `Authorization: Basic …` (RFC 7617)
    Basic {
        /// User name, without a colon.
        username: String,
        /// Password, may be empty.
        password: String,
    },
    /// Any headers.
    Headers {
        /// At least one.
        headers: Vec<CredentialHeader>,
    },
    /// OAuth 2.0 client credentials (RFC 6749 §4.4).
    OauthClientCredentials {
        /// Token endpoint.
        token_url: String,
        /// Client id.
        client_id: String,
        /// Client secret.
        client_secret: String,
        /// Scopes, separated by spaces.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<String>,
        /// How the client names itself.
        #[serde(default)]
        auth: ClientAuth,
    },
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credential({})", self.kind())
    }
}

impl fmt::Debug for CredentialHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CredentialHeader({})", self.name)
    }
}

/// A credential that cannot work, with the field that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InvalidCredential {
    /// Field of the credential's JSON.
    pub field: &'static str,
    /// What to do.
    pub message: String,
}

/// A credential with the name under which its OAuth token may be cached. The name changes whenever
/// the credential does.
#[derive(Debug, Clone)]
pub struct CredentialSlot {
    pub(crate) key: String,
    pub(crate) credential: Credential,
    /// The credential's, computed once: each answer is searched for them.
    secrets: Secrets,
    /// The header of a credential that is one and the same on every request.
    header: Option<(HeaderName, HeaderValue)>,
}

/// Headers that frame a message or name its target: a credential must not set them.
const REFUSED_HEADERS: [&str; 10] = [
    "host",
    "content-length",
    "content-type",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "expect",
    "keep-alive",
];

impl Credential {
    /// The word of the contract.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::ApiKey { .. } => "api_key",
            Self::Bearer { .. } => "bearer",
            Self::Basic { .. } => "basic",
            Self::Headers { .. } => "headers",
            Self::OauthClientCredentials { .. } => "oauth_client_credentials",
        }
    }

    /// Trims what people paste around secrets, and refuses what no request could carry (MCP-AB-44).
    pub fn checked(mut self) -> Result<Self, InvalidCredential> {
        match &mut self {
            Self::ApiKey { place, name, value } => {
                tidy(name);
                tidy(value);
                api_key(*place, name, value)?;
            }
            Self::Bearer { token } => {
                tidy(token);
                // People copy the whole header.
                if let Some(bare) = token
                    .get(..7)
                    .filter(|p| p.eq_ignore_ascii_case("bearer "))
                    .map(|_| token[7..].trim().to_owned())
                {
                    *token = bare;
                }
                secret("token", token)?;
            }
            Self::Basic { username, password } => basic(username, password)?,
            Self::Headers { headers } => {
                if headers.is_empty() || headers.len() > 20 {
                    return invalid("headers", "Give between 1 and 20 headers.");
                }
                for CredentialHeader { name, value } in headers {
                    tidy(name);
                    tidy(value);
                    header_name("headers", name)?;
                    secret("headers", value)?;
                }
            }
            Self::OauthClientCredentials {
                token_url,
                client_id,
                client_secret,
                scope,
                ..
            } => {
                tidy(token_url);
                tidy(client_id);
                tidy(client_secret);
                client_credentials(token_url, client_id, client_secret)?;
                *scope = scope
                    .take()
                    .map(|text| text.trim().to_owned())
                    .filter(|text| !text.is_empty());
            }
        }
        Ok(self)
    }

    /// Part of the credential that may be shown: enough to distinguish two keys, too little to use.
    pub fn hint(&self) -> String {
        match self {
            Self::ApiKey { name, value, .. } => format!("{name}: {}", masked(value)),
            Self::Bearer { token } => format!("Bearer {}", masked(token)),
            Self::Basic { username, .. } => format!("{username}: ••••"),
            Self::Headers { headers } => headers
                .iter()
                .map(|header| format!("{}: ••••", header.name))
                .collect::<Vec<_>>()
                .join(", "),
            Self::OauthClientCredentials {
                token_url,
                client_id,
                ..
            } => {
                let host = Url::parse(token_url)
                    .ok()
                    .and_then(|url| url.host_str().map(str::to_owned))
                    .unwrap_or_default();
                format!("{client_id} at {host}")
            }
        }
    }

    /// Texts that must not come back in an answer (REVIEW-S-5).
    fn secrets(&self) -> Secrets {
        let mut secrets = Secrets::default();
        match self {
            Self::ApiKey { value, .. } => secrets.add_header(value),
            Self::Bearer { token } => secrets.add(token),
            Self::Basic { username, password } => secrets.add_pair(username, password),
            Self::Headers { headers } => {
                for header in headers {
                    secrets.add_header(&header.value);
                }
            }
            Self::OauthClientCredentials {
                client_id,
                client_secret,
                ..
            } => secrets.add_pair(client_id, client_secret),
        }
        secrets
    }

    /// The one header that carries this credential on every request; `None` for other credentials,
    /// and for one that fits in no header.
    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        let (name, value) = match self {
            Self::ApiKey {
                place: KeyPlace::Header,
                name,
                value,
            } => (name.as_str(), Cow::Borrowed(value.as_str())),
            Self::Bearer { token } => ("authorization", Cow::Owned(format!("Bearer {token}"))),
            Self::Basic { username, password } => {
                ("authorization", Cow::Owned(basic_value(username, password)))
            }
            _ => return None,
        };
        header_of(name, &value).ok()
    }

    /// Puts the credential on a request, as [`CredentialSlot::apply`] does.
    fn apply(
        &self,
        url: &mut Url,
        headers: &mut HeaderMap,
        oauth_token: Option<&str>,
    ) -> Result<(), InvalidCredential> {
        match self {
            Self::ApiKey {
                place: KeyPlace::Header,
                name,
                value,
            } => set(headers, name, value),
            Self::ApiKey {
                place: KeyPlace::Query,
                name,
                value,
            } => {
                let mut query = String::new();
                // An argument of the same name must not stand beside the key.
                for pair in url
                    .query()
                    .unwrap_or_default()
                    .split('&')
                    .filter(|pair| !pair.is_empty())
                {
                    let key = pair.split('=').next().unwrap_or_default();
                    let decoded = percent_encoding::percent_decode_str(key).decode_utf8_lossy();
                    if decoded != name.as_str() {
                        if !query.is_empty() {
                            query.push('&');
                        }
                        query.push_str(pair);
                    }
                }
                parameter_style::push(
                    &mut query,
                    &parameter_style::encode(name),
                    &parameter_style::encode(value),
                );
                url.set_query(Some(&query));
                Ok(())
            }
            Self::ApiKey {
                place: KeyPlace::Cookie,
                name,
                value,
            } => {
                let pair = format!("{name}={value}");
                let cookies = match headers
                    .get(header::COOKIE)
                    .and_then(|present| present.to_str().ok())
                {
                    Some(present) => format!("{present}; {pair}"),
                    None => pair,
                };
                set(headers, "cookie", &cookies)
            }
            Self::Bearer { token } => bearer(headers, token),
            Self::Basic { username, password } => {
                set(headers, "authorization", &basic_value(username, password))
            }
            Self::Headers { headers: own } => own
                .iter()
                .try_for_each(|CredentialHeader { name, value }| set(headers, name, value)),
            Self::OauthClientCredentials { .. } => match oauth_token {
                Some(token) => bearer(headers, token),
                None => Err(InvalidCredential {
                    field: "token_url",
                    message: "There is no access token.".to_owned(),
                }),
            },
        }
    }
}

impl CredentialSlot {
    /// `key` names the credential, such as its id and its time of change.
    pub fn new(key: String, credential: Credential) -> Self {
        let secrets = credential.secrets();
        let header = credential.header();
        Self {
            key,
            credential,
            secrets,
            header,
        }
    }

    /// Puts the credential on a request. It wins over whatever the arguments set. `oauth_token` is
    /// the fetched token of [`Credential::OauthClientCredentials`].
    pub(crate) fn apply(
        &self,
        url: &mut Url,
        headers: &mut HeaderMap,
        oauth_token: Option<&str>,
    ) -> Result<(), InvalidCredential> {
        match &self.header {
            Some((name, value)) => {
                headers.insert(name.clone(), value.clone());
                Ok(())
            }
            None => self.credential.apply(url, headers, oauth_token),
        }
    }

    /// Name of this credential, which changes whenever it does.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The credential.
    pub const fn credential(&self) -> &Credential {
        &self.credential
    }

    /// The credential alone.
    pub fn into_credential(self) -> Credential {
        self.credential
    }

    /// Secrets of the credential alone. The clone shares them.
    pub(crate) fn own_secrets(&self) -> Secrets {
        self.secrets.clone()
    }

    /// Secrets that must not appear in an answer (REVIEW-S-5): the credential, and the values that
    /// [`CredentialSlot::sign_in`] put into the headers.
    pub fn secrets(&self, headers: &HeaderMap) -> Secrets {
        let mut secrets = self.own_secrets();
        secrets.extend(Secrets::of_headers(headers));
        secrets
    }
}

/// Puts an access token on a request (RFC 6750 §2.1). It wins over whatever the arguments set.
pub(crate) fn bearer(headers: &mut HeaderMap, token: &str) -> Result<(), InvalidCredential> {
    set(headers, "authorization", &format!("Bearer {token}"))
}

fn basic_value(username: &str, password: &str) -> String {
    let pair = STANDARD.encode(format!("{username}:{password}"));
    format!("Basic {pair}")
}

fn set(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), InvalidCredential> {
    let (name, value) = header_of(name, value)?;
    headers.insert(name, value);
    Ok(())
}

fn header_of(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), InvalidCredential> {
    let invalid = |()| InvalidCredential {
        field: "value",
        message: "The credential cannot be put in a header.".to_owned(),
    };
    let name = HeaderName::try_from(name).map_err(|_| invalid(()))?;
    let mut value = HeaderValue::try_from(value).map_err(|_| invalid(()))?;
    value.set_sensitive(true);
    Ok((name, value))
}

fn invalid<T>(field: &'static str, message: &str) -> Result<T, InvalidCredential> {
    Err(InvalidCredential {
        field,
        message: message.to_owned(),
    })
}

/// Checks the name and the value of an API key for the place that carries it.
fn api_key(place: KeyPlace, name: &str, value: &str) -> Result<(), InvalidCredential> {
    if name.is_empty() {
        return invalid(
            "name",
            "Name the header, query parameter or cookie that carries the key.",
        );
    }
    match place {
        KeyPlace::Header => header_name("name", name)?,
        KeyPlace::Cookie => {
            if !name.bytes().all(is_token) {
                return invalid(
                    "name",
                    "A cookie's name has only letters, digits and -_.~ and the like.",
                );
            }
            if value
                .bytes()
                .any(|b| matches!(b, b';' | b',' | b' ' | b'"'))
            {
                return invalid(
                    "value",
                    "A cookie's value has no spaces, commas, semicolons or quotes.",
                );
            }
        }
        KeyPlace::Query => {}
    }
    secret("value", value)
}

fn basic(username: &str, password: &str) -> Result<(), InvalidCredential> {
    if username.contains(':') {
        return invalid(
            "username",
            "A user name for Basic authentication has no colon.",
        );
    }
    if username.is_empty() && password.is_empty() {
        return invalid("username", "Give a user name, a password or both.");
    }
    let mut both = username.chars().chain(password.chars());
    if both.any(char::is_control) {
        return invalid(
            "password",
            "User name and password have no control characters.",
        );
    }
    Ok(())
}

fn client_credentials(
    token_url: &str,
    client_id: &str,
    client_secret: &str,
) -> Result<(), InvalidCredential> {
    let is_complete = Url::parse(token_url)
        .is_ok_and(|url| matches!(url.scheme(), "https" | "http") && url.host_str().is_some());
    if !is_complete {
        return invalid(
            "token_url",
            "Give the complete address of the token endpoint, starting with https://.",
        );
    }
    if client_id.is_empty() {
        return invalid("client_id", "Give the client id.");
    }
    secret("client_secret", client_secret)
}

fn tidy(text: &mut String) {
    let trimmed = text.trim();
    if trimmed.len() != text.len() {
        *text = trimmed.to_owned();
    }
}

fn secret(field: &'static str, text: &str) -> Result<(), InvalidCredential> {
    let message = if text.is_empty() {
        "The secret is empty."
    } else if text.len() > 16 * 1024 {
        "The secret is longer than 16 KiB."
    } else if text.chars().any(char::is_control) {
        "The secret has a line break or another control character; copy it again as one line."
    } else if !text.is_ascii() {
        "The secret has characters that a header cannot carry; copy it again."
    } else {
        return Ok(());
    };
    Err(InvalidCredential {
        field,
        message: message.to_owned(),
    })
}

fn header_name(field: &'static str, name: &str) -> Result<(), InvalidCredential> {
    if HeaderName::try_from(name).is_err() {
        return Err(InvalidCredential {
            field,
            message: format!("`{name}` is not a header name."),
        });
    }
    if REFUSED_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(InvalidCredential {
            field,
            message: format!("The header `{name}` is set by the request itself."),
        });
    }
    Ok(())
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn masked(secret: &str) -> String {
    // Short secrets would be given away by their end.
    if secret.len() >= 12 && secret.is_ascii() {
        format!("••••{}", &secret[secret.len() - 4..])
    } else {
        "••••".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: serde_json::Value) -> Credential {
        serde_json::from_value::<Credential>(value).unwrap()
    }

    #[test]
    fn a_credential_reads_in_the_shape_of_the_api_and_shows_no_secret() {
        let credential = read(
            json!({"kind": "api_key", "in": "header", "name": "X-Api-Key", "value": "0123456789cafe"}),
        );
        assert_eq!(credential.hint(), "X-Api-Key: ••••cafe");
        assert!(!format!("{credential:?}").contains("cafe"));
        assert_eq!(
            read(json!({"kind": "bearer", "token": "short"})).hint(),
            "Bearer ••••"
        );
    }

    #[test]
    fn what_people_paste_is_tidied() {
        let Ok(Credential::Bearer { token }) =
            read(json!({"kind": "bearer", "token": " Bearer abc\n"})).checked()
        else {
            panic!("is a bearer token")
        };
        assert_eq!(token, "abc");
    }

    #[test]
    fn line_breaks_and_framing_headers_are_refused_ab_44() {
        let split =
            read(json!({"kind": "headers", "headers": [{"name": "X-A", "value": "a\r\nX-B: c"}]}));
        assert_eq!(split.checked().unwrap_err().field, "headers");
        let host = read(json!({"kind": "api_key", "in": "header", "name": "Host", "value": "x"}));
        assert_eq!(host.checked().unwrap_err().field, "name");
        let name = read(json!({"kind": "api_key", "in": "header", "name": "X Key", "value": "x"}));
        assert_eq!(name.checked().unwrap_err().field, "name");
    }

    #[test]
    fn the_credential_wins_over_arguments() {
        let mut url = Url::parse("https://api.example.com/x?api_key=forged&q=1").unwrap();
        let mut headers = HeaderMap::new();
        let key =
            read(json!({"kind": "api_key", "in": "query", "name": "api_key", "value": "real key"}));
        key.apply(&mut url, &mut headers, None).unwrap();
        assert_eq!(url.query(), Some("q=1&api_key=real%20key"));
        let basic = read(json!({"kind": "basic", "username": "u", "password": "p"}));
        basic.apply(&mut url, &mut headers, None).unwrap();
        assert_eq!(headers[header::AUTHORIZATION], "Basic dTpw");
        headers.insert(header::COOKIE, HeaderValue::from_static("a=1"));
        let cookie = read(json!({"kind": "api_key", "in": "cookie", "name": "sid", "value": "s"}));
        cookie.apply(&mut url, &mut headers, None).unwrap();
        assert_eq!(headers[header::COOKIE], "a=1; sid=s");
    }
}
