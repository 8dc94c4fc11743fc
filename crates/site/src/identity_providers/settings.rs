//! Providers of accounts with which people sign in: `[[login_providers]]`.

use std::{error::Error, fs};

use portolan_config::{Form, Value};
use portolan_keys::{Secret, assertion::ALGORITHMS};
use serde::Deserialize;
use url::Url;

use super::{
    Github, LoginProvider, OpenId, ProviderClient, ProviderKind, SubjectOf, is_provider_name,
};

/// Providers of accounts with which people sign in, as the operator lists them.
#[derive(Debug, Clone, Default)]
pub struct LoginProviders(pub Vec<LoginProvider>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProviderTables {
    #[serde(default)]
    login_providers: Vec<ProviderEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProviderEntry {
    name: String,
    label: Option<String>,
    kind: ProviderProtocol,
    issuer: Option<String>,
    base_url: Option<String>,
    api_url: Option<String>,
    client_id: String,
    client_secret: Option<Secret<String>>,
    client_secret_file: Option<String>,
    scope: Option<String>,
    algorithms: Option<Vec<String>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ProviderProtocol {
    Oidc,
    Entra,
    Github,
}

impl Value for LoginProviders {
    const FORM: Form = Form::Tables("tables [[login_providers]]");
    const SECRET: bool = true;

    /// Reads them. Nothing that is written there is repeated in a message but names: there are
    /// secrets in it.
    fn parse(text: &str) -> Result<Self, Box<dyn Error + Send + Sync>> {
        // The message of the parser quotes the line.
        let file: ProviderTables =
            toml::from_str(text).map_err(|error| error.message().to_owned())?;
        let mut providers: Vec<LoginProvider> = Vec::new();
        for entry in file.login_providers {
            let name = entry.name.clone();
            let provider = read(entry).map_err(|fault| format!("{name:?}: {fault}"))?;
            if providers.iter().any(|known| known.slug == provider.slug) {
                return Err(format!("{name:?} is there twice").into());
            }
            providers.push(provider);
        }
        Ok(Self(providers))
    }

    fn text(&self) -> String {
        String::new()
    }
}

/// Refuses an entry with a reason unless the condition holds.
macro_rules! ensure {
    ($holds:expr, $($reason:tt)+) => {
        if !$holds {
            return Err(format!($($reason)+));
        }
    };
}

fn read(mut entry: ProviderEntry) -> Result<LoginProvider, String> {
    ensure!(
        is_provider_name(&entry.name),
        "name: 1 to 32 small letters, digits and hyphens are expected: it is part of an address"
    );
    let secret = secret(entry.client_secret.take(), entry.client_secret_file.take())?;
    ensure!(!entry.client_id.is_empty(), "client_id is empty");
    let (label, kind) = match entry.kind {
        ProviderProtocol::Github => {
            ensure!(secret.is_some(), "GitHub gives a client secret: set it");
            let github = github(&entry)?;
            ("GitHub".to_owned(), ProviderKind::Github(github))
        }
        ProviderProtocol::Oidc | ProviderProtocol::Entra => {
            ensure!(
                entry.base_url.is_none() && entry.api_url.is_none(),
                "base_url and api_url are for kind \"github\""
            );
            let issuer = entry.issuer.ok_or("issuer is missing")?;
            // Compared byte for byte with what the provider says: it is kept as it is written.
            address("issuer", &issuer)?;
            let mut openid = OpenId::new(issuer);
            if let Some(scope) = entry.scope {
                ensure!(
                    scope.split(' ').any(|one| one == "openid"),
                    "scope: \"openid\" has to be among them"
                );
                openid.scope = scope;
            }
            if let Some(algorithms) = entry.algorithms {
                ensure!(
                    !algorithms.is_empty()
                        && algorithms
                            .iter()
                            .all(|name| ALGORITHMS.contains(&name.as_str())),
                    "algorithms: choose among {}",
                    ALGORITHMS.join(", ")
                );
                openid.algorithms = Some(algorithms);
            }
            if matches!(entry.kind, ProviderProtocol::Entra) {
                openid.subject = SubjectOf::Entra;
            }
            (entry.name.clone(), ProviderKind::OpenId(openid))
        }
    };
    Ok(LoginProvider {
        slug: entry.name,
        name: entry.label.unwrap_or(label),
        tenant: None,
        kind,
        client: ProviderClient {
            id: entry.client_id,
            secret,
        },
    })
}

/// The client secret, which stands in the entry or in a file.
fn secret(
    written: Option<Secret<String>>,
    file: Option<String>,
) -> Result<Option<Secret<String>>, String> {
    match (written, file) {
        (Some(_), Some(_)) => {
            Err("client_secret and client_secret_file are both set: keep one".to_owned())
        }
        (Some(secret), None) => Ok(Some(secret)),
        (None, Some(path)) => {
            let text = fs::read_to_string(&path)
                .map_err(|error| format!("client_secret_file: cannot read {path}: {error}"))?;
            Ok(Some(Secret::new(
                text.trim_end_matches(['\r', '\n']).to_owned(),
            )))
        }
        (None, None) => Ok(None),
    }
}

/// The addresses of GitHub, or of an installation of it.
fn github(entry: &ProviderEntry) -> Result<Github, String> {
    ensure!(
        entry.issuer.is_none() && entry.scope.is_none() && entry.algorithms.is_none(),
        "issuer, scope and algorithms are not for kind \"github\""
    );
    let standard = Github::default();
    let github = Github {
        base: match &entry.base_url {
            Some(text) => address("base_url", text)?,
            None => standard.base,
        },
        api: match &entry.api_url {
            Some(text) => address("api_url", text)?,
            None => standard.api,
        },
    };
    ensure!(
        entry.base_url.is_some() == entry.api_url.is_some(),
        "base_url and api_url go together"
    );
    Ok(github)
}

/// An address without what an address of a provider has not, and without a slash at the end.
fn address(what: &str, text: &str) -> Result<String, String> {
    let is_fine = Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "https" | "http")
            && url.has_host()
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none()
    });
    ensure!(
        is_fine,
        "{what}: this is not an address such as https://id.example.com"
    );
    Ok(text.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<LoginProvider>, String> {
        LoginProviders::parse(text)
            .map(|read| read.0)
            .map_err(|error| error.to_string())
    }

    const GOOGLE: &str = "[[login_providers]]\nname = \"google\"\nlabel = \"Google\"\nkind = \"oidc\"\n\
        issuer = \"https://accounts.google.com\"\nclient_id = \"c\"\nclient_secret = \"planted\"\n";

    #[test]
    fn f1_providers_are_read_from_tables() {
        let all = read_text(&format!(
            "{GOOGLE}[[login_providers]]\nname = \"github\"\nkind = \"github\"\nclient_id = \"g\"\nclient_secret = \"planted\"\n\
             [[login_providers]]\nname = \"work\"\nkind = \"entra\"\nissuer = \"https://login.microsoftonline.com/x/v2.0\"\nclient_id = \"e\"\n"
        ))
        .unwrap();
        let names: Vec<_> = all.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["Google", "GitHub", "work"]);
        assert!(
            matches!(&all[1].kind, ProviderKind::Github(github) if github.api == "https://api.github.com")
        );
        assert!(
            matches!(&all[2].kind, ProviderKind::OpenId(openid) if openid.subject == SubjectOf::Entra),
            "AUTH-F3"
        );
        assert!(!format!("{all:?}").contains("planted"), "AUTH-X1");
    }

    #[test]
    fn a_provider_that_cannot_be_used_refuses_to_start_and_no_secret_is_told() {
        let changed = |from: &str, to: &str| GOOGLE.replace(from, to);
        for (text, why) in [
            (changed("oidc", "saml"), "unknown variant"),
            (changed("name = \"google\"", "name = \"Goo gle\""), "name:"),
            (changed("client_id", "clientid"), "unknown field"),
            (changed("issuer =", "base_url ="), "base_url"),
            (changed("https://accounts", "ldap://accounts"), "issuer:"),
            (format!("{GOOGLE}{GOOGLE}"), "twice"),
            (format!("{GOOGLE}client_secret_file = \"x\"\n"), "keep one"),
            (format!("{GOOGLE}scope = \"email\"\n"), "openid"),
            (format!("{GOOGLE}algorithms = [\"HS256\"]\n"), "algorithms"),
            (
                changed("client_secret = \"planted\"", "client_secret = \"planted"),
                "invalid",
            ),
        ] {
            let said = read_text(&text).unwrap_err();
            assert!(
                said.contains(why) && !said.contains("planted"),
                "{why}: {said}"
            );
        }
    }
}
