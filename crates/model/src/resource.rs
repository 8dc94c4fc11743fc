//! The canonical form of an MCP server's URL as an OAuth resource (RFC 8707; AUTH-5.1 to AUTH-5.6).
//!
//! A resource is one of three shapes on the one public origin: `/mcp`, `/t/<tenant>/mcp`,
//! `/t/<tenant>/<server>/mcp`. The value of `aud` is always what [`Site::url`] writes.

use std::fmt;

use url::{Host, Url};

/// A resource, named by the slugs in its URL. Whether they exist is another question, and answered
/// only to members.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Resource {
    /// `https://HOST/mcp`: the tenant follows from the token.
    Platform,
    /// `https://HOST/t/<tenant>/mcp`: everything of a tenant.
    Workspace {
        /// Slug in the URL: current name or alias.
        tenant: String,
    },
    /// `https://HOST/t/<tenant>/<server>/mcp`: one server.
    Server {
        /// Slug in the URL: current name or alias.
        tenant: String,
        /// Slug of the server.
        server: String,
    },
}

impl Resource {
    /// The tenant's slug, if the URL has one.
    pub fn tenant(&self) -> Option<&str> {
        match self {
            Self::Platform => None,
            Self::Workspace { tenant } | Self::Server { tenant, .. } => Some(tenant),
        }
    }

    /// The server's slug, if the URL has one.
    pub fn server(&self) -> Option<&str> {
        match self {
            Self::Platform | Self::Workspace { .. } => None,
            Self::Server { server, .. } => Some(server),
        }
    }

    /// Whether a token whose `aud` is `granted` opens this resource (AUTH-5.4, node rule). The
    /// caller has already found the token's tenant to be the target's; `names_tenant` tells if a
    /// slug is, or once was, a name of that tenant, and `workspace_tokens` whether that tenant lets
    /// a token that names no server open all of them. If not, such a token opens the URLs without a
    /// server: the default one. What names a server never opens those, also when that server is the
    /// default one.
    pub fn admits(
        &self,
        granted: &Self,
        names_tenant: impl Fn(&str) -> bool,
        workspace_tokens: bool,
    ) -> bool {
        let is_wide_enough = workspace_tokens || self.server().is_none();
        match granted {
            Self::Platform => is_wide_enough,
            Self::Workspace { tenant } => names_tenant(tenant) && is_wide_enough,
            Self::Server { tenant, server } => {
                names_tenant(tenant) && self.server() == Some(server)
            }
        }
    }

    /// Whether a token for this resource may be narrowed to `asked` at refresh (AUTH-K15): the
    /// same, or a server below the workspace.
    pub fn narrows_to(&self, asked: &Self, names_tenant: impl Fn(&str) -> bool) -> bool {
        match (self, asked) {
            (Self::Platform, Self::Platform) => true,
            (Self::Workspace { .. }, Self::Workspace { tenant } | Self::Server { tenant, .. }) => {
                names_tenant(tenant)
            }
            (
                Self::Server {
                    server: granted, ..
                },
                Self::Server { tenant, server },
            ) => names_tenant(tenant) && granted == server,
            _ => false,
        }
    }
}

/// The resource that the `resource` parameter names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestedResource {
    /// The bare origin: some clients send it when they know no better. Treated as if absent.
    Origin,
    /// One resource.
    Named(Resource),
}

/// The value is not a resource of this site: `invalid_target`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the URL of an MCP server here")]
pub struct InvalidTarget;

/// The configured public URL cannot be an issuer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the public URL must be an origin: https, or http on a loopback host, without path, query or a slash at the end"
)]
pub struct InvalidSite;

/// The one public origin. Its text is the issuer, byte for byte (AUTH-E1).
#[derive(Clone, PartialEq, Eq)]
pub struct Site {
    issuer: String,
    url: Url,
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Site({})", self.issuer)
    }
}

impl Site {
    /// Takes the configured public URL.
    pub fn new(public_url: &str) -> Result<Self, InvalidSite> {
        let url = Url::parse(public_url).map_err(|_| InvalidSite)?;
        let site = Self {
            issuer: public_url.to_owned(),
            url,
        };
        let is_origin = site.url.origin().ascii_serialization() == public_url;
        let is_safe =
            site.url.scheme() == "https" || (site.url.scheme() == "http" && site.is_loopback());
        if is_origin && is_safe {
            Ok(site)
        } else {
            Err(InvalidSite)
        }
    }

    /// `https://HOST`, without a slash.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// `HOST[:port]`, as in a `Host` header.
    pub fn authority(&self) -> &str {
        self.issuer
            .split_once("://")
            .map_or("", |(_, authority)| authority)
    }

    /// True in development: http on this computer. Cookies then go without `Secure`.
    pub fn is_plain_loopback(&self) -> bool {
        self.url.scheme() == "http"
    }

