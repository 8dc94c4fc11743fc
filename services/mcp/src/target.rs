//! The path of a request: the server that it names.

use std::borrow::Cow;

use portolan_model::resource::Resource;

/// The transport address of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// `…/mcp`: Streamable HTTP, of every revision that has it.
    Mcp,
    /// `…/sse`: the event stream of 2024-11-05 (MCP-O-1).
    Events,
    /// `…/messages`: the messages of its client (MCP-O-1).
    Messages,
}

/// Tenant, server and transport of a path with the form of an endpoint. Segments are not checked.
fn segments(path: &str) -> Option<(Option<&str>, Option<&str>, Transport)> {
    let inner = path.strip_suffix('/').unwrap_or(path).strip_prefix('/')?;
    let (place, transport) = match inner.rsplit_once('/') {
        Some((place, transport)) => (Some(place), transport),
        None => (None, inner),
    };
    let transport = match transport {
        "mcp" => Transport::Mcp,
        "sse" => Transport::Events,
        "messages" => Transport::Messages,
        _ => return None,
    };
    let Some(place) = place else {
        return Some((None, None, transport));
    };
    let place = place.strip_prefix("t/")?;
    Some(match place.split_once('/') {
        Some((tenant, server)) => (Some(tenant), Some(server), transport),
        None => (Some(place), None, transport),
    })
}

/// Whether the path is an endpoint's, so that no other route needs to match it.
pub fn is_endpoint(path: &str) -> bool {
    segments(path).is_some_and(|(tenant, server, _)| {
        tenant.is_none_or(|tenant| !tenant.is_empty())
            && server.is_none_or(|server| !server.is_empty() && !server.contains('/'))
    })
}

/// The parsed path of the endpoint, borrowed from the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    /// The tenant's slug, as written; `None` for the URL whose tenant is the token's (AUTH-5.1).
    pub(crate) tenant: Option<&'a str>,
    /// The server's slug; `None` for the tenant's default server.
    pub(crate) server: Option<&'a str>,
    /// The whole path, with its trailing slash if it has one.
    pub(crate) path: &'a str,
    /// The transport address of the server.
    pub(crate) transport: Transport,
}

impl<'a> Target<'a> {
    /// Reads `/t/<tenant>/<server>/mcp`, `/t/<tenant>/mcp` or `/mcp`, or another transport's
    /// address.
    ///
    /// A trailing slash is allowed. The result is `None` if no registry could hold such a server.
    /// Segments are limited to characters that are valid in a quoted challenge.
    pub(crate) fn parse(path: &'a str) -> Option<Self> {
        let (tenant, server, transport) = segments(path)?;
        let fits = |segment: &str| {
            (1..=64).contains(&segment.len())
                && segment
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
        };
        (tenant.is_none_or(fits) && server.is_none_or(fits)).then_some(Self {
            tenant,
            server,
            path,
            transport,
        })
    }

    /// The path whose metadata a client reads (AUTH-E3). A client of HTTP+SSE knows the stream's
    /// address.
    pub(crate) fn described(&self) -> Cow<'a, str> {
        if self.transport != Transport::Messages {
            return Cow::Borrowed(self.path);
        }
        match (self.tenant, self.server) {
            (None, _) => Cow::Borrowed("/sse"),
            (Some(tenant), Some(server)) => Cow::Owned(format!("/t/{tenant}/{server}/sse")),
            (Some(tenant), None) => Cow::Owned(format!("/t/{tenant}/sse")),
        }
    }

    /// The resource of the path: the same for every transport.
    pub(crate) fn resource(&self) -> Resource {
        match (self.tenant.map(str::to_owned), self.server) {
            (None, _) => Resource::Platform,
            (Some(tenant), None) => Resource::Workspace { tenant },
            (Some(tenant), Some(server)) => Resource::Server {
                tenant,
                server: server.to_owned(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_the_path_name_the_same_server() {
        for path in ["/t/acme/github/mcp", "/t/acme/github/mcp/"] {
            assert_eq!(
                Target::parse(path),
                Some(Target {
                    tenant: Some("acme"),
                    server: Some("github"),
                    path,
                    transport: Transport::Mcp,
                })
            );
        }
    }

    #[test]
    fn section_5_1_a_url_without_a_server_or_a_tenant_names_a_resource_of_its_own() {
        let named = |path| {
            let target = Target::parse(path).unwrap();
            (target.tenant, target.server, target.resource())
        };
        let tenant = "acme".to_owned();
        for path in ["/t/acme/mcp", "/t/acme/mcp/", "/t/acme/sse"] {
            let tenant = tenant.clone();
            let workspace = Resource::Workspace { tenant };
            assert_eq!(named(path), (Some("acme"), None, workspace), "{path}");
        }
        for path in ["/mcp", "/mcp/", "/sse", "/messages"] {
            assert_eq!(named(path), (None, None, Resource::Platform), "{path}");
            assert!(is_endpoint(path), "{path}");
        }
        let described = |path| Target::parse(path).unwrap().described();
        assert_eq!(described("/messages"), "/sse");
        assert_eq!(described("/mcp/"), "/mcp/");
    }

    #[test]
    fn o_1_two_more_addresses_name_the_same_server() {
        let transport = |path| Target::parse(path).map(|target| target.transport);
        assert_eq!(transport("/t/acme/github/sse"), Some(Transport::Events));
        assert_eq!(transport("/t/acme/sse/"), Some(Transport::Events));
        assert_eq!(
            transport("/t/acme/github/messages"),
            Some(Transport::Messages)
        );
        let described = |path| Target::parse(path).unwrap().described();
        assert_eq!(described("/t/acme/github/sse/"), "/t/acme/github/sse/");
        assert_eq!(described("/t/acme/github/messages"), "/t/acme/github/sse");
        assert_eq!(described("/t/acme/messages"), "/t/acme/sse");
        let resource = |path| Target::parse(path).unwrap().resource();
        assert_eq!(
            resource("/t/acme/github/sse"),
            resource("/t/acme/github/mcp"),
            "AUTH-E3: a token opens every door of its server"
        );
    }

    #[test]
    fn what_cannot_be_a_server_is_no_target() {
        for path in [
            "/t//mcp",
            "/t/a/b/c/mcp",
            "/t/acme/git%22hub/mcp",
            "/t/acme/github",
            "/t/mcp",
            "/x/mcp",
            "//mcp",
            "mcp",
            "/mcp//",
            "/mcp/mcp",
            "/",
            "/t/a\"b/c/mcp",
            "/t/acme/github/mcp//",
            "/t/acme/github/message",
        ] {
            assert_eq!(Target::parse(path), None, "{path}");
        }
    }
}
