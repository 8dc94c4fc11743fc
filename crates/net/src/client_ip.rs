//! Address of the client, taken from headers only as far as the proxies in between are ours
//! (AUTH-S10).

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use http::header::{self, HeaderMap, HeaderName};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use portolan_config::Form;

/// Which header our proxies write. Exactly one is read: a proxy that writes one of them passes a
/// forged other through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProxyHeader {
    /// `X-Forwarded-For`, what nearly every proxy appends to.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

portolan_config::words!(ProxyHeader {
    XForwardedFor = "x-forwarded-for",
    Forwarded = "forwarded",
});

/// A network of proxies of ours, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyNetwork(pub IpNet);

impl portolan_config::Value for ProxyNetwork {
    const FORM: Form = Form::Text("a network such as 10.0.0.0/8");
    fn parse(text: &str) -> Result<Self, Box<dyn Error + Send + Sync>> {
        text.parse()
            .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
            .map(Self)
            .map_err(|_| "is not a network".into())
    }
    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// The proxies in front of us. Empty: the peer of the connection is the client.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies {
    nets: Vec<IpNet>,
    header: ProxyHeader,
}

impl TrustedProxies {
    /// Proxies by address block, and the header that they write.
    pub fn new(nets: Vec<IpNet>, header: ProxyHeader) -> Self {
        Self { nets, header }
    }

    /// Returns the address of the client. It is the peer, or, if the peer is one of our proxies,
    /// the nearest address that is none of them, read from the right. An unreadable entry ends the
    /// walk, because everything left of it may be forged.
    pub fn client_ip(&self, peer: SocketAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = plain(peer.ip());
        if self.nets.is_empty() || !self.trusts(client) {
            return client;
        }
        let (name, read): (HeaderName, fn(&str) -> Option<IpAddr>) = match self.header {
            ProxyHeader::XForwardedFor => (HeaderName::from_static("x-forwarded-for"), address),
            ProxyHeader::Forwarded => (header::FORWARDED, forwarded_for),
        };
        for value in headers.get_all(name).iter().rev() {
            let Ok(value) = value.to_str() else {
                return client;
            };
            for part in value.rsplit(',') {
                let Some(next) = read(part.trim()) else {
                    return client;
                };
                client = plain(next);
                if !self.trusts(client) {
                    return client;
                }
            }
        }
        client
    }

    /// True for a proxy of ours.
    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        self.nets.iter().any(|net| net.contains(&address))
    }
}

/// The block of an address that logs and throttles use: /24 and /48, what one household or one site
/// has.
pub fn block(address: IpAddr) -> IpNet {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            let net = Ipv4Addr::new(a, b, c, 0);
            Ipv4Net::new(net, 24).map_or_else(|_| IpNet::from(address), IpNet::V4)
        }
        IpAddr::V6(v6) => {
            let [a, b, c, ..] = v6.segments();
            let net = Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0);
            Ipv6Net::new(net, 48).map_or_else(|_| IpNet::from(address), IpNet::V6)
        }
    }
}

/// Returns the network block of the address: /24 or /64, the addresses that share one link.
pub fn network_block(address: IpAddr) -> IpNet {
    let bits = if address.is_ipv4() { 24 } else { 64 };
    IpNet::new(address, bits).map_or_else(|_| IpNet::from(address), |net| net.trunc())
}

/// Parses an address or a network that a person entered into a network without host bits:
/// `192.0.2.7` becomes `192.0.2.7/32`.
pub fn network(text: &str) -> Option<String> {
    let net = match text.parse::<IpNet>() {
        Ok(net) => net,
        Err(_) => IpNet::from(plain(text.parse().ok()?)),
    };
    Some(net.trunc().to_string())
}

