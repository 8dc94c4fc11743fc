//! The check of `Origin`: the sites whose scripts may use the endpoint (MCP-T-1, MCP-T-2).

use std::sync::Arc;

use http::{HeaderMap, header};
use portolan_model::resource::Site;

/// Our own origin and the configured ones, compared exactly.
#[derive(Debug, Clone)]
pub(crate) struct AllowedOrigins(Arc<[String]>);

impl AllowedOrigins {
    pub(crate) fn new(site: &Site, configured: &[String]) -> Self {
        let mut all = vec![site.issuer().to_owned()];
        if site.is_plain_loopback() {
            // On a loopback site the three names of loopback are the same origin.
            let port = site
                .authority()
                .rsplit_once(':')
                .map(|(_, port)| port)
                .filter(|port| port.bytes().all(|b| b.is_ascii_digit()));
            let port = port.map(|port| format!(":{port}")).unwrap_or_default();
            all.extend(
                ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("http://{host}{port}")),
            );
        }
        all.extend(configured.iter().cloned());
        Self(all.into())
    }

    /// The list, for the CORS layer.
    pub(crate) fn listed(&self) -> Arc<[String]> {
        Arc::clone(&self.0)
    }

    /// Whether the `Origin` headers are allowed. A request without one does not come from a
    /// browser.
    ///
    /// Each value must be in the list; `null` never is.
    pub(crate) fn admit(&self, headers: &HeaderMap) -> bool {
        headers
            .get_all(header::ORIGIN)
            .iter()
            .all(|origin| self.0.iter().any(|own| origin == own.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn with(origins: &[&'static str]) -> HeaderMap {
        origins
            .iter()
            .map(|origin| (header::ORIGIN, HeaderValue::from_static(origin)))
            .collect()
    }

    #[test]
    fn t_2_only_our_origin_and_the_configured_ones_pass() {
        let site = Site::new("https://mcp.example.com").unwrap();
        let allowed = AllowedOrigins::new(&site, &["https://app.example.com".to_owned()]);
        for good in [
            &[][..],
            &["https://mcp.example.com"],
            &["https://app.example.com"],
        ] {
            assert!(allowed.admit(&with(good)), "{good:?}");
        }
        for bad in [
            &["null"][..],
            &["http://mcp.example.com"],
            &["https://mcp.example.com:8443"],
            &["https://mcp.example.com.evil.example"],
            &["https://mcp.example.com", "https://evil.example"],
            &["http://localhost"],
        ] {
            assert!(!allowed.admit(&with(bad)), "{bad:?}");
        }
    }

    #[test]
    fn t_2_in_development_the_names_of_loopback_are_one_place() {
        let site = Site::new("http://127.0.0.1:8080").unwrap();
        let allowed = AllowedOrigins::new(&site, &[]);
        assert!(allowed.admit(&with(&["http://localhost:8080"])));
        assert!(!allowed.admit(&with(&["http://localhost:3000"])));
    }
}