    fn is_loopback(&self) -> bool {
        match self.url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
    }

    /// The canonical URL.
    pub fn url(&self, resource: &Resource) -> String {
        let issuer = &self.issuer;
        match resource {
            Resource::Platform => format!("{issuer}/mcp"),
            Resource::Workspace { tenant } => format!("{issuer}/t/{tenant}/mcp"),
            Resource::Server { tenant, server } => format!("{issuer}/t/{tenant}/{server}/mcp"),
        }
    }

    /// Reads a `resource` parameter in any spelling of the same URL (AUTH-5.4). The stream of
    /// 2024-11-05 is another address of the same server (MCP-O-1), so that its tokens open both.
    pub fn read(&self, text: &str) -> Result<RequestedResource, InvalidTarget> {
        // Refuse text that the parser would silently repair: escapes, dot segments, tabs,
        // backslashes.
        if text.len() > 2048
            || !text.bytes().all(|b| matches!(b, 0x21..=0x7e))
            || text.contains(['%', '\\', '#', '?', '@'])
        {
            return Err(InvalidTarget);
        }
        let (_, rest) = text.split_once("://").ok_or(InvalidTarget)?;
        let path = rest.find('/').map_or("", |at| &rest[at..]);
        if path
            .split('/')
            .any(|segment| segment == "." || segment == "..")
        {
            return Err(InvalidTarget);
        }
        let url = Url::parse(text).map_err(|_| InvalidTarget)?;
        if url.origin() != self.url.origin() {
            return Err(InvalidTarget);
        }
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.is_empty() {
            return Ok(RequestedResource::Origin);
        }
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        let named = |segment: &&str| is_name(segment);
        match segments.as_slice() {
            ["mcp" | "sse"] => Ok(RequestedResource::Named(Resource::Platform)),
            ["t", tenant, "mcp" | "sse"] if named(tenant) => {
                Ok(RequestedResource::Named(Resource::Workspace {
                    tenant: (*tenant).to_owned(),
                }))
            }
            ["t", tenant, server, "mcp" | "sse"]
                if named(tenant) && named(server) && *server != "mcp" =>
            {
                Ok(RequestedResource::Named(Resource::Server {
                    tenant: (*tenant).to_owned(),
                    server: (*server).to_owned(),
                }))
            }
            _ => Err(InvalidTarget),
        }
    }

    /// Reads an `aud` that we wrote ourselves. `None` for anything that is not the canonical form.
    pub fn read_canonical(&self, text: &str) -> Option<Resource> {
        match self.read(text) {
            Ok(RequestedResource::Named(resource)) if self.url(&resource) == text => Some(resource),
            _ => None,
        }
    }
}