/// IPv4 that came in through a dual-stack socket is IPv4.
fn plain(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]:4711`.
fn address(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    if let Ok(socket) = text.parse::<SocketAddr>() {
        return Some(socket.ip());
    }
    text.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

/// The `for` parameter of one element of `Forwarded`.
fn forwarded_for(element: &str) -> Option<IpAddr> {
    element.split(';').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("for")
            .then(|| address(value.trim().trim_matches('"')))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behind(header: ProxyHeader) -> TrustedProxies {
        TrustedProxies::new(
            vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()],
            header,
        )
    }

    fn ask(proxies: &TrustedProxies, peer: &str, lines: &[(&'static str, &str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        proxies
            .client_ip(peer.parse().unwrap(), &headers)
            .to_string()
    }

    #[test]
    fn a_network_is_written_without_the_bits_of_a_host() {
        for (text, network_) in [
            ("192.0.2.7", Some("192.0.2.7/32")),
            ("192.0.2.7/24", Some("192.0.2.0/24")),
            ("2001:db8::7", Some("2001:db8::7/128")),
            ("192.0.2.0/33", None),
            ("example.com", None),
            ("", None),
        ] {
            assert_eq!(network(text).as_deref(), network_, "{text}");
        }
    }

    #[test]
    fn forwarding_headers_of_a_stranger_are_ignored() {
        // AUTH-S10
        let line = [("x-forwarded-for", "1.1.1.1"), ("forwarded", "for=2.2.2.2")];
        assert_eq!(
            ask(&behind(ProxyHeader::XForwardedFor), "9.9.9.9:1", &line),
            "9.9.9.9"
        );
        assert_eq!(
            ask(&TrustedProxies::default(), "10.0.0.1:1", &line),
            "10.0.0.1"
        );
    }

    #[test]
    fn the_nearest_address_that_is_no_proxy_of_ours_is_the_client() {
        let xff = behind(ProxyHeader::XForwardedFor);
        for (line, expected) in [
            ("8.8.8.8", "8.8.8.8"),
            ("6.6.6.6, 8.8.8.8, 10.1.1.1", "8.8.8.8"),
            ("6.6.6.6, garbage, 10.1.1.1", "10.1.1.1"),
            ("8.8.8.8:4711", "8.8.8.8"),
            ("[2606:4700::1]:443", "2606:4700::1"),
            ("::ffff:8.8.8.8", "8.8.8.8"),
            ("", "10.0.0.9"),
        ] {
            assert_eq!(
                ask(&xff, "10.0.0.9:1", &[("x-forwarded-for", line)]),
                expected,
                "{line}"
            );
        }
        let two = [
            ("x-forwarded-for", "6.6.6.6"),
            ("x-forwarded-for", "8.8.8.8"),
        ];
        assert_eq!(ask(&xff, "[::ffff:10.0.0.9]:1", &two), "8.8.8.8");
    }

    #[test]
    fn only_the_configured_header_is_read() {
        let both = [
            ("x-forwarded-for", "1.1.1.1"),
            (
                "forwarded",
                "for=\"[2606:4700::2]:1\";proto=https;by=10.0.0.1",
            ),
        ];
        assert_eq!(
            ask(&behind(ProxyHeader::XForwardedFor), "10.0.0.9:1", &both),
            "1.1.1.1"
        );
        assert_eq!(
            ask(&behind(ProxyHeader::Forwarded), "10.0.0.9:1", &both),
            "2606:4700::2"
        );
        assert_eq!(
            ask(
                &behind(ProxyHeader::Forwarded),
                "10.0.0.9:1",
                &[("forwarded", "for=_hidden")]
            ),
            "10.0.0.9"
        );
    }

    #[test]
    fn blocks_are_what_one_household_has() {
        assert_eq!(
            block("203.0.113.77".parse().unwrap()).to_string(),
            "203.0.113.0/24"
        );
        assert_eq!(
            block("2001:db8:1:2::3".parse().unwrap()).to_string(),
            "2001:db8:1::/48"
        );
    }

    #[test]
    fn s10_a_network_is_what_shares_one_link() {
        for (address, network) in [
            ("203.0.113.77", "203.0.113.0/24"),
            ("2001:db8:1:2::3", "2001:db8:1:2::/64"),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(network_block(address).to_string(), network);
        }
    }
}
