//! Which server a path names.

use portolan_model::resource::Resource;

/// Tenant and server of a path that has the form of an endpoint's, whatever stands in the segments.
fn segments(path: &str) -> Option<(&str, Option<&str>)> {
    let inner = path
        .strip_suffix('/')
        .unwrap_or(path)
        .strip_prefix("/t/")?
        .strip_suffix("/mcp")?;
    Some(match inner.split_once('/') {
        Some((tenant, server)) => (tenant, Some(server)),
        None => (inner, None),
    })
}

/// Whether the path is an endpoint's: what no other route of the house has to look at.
pub fn is_endpoint(path: &str) -> bool {
    segments(path).is_some_and(|(tenant, server)| {
        !tenant.is_empty()
            && server.is_none_or(|server| !server.is_empty() && !server.contains('/'))
    })
}

/// The path of the endpoint, taken apart. Borrowed from the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    /// The tenant's slug, as written.
    pub(crate) tenant: &'a str,
    /// The server's slug; `None` for the workspace's own URL.
    pub(crate) server: Option<&'a str>,
    /// The whole path, with its trailing slash if it has one.
    pub(crate) path: &'a str,
}

impl<'a> Target<'a> {
    /// Reads `/t/<tenant>/<server>/mcp` or `/t/<tenant>/mcp`, with or without a slash at the end. `None` for everything that
    /// cannot be the address of a server whatever the registry holds: the segments are limited to what can stand in a quoted
    /// challenge.
    pub(crate) fn parse(path: &'a str) -> Option<Self> {
        let (tenant, server) = segments(path)?;
        let fits = |segment: &str| {
            (1..=64).contains(&segment.len())
                && segment
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
        };
        (fits(tenant) && server.is_none_or(fits)).then_some(Self {
            tenant,
            server,
            path,
        })
    }

    /// The resource of the path.
    pub(crate) fn resource(&self) -> Resource {
        let tenant = self.tenant.to_owned();
        match self.server {
            Some(server) => Resource::Server {
                tenant,
                server: server.to_owned(),
            },
            None => Resource::Workspace { tenant },
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
                    tenant: "acme",
                    server: Some("github"),
                    path
                })
            );
        }
        assert_eq!(
            Target::parse("/t/acme/mcp").map(|target| target.server),
            Some(None)
        );
    }

    #[test]
    fn what_cannot_be_a_server_is_no_target() {
        for path in [
            "/t//mcp",
            "/t/a/b/c/mcp",
            "/t/acme/git%22hub/mcp",
            "/t/acme/github",
            "/mcp",
            "/t/a\"b/c/mcp",
            "/t/acme/github/mcp//",
        ] {
            assert_eq!(Target::parse(path), None, "{path}");
        }
    }
}
