//! Providers of accounts with which people sign in: `[[login_providers]]`.

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use portolan_keys::{Secret, assertion::ALGORITHMS};
use portolan_site::identity_providers::{
    Github, LoginProvider, OpenId, ProviderClient, ProviderKind, SubjectOf, is_provider_name,
};
use serde::Deserialize;
use url::Url;

use super::Raw;

/// The setting, which is text in the environment and tables in the file.
pub(super) const NAME: &str = "login_providers";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    login_providers: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    label: Option<String>,
    kind: Kind,
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
enum Kind {
    Oidc,
    Entra,
    Github,
}

/// Reads them. Nothing that is written there is repeated in a message but names: there are secrets
/// in it.
pub(super) fn providers(raw: &Raw) -> Result<Vec<LoginProvider>> {
    let Some(text) = raw.text(NAME) else {
        return Ok(Vec::new());
    };
    let file: File = toml::from_str(text).map_err(|error| {
        // The message of the parser quotes the line.
        anyhow::anyhow!("{NAME}: {}", error.message())
    })?;
    let mut providers: Vec<LoginProvider> = Vec::new();
    for entry in file.login_providers {
        let name = entry.name.clone();
        let provider = read(entry).with_context(|| format!("{NAME}: {name:?}"))?;
        ensure!(
            !providers.iter().any(|known| known.slug == provider.slug),
            "{NAME}: {name:?} is there twice"
        );
        providers.push(provider);
    }
    Ok(providers)
}

fn read(entry: Entry) -> Result<LoginProvider> {
    ensure!(
        is_provider_name(&entry.name),
        "name: 1 to 32 small letters, digits and hyphens are expected: it is part of an address"
    );
    let secret = match (entry.client_secret, entry.client_secret_file) {
        (Some(_), Some(_)) => bail!("client_secret and client_secret_file are both set: keep one"),
        (Some(secret), None) => Some(secret),
        (None, Some(path)) => {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("client_secret_file: cannot read {path}"))?;
            Some(Secret::new(text.trim_end_matches(['\r', '\n']).to_owned()))
        }
        (None, None) => None,
    };
    ensure!(!entry.client_id.is_empty(), "client_id is empty");
    let (label, kind) = match entry.kind {
        Kind::Github => {
            ensure!(secret.is_some(), "GitHub gives a client secret: set it");
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
            ("GitHub".to_owned(), ProviderKind::Github(github))
        }
        Kind::Oidc | Kind::Entra => {
            ensure!(
                entry.base_url.is_none() && entry.api_url.is_none(),
                "base_url and api_url are for kind \"github\""
            );
            let issuer = entry.issuer.context("issuer is missing")?;
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
            if matches!(entry.kind, Kind::Entra) {
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

/// An address without what an address of a provider has not, and without a slash at the end.
fn address(what: &str, text: &str) -> Result<String> {
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

    fn read_text(text: &str) -> Result<Vec<LoginProvider>> {
        let pair = ("PORTOLAN_LOGIN_PROVIDERS".to_owned(), text.to_owned());
        providers(&Raw::load(None, [pair].into_iter())?)
    }

    const GOOGLE: &str = "[[login_providers]]\nname = \"google\"\nlabel = \"Google\"\nkind = \"oidc\"\n\
        issuer = \"https://accounts.google.com\"\nclient_id = \"c\"\nclient_secret = \"planted\"\n";

    #[test]
    fn f1_providers_are_read_from_the_environment_and_from_the_file() {
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

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("portolan.toml");
        fs::write(&file, GOOGLE).unwrap();
        let raw = Raw::load(Some(&file), std::iter::empty()).unwrap();
        let read = providers(&raw).unwrap();
        assert_eq!(
            read[0]
                .client
                .secret
                .as_ref()
                .map(|secret| secret.expose().as_str()),
            Some("planted")
        );
        assert!(providers(&Raw::default()).unwrap().is_empty());
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
                "login_providers",
            ),
        ] {
            let said = format!("{:#}", read_text(&text).unwrap_err());
            assert!(
                said.contains(why) && !said.contains("planted"),
                "{why}: {said}"
            );
        }
    }
}
