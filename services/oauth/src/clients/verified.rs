//! Clients whose maker is known (AUTH-C15). The proof is a host that only the maker controls:
//! that of the metadata document, or of every redirect URI. A name proves nothing.

use portolan_model::{client::ClientKind, redirect};
use portolan_site::names;
use portolan_storage::oauth::clients::Client;
use url::Url;

use crate::clients::first_party;

/// A known maker of clients.
#[derive(Debug)]
pub(crate) struct Maker {
    /// The name that the page shows beside the badge.
    pub(crate) name: &'static str,
    /// Hosts that the maker alone controls.
    hosts: &'static [&'static str],
    /// Names that are reserved for the maker.
    names: &'static [&'static str],
}

/// A name with fewer letters occurs inside other words (`zed` in `organized`), so it must match a
/// whole word.
const SHORT: usize = 6;

const MAKERS: &[Maker] = &[
    Maker {
        name: "Anthropic",
        hosts: &["claude.ai", "claude.com"],
        names: &["claude", "anthropic"],
    },
    Maker {
        name: "OpenAI",
        hosts: &["chatgpt.com", "openai.com"],
        names: &["chatgpt", "openai", "codex"],
    },
    Maker {
        name: "Microsoft",
        hosts: &["vscode.dev", "insiders.vscode.dev"],
        names: &[
            "visual studio code",
            "vscode",
            "vs code",
            "github",
            "copilot",
            "microsoft",
        ],
    },
    Maker {
        name: "Google",
        hosts: &["gemini.google.com"],
        names: &["gemini", "google"],
    },
    Maker {
        name: "Cursor",
        hosts: &["cursor.com", "www.cursor.com"],
        names: &["cursor"],
    },
    Maker {
        name: "Cognition",
        hosts: &["windsurf.com", "codeium.com"],
        names: &["windsurf", "codeium"],
    },
    Maker {
        name: "Amazon",
        hosts: &["kiro.dev"],
        names: &["amazon", "kiro", "bedrock"],
    },
    Maker {
        name: "Apple",
        hosts: &[],
        names: &["apple", "xcode"],
    },
    Maker {
        name: "DeepSeek",
        hosts: &["deepseek.com", "chat.deepseek.com"],
        names: &["deepseek"],
    },
    Maker {
        name: "JetBrains",
        hosts: &["jetbrains.com", "www.jetbrains.com"],
        names: &["jetbrains", "intellij"],
    },
    Maker {
        name: "Mistral AI",
        hosts: &["mistral.ai", "chat.mistral.ai"],
        names: &["mistral", "le chat"],
    },
    Maker {
        name: "Perplexity",
        hosts: &["perplexity.ai", "www.perplexity.ai"],
        names: &["perplexity"],
    },
    Maker {
        name: "Raycast",
        hosts: &["raycast.com", "www.raycast.com"],
        names: &["raycast"],
    },
    Maker {
        name: "Replit",
        hosts: &["replit.com"],
        names: &["replit"],
    },
    Maker {
        name: "Slack",
        hosts: &["slack.com"],
        names: &["slack"],
    },
    Maker {
        name: "xAI",
        hosts: &["x.ai", "grok.com"],
        names: &["grok", "xai"],
    },
    Maker {
        name: "Zed Industries",
        hosts: &["zed.dev"],
        names: &["zed"],
    },
    Maker {
        name: "Portolan",
        hosts: &[],
        names: &["portolan"],
    },
];

/// The consent page's judgement of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Made by the named maker, proved by a host.
    Verified(&'static str),
    /// The maker is not proved.
    Unverified,
    /// The maker is not proved, and the name imitates a known one.
    Imitates,
}

/// Determines the client's maker.
pub fn trust(client: &Client) -> Trust {
    // PLAY-1: the console's own client. No other client can get its id.
    if first_party::is(client) {
        return Trust::Verified("Portolan");
    }
    if let Some(maker) = MAKERS.iter().find(|maker| is_proved(maker, client)) {
        return Trust::Verified(maker.name);
    }
    let own = names::skeleton(&client.name);
    let imitates = MAKERS
        .iter()
        .flat_map(|maker| maker.names)
        .map(|known| names::skeleton(known))
        .any(|known| {
            if known.len() < SHORT {
                own == known || names::words(&client.name).any(|word| word == known)
            } else {
                own.contains(&known)
            }
        });
    if imitates {
        Trust::Imitates
    } else {
        Trust::Unverified
    }
}

fn is_proved(maker: &Maker, client: &Client) -> bool {
    if client.kind == ClientKind::Cimd {
        return Url::parse(&client.client_id).is_ok_and(|url| {
            url.host_str()
                .is_some_and(|host| maker.hosts.contains(&host))
        });
    }
    !client.redirect_uris.is_empty()
        && client.redirect_uris.iter().all(|uri| {
            matches!(redirect::check(uri), Ok(redirect::Destination::Web { host }) if maker.hosts.contains(&host.as_str()))
        })
}

#[cfg(test)]
mod tests {
    use portolan_model::{Digest, client::AuthMethod, id::ClientId};

    use super::*;

    fn client(kind: ClientKind, client_id: &str, name: &str, redirect: &str) -> Client {
        Client {
            id: ClientId::generate(),
            client_id: client_id.to_owned(),
            kind,
            tenant: None,
            name: name.to_owned(),
            metadata: serde_json::Value::Null,
            metadata_digest: Digest::from_bytes([0; 32]),
            auth_method: AuthMethod::None,
            grant_types: Vec::new(),
            redirect_uris: vec![redirect.to_owned()],
            is_blocked: false,
        }
    }

    #[test]
    fn c15_only_a_host_proves_the_maker() {
        let web = client(
            ClientKind::Dynamic,
            "cli_1",
            "Claude",
            "https://claude.ai/api/mcp/auth_callback",
        );
        assert_eq!(trust(&web), Trust::Verified("Anthropic"));
        let document = "https://claude.ai/oauth/claude-code-client-metadata";
        let cimd = client(
            ClientKind::Cimd,
            document,
            "Claude Code",
            "http://localhost/callback",
        );
        assert_eq!(trust(&cimd), Trust::Verified("Anthropic"));
        let imitator = client(
            ClientKind::Dynamic,
            "cli_1",
            "Claude",
            "http://127.0.0.1/callback",
        );
        assert_eq!(trust(&imitator), Trust::Imitates);
        let cyrillic = client(
            ClientKind::Dynamic,
            "cli_1",
            "Cl\u{0430}ude",
            "https://evil.example/cb",
        );
        assert_eq!(trust(&cyrillic), Trust::Imitates);
        for (name, expected) in [
            ("ᴄʟᴀᴜᴅᴇ", Trust::Imitates),
            ("Windsurf", Trust::Imitates),
            ("Perp1exity", Trust::Imitates),
            ("Z e d", Trust::Imitates),
            ("Zed editor", Trust::Imitates),
            ("Organized notes", Trust::Unverified),
            ("Pineapple", Trust::Unverified),
        ] {
            let callback = "http://127.0.0.1/callback";
            let named = client(ClientKind::Dynamic, "cli_1", name, callback);
            assert_eq!(trust(&named), expected, "REVIEW-S-15: {name}");
        }
        let sub = client(
            ClientKind::Cimd,
            "https://claude.ai.evil.example/x",
            "App",
            "https://evil.example/cb",
        );
        assert_eq!(trust(&sub), Trust::Unverified);
    }
}
