//! The address at which a workspace takes attached servers.

use http::Uri;
use url::Url;

/// Why an address cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AddressError {
    /// Not a URL, or of another scheme.
    #[error("{0:?} is not a complete address, such as https://mcp.example.com/t/acme/mcp")]
    Unreadable(String),
    /// No workspace in the path.
    #[error(
        "the address names no workspace; copy it from the page of the attached server, it looks \
         like https://mcp.example.com/t/WORKSPACE/mcp"
    )]
    NoWorkspace,
    /// `http` to another machine.
    #[error("http:// sends the key without encryption; use the https:// address")]
    PlainHttp,
}

/// The endpoint of the `Upgrade` request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachAddress {
    uri: Uri,
}

impl AttachAddress {
    /// Reads the URL of a workspace, or of one of its servers: `…/t/WORKSPACE/…`.
    ///
    /// # Errors
    /// [`AddressError`].
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let unreadable = || AddressError::Unreadable(text.to_owned());
        let mut url = Url::parse(text.trim()).map_err(|_| unreadable())?;
        let is_local = match url.host() {
            Some(url::Host::Domain(name)) => name == "localhost",
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            None => return Err(unreadable()),
        };
        match url.scheme() {
            "https" => {}
            "http" if is_local => {}
            "http" => return Err(AddressError::PlainHttp),
            _ => return Err(unreadable()),
        }
        let segments: Vec<String> = url
            .path_segments()
            .into_iter()
            .flatten()
            .map(str::to_owned)
            .collect();
        // A proxy in front may add a prefix to all paths.
        let at = segments.iter().position(|segment| segment == "t");
        let workspace = at.and_then(|at| Some((at, segments.get(at + 1)?)));
        let Some((at, workspace)) = workspace.filter(|(_, name)| !name.is_empty()) else {
            return Err(AddressError::NoWorkspace);
        };
        let mut path = segments[..at].join("/");
        if !path.is_empty() {
            path.insert(0, '/');
        }
        path.push_str("/t/");
        path.push_str(workspace);
        path.push_str("/attach");
        url.set_path(&path);
        url.set_query(None);
        url.set_fragment(None);
        let _ = url.set_username("");
        let _ = url.set_password(None);
        let uri = url.as_str().parse().map_err(|_| unreadable())?;
        Ok(Self { uri })
    }

    /// The same host with the path of nodes of another kind, below the same prefix.
    #[must_use]
    pub fn beside(&self, path: &str) -> Option<Self> {
        let own = self.uri.path();
        let prefix = own.find("/t/").map_or("", |at| &own[..at]);
        let mut parts = self.uri.clone().into_parts();
        parts.path_and_query = Some(format!("{prefix}{path}").parse().ok()?);
        let uri = Uri::from_parts(parts).ok()?;
        Some(Self { uri })
    }

    /// Scheme, host, port and path.
    pub const fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Host and port, for the `Host` header and for messages.
    pub fn authority(&self) -> &str {
        self.uri
            .authority()
            .map_or("", http::uri::Authority::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_of_a_server_or_workspace_leads_to_the_workspaces_endpoint() {
        for (text, expected) in [
            (
                "https://mcp.example.com/t/acme/harbour/mcp",
                "https://mcp.example.com/t/acme/attach",
            ),
            (
                "https://mcp.example.com/t/acme/mcp/",
                "https://mcp.example.com/t/acme/attach",
            ),
            (
                "http://127.0.0.1:9000/t/acme",
                "http://127.0.0.1:9000/t/acme/attach",
            ),
            (
                "https://example.com/portolan/t/acme/mcp?x=1#y",
                "https://example.com/portolan/t/acme/attach",
            ),
        ] {
            let address = AttachAddress::parse(text).unwrap();
            assert_eq!(address.uri().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn other_addresses_are_refused_with_the_reason() {
        assert_eq!(
            AttachAddress::parse("https://mcp.example.com/mcp"),
            Err(AddressError::NoWorkspace)
        );
        assert_eq!(
            AttachAddress::parse("http://mcp.example.com/t/acme/mcp"),
            Err(AddressError::PlainHttp)
        );
        for text in ["mcp.example.com", "ftp://example.com/t/acme", "https://"] {
            assert!(
                matches!(AttachAddress::parse(text), Err(AddressError::Unreadable(_))),
                "{text}"
            );
        }
    }
}
