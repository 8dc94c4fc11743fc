//! The way out of a private network that its proxy variables name, for programs that run on a
//! person's machine. Nodes never read these variables.
//!
//! An `https` address is reached through `CONNECT` (RFC 9110 §9.3.6), so the proxy sees its host
//! and port alone. An `http` address is dialled directly: it stands in the same network.

use std::{
    error::Error as _,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::Uri;
use hyper::rt::{Read, Write};
use hyper_util::client::{legacy::connect::proxy::Tunnel, proxy::matcher::Matcher};
use tower::Service;

use crate::address::AllowedDestination;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a proxy opened no way. The text is for the person who runs the program.
#[derive(Debug, thiserror::Error)]
#[error("the proxy of HTTPS_PROXY: {0}")]
pub(crate) struct ProxyFailure(String);

/// Proxies by destination; none by default.
#[derive(Clone, Default)]
pub struct Proxies(Option<Arc<Matcher>>);

impl fmt::Debug for Proxies {
    /// Without addresses: they may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Proxies").field(&self.0.is_some()).finish()
    }
}

impl Proxies {
    /// From `HTTPS_PROXY`, or else `ALL_PROXY`, and `NO_PROXY`, each in upper or lower case.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let either = |name: &str| {
            let found = variable(name).or_else(|| variable(&name.to_ascii_lowercase()));
            found.filter(|value| !value.is_empty())
        };
        let Some(proxy) = either("HTTPS_PROXY").or_else(|| either("ALL_PROXY")) else {
            return Self::default();
        };
        let matcher = Matcher::builder()
            .https(proxy)
            .no(either("NO_PROXY").unwrap_or_default());
        Self(Some(Arc::new(matcher.build())))
    }

    /// The proxy itself, which has to be dialled although it is no destination.
    pub(crate) fn destination(&self) -> Option<AllowedDestination> {
        let somewhere = Uri::from_static("https://proxied.invalid/");
        let proxy = self.0.as_ref()?.intercept(&somewhere)?;
        let port = proxy.uri().port_u16().unwrap_or(80);
        Some(AllowedDestination::host(proxy.uri().host()?, port))
    }

    /// A connector that goes through the proxies. `direct` opens TCP connections.
    pub(crate) fn around<C>(&self, direct: C) -> Proxied<C> {
        Proxied {
            direct,
            proxies: self.clone(),
        }
    }
}

/// A connector that opens TCP connections, through a proxy where one is named.
#[derive(Debug, Clone)]
pub struct Proxied<C> {
    direct: C,
    proxies: Proxies,
}

impl<C, T> Service<Uri> for Proxied<C>
where
    C: Service<Uri, Response = T, Error: Into<BoxError>, Future: Send + 'static> + Clone,
    T: Read + Write + Unpin + Send + 'static,
{
    type Response = T;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.direct.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let proxies = self.proxies.0.as_ref();
        let Some(proxy) = proxies.and_then(|proxies| proxies.intercept(&uri)) else {
            let connecting = self.direct.call(uri);
            return Box::pin(async { connecting.await.map_err(Into::into) });
        };
        if proxy.uri().scheme_str() != Some("http") {
            let failure = ProxyFailure("it is not written http://HOST:PORT".to_owned());
            return Box::pin(async { Err(failure.into()) });
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.direct.clone());
        if let Some(login) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(login.clone());
        }
        let connecting = tunnel.call(uri);
        Box::pin(async {
            connecting.await.map_err(|error| {
                let cause = error.source().map(|cause| format!(": {cause}"));
                ProxyFailure(format!("{error}{}", cause.unwrap_or_default())).into()
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(variables: &[(&str, &str)], to: &'static str) -> Option<String> {
        let proxies = Proxies::read(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        });
        let proxy = proxies.0.as_ref()?.intercept(&Uri::from_static(to))?;
        Some(proxy.uri().to_string())
    }

    #[test]
    fn https_addresses_go_through_the_proxy_but_for_those_of_no_proxy() {
        let both = [
            ("https_proxy", "http://proxy.example:3128"),
            ("NO_PROXY", "intern.example,10.0.0.0/8"),
        ];
        let proxy = Some("http://proxy.example:3128/".to_owned());
        assert_eq!(way(&both, "https://mcp.example.com/mcp"), proxy);
        assert_eq!(way(&both, "https://a.intern.example/mcp"), None);
        assert_eq!(way(&both, "https://10.1.2.3/mcp"), None);
        assert_eq!(way(&both, "http://mcp.example.com/mcp"), None);
        assert_eq!(way(&both[1..], "https://mcp.example.com/mcp"), None);
        assert_eq!(way(&[("HTTPS_PROXY", "")], "https://mcp.example.com"), None);
        let all = [("ALL_PROXY", "http://proxy.example:3128")];
        assert_eq!(way(&all, "https://mcp.example.com/mcp"), proxy);
    }
}