/// Wider than the grammar of slugs on purpose: an upper-case slug is not a wrong URL, it is an
/// unknown workspace (AUTH-5.4).
fn is_name(segment: &str) -> bool {
    (1..=64).contains(&segment.len())
        && segment
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> Site {
        Site::new("https://mcp.example.com").unwrap()
    }

    fn workspace(tenant: &str) -> Resource {
        Resource::Workspace {
            tenant: tenant.to_owned(),
        }
    }

    fn server(tenant: &str, server: &str) -> Resource {
        Resource::Server {
            tenant: tenant.to_owned(),
            server: server.to_owned(),
        }
    }

    #[test]
    fn e1_the_issuer_is_an_origin_and_kept_byte_for_byte() {
        assert_eq!(
            Site::new("https://mcp.example.com:8443").unwrap().issuer(),
            "https://mcp.example.com:8443"
        );
        assert_eq!(
            Site::new("http://127.0.0.1:8080").unwrap().authority(),
            "127.0.0.1:8080"
        );
        assert!(
            Site::new("http://localhost:8080")
                .unwrap()
                .is_plain_loopback()
        );
        for bad in [
            "https://mcp.example.com/",
            "https://mcp.example.com/x",
            "https://MCP.example.com",
            "https://mcp.example.com:443",
            "https://a@mcp.example.com",
            "http://mcp.example.com",
            "mcp.example.com",
            "",
        ] {
            assert_eq!(Site::new(bad), Err(InvalidSite), "{bad}");
        }
    }

    #[test]
    fn section_5_4_every_spelling_of_a_resource_has_one_canonical_form() {
        let site = site();
        for (text, resource) in [
            ("https://mcp.example.com/mcp", Resource::Platform),
            ("https://mcp.example.com/sse/", Resource::Platform),
            ("https://mcp.example.com/t/acme/mcp", workspace("acme")),
            ("https://mcp.example.com/t/acme/mcp/", workspace("acme")),
            ("HTTPS://MCP.Example.com:443/t/acme/mcp/", workspace("acme")),
            (
                "https://mcp.example.com/t/acme/github/mcp",
                server("acme", "github"),
            ),
            ("https://mcp.example.com/t/ACME/mcp", workspace("ACME")),
        ] {
            assert_eq!(
                site.read(text),
                Ok(RequestedResource::Named(resource.clone())),
                "{text}"
            );
            let canonical = site.url(&resource);
            assert_eq!(
                site.read(&canonical),
                Ok(RequestedResource::Named(resource.clone())),
                "idempotent"
            );
            assert_eq!(site.read_canonical(&canonical), Some(resource));
        }
        assert_eq!(
            site.read_canonical("https://mcp.example.com/t/acme/mcp/"),
            None
        );
    }

    #[test]
    fn section_5_4_the_bare_origin_is_as_if_absent() {
        assert_eq!(
            site().read("https://mcp.example.com"),
            Ok(RequestedResource::Origin)
        );
        assert_eq!(
            site().read("https://mcp.example.com/"),
            Ok(RequestedResource::Origin)
        );
    }

    #[test]
    fn case_100_what_is_no_resource_here_is_refused() {
        for bad in [
            "https://mcp.example.com/t/acme/mcp#x",
            "https://mcp.example.com/t/acme/mcp?x=1",
            "https://u@mcp.example.com/t/acme/mcp",
            "https://evil.example/t/acme/mcp",
            "https://mcp.example.com.evil.example/t/acme/mcp",
            "http://mcp.example.com/t/acme/mcp",
            "https://mcp.example.com:8443/t/acme/mcp",
            "https://mcp.example.com/t/acme/../beta/mcp",
            "https://mcp.example.com/t/./acme/mcp",
            "https://mcp.example.com/t/%61cme/mcp",
            "https://mcp.example.com/t/acme/mcp//",
            "https://mcp.example.com//",
            "https://mcp.example.com/t/acme",
            "https://mcp.example.com/t//mcp",
            "https://mcp.example.com/t/acme/mcp/mcp",
            "https://mcp.example.com/t/acme/github/x/mcp",
            "https://mcp.example.com\\t\\acme\\mcp",
            "https://mcp.example.com/t/ac\tme/mcp",
            "/t/acme/mcp",
            "mcp",
            "",
        ] {
            assert_eq!(site().read(bad), Err(InvalidTarget), "{bad}");
        }
    }

    #[test]
    fn case_97_a_server_token_opens_its_server_only() {
        let acme = |slug: &str| slug == "acme" || slug == "acme-old";
        let (github, jira) = (server("acme", "github"), server("acme", "jira"));
        let admits = |resource: &Resource, granted: &Resource| {
            let wide = resource.admits(granted, acme, true);
            let narrow = resource.admits(granted, acme, false);
            assert!(wide || !narrow, "the switch takes and never gives");
            (wide, narrow)
        };
        let (both, neither) = ((true, true), (false, false));
        assert_eq!(admits(&github, &github), both, "rule (a)");
        let of_old = server("acme-old", "github");
        assert_eq!(admits(&github, &of_old), both, "rule (b): an alias");
        let unless_narrow = (true, false);
        assert_eq!(admits(&github, &workspace("acme")), unless_narrow, "(c)");
        assert_eq!(admits(&github, &Resource::Platform), unless_narrow, "(d)");
        for at in [workspace("acme"), workspace("acme-old"), Resource::Platform] {
            assert_eq!(admits(&at, &workspace("acme")), both, "{at:?}");
            assert_eq!(admits(&at, &workspace("acme-old")), both, "{at:?}");
            assert_eq!(admits(&at, &Resource::Platform), both, "{at:?}");
            assert_eq!(admits(&at, &workspace("beta")), neither, "{at:?}");
            // Also when it is the default one.
            assert_eq!(admits(&at, &github), neither, "{at:?}");
        }
        assert_eq!(admits(&jira, &github), neither);
        assert_eq!(admits(&github, &workspace("beta")), neither);
        assert_eq!(admits(&github, &server("beta", "github")), neither);
    }

    #[test]
    fn k15_a_refresh_may_narrow_and_never_widen() {
        let acme = |slug: &str| slug == "acme";
        assert!(workspace("acme").narrows_to(&server("acme", "github"), acme));
        assert!(workspace("acme").narrows_to(&workspace("acme"), acme));
        assert!(server("acme", "github").narrows_to(&server("acme", "github"), acme));
        assert!(!server("acme", "github").narrows_to(&workspace("acme"), acme));
        assert!(!server("acme", "github").narrows_to(&server("acme", "jira"), acme));
        assert!(!workspace("acme").narrows_to(&server("beta", "github"), acme));
        assert!(!workspace("acme").narrows_to(&Resource::Platform, acme));
    }
}
