//! Rules for the external addresses and names that may be dialled.
//!
//! Everything here is a decision over values; nothing resolves and nothing connects. The rules are
//! the address guard of the design (AUTH-C2, MCP-AB-17): only *global unicast* addresses pass, in
//! any spelling. Names that mean "this machine" or "this network" are refused before they are
//! resolved.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use portolan_config::Form;
use url::{Host, Url};

/// Ports behind which no HTTP API lives and where an HTTP request could do harm: the list of the
/// Fetch standard ("bad ports") and the stores and control planes of a data centre.
const REFUSED_PORTS: &[u16] = &[
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101,
    102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427,
    445, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 873,
    989, 990, 993, 995, 1433, 1521, 1719, 1720, 1723, 2049, 2181, 2375, 2376, 2379, 2380, 3306,
    3389, 3659, 4045, 4190, 5060, 5061, 5432, 5433, 5672, 5900, 5984, 6000, 6379, 6380, 6566, 6665,
    6666, 6667, 6668, 6669, 6679, 6697, 7000, 7001, 9042, 9092, 10250, 10255, 11211, 15672, 16379,
    26379, 27017, 27018,
];

/// Last labels of names that mean this machine or this network (RFC 6761, RFC 6762, RFC 8375,
/// ICANN's `internal`).
const REFUSED_SUFFIXES: &[&str] = &[
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "lan",
    "home",
    "corp",
    "private",
    "home.arpa",
    "in-addr.arpa",
    "ip6.arpa",
];

/// True if the address is a global unicast address that the internet routes: not private, loopback,
/// link-local, shared, documentation, benchmarking, multicast or reserved. Forms that carry an IPv4
/// address inside an IPv6 one (mapped, compatible, 6to4, Teredo, NAT64) do not pass either. RFC
/// 6890 and its registries.
pub fn is_global_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_global_v4(v4),
        IpAddr::V6(v6) => is_global_v6(v6),
    }
}

#[expect(clippy::match_same_arms, reason = "one arm a reason")]
fn is_global_v4(address: Ipv4Addr) -> bool {
    match address.octets() {
        // "this network", private, loopback
        [0 | 10 | 127, ..] => false,
        // shared address space (carrier NAT; also the metadata address of one cloud)
        [100, 64..=127, ..] => false,
        // link-local, with the metadata addresses of most clouds
        [169, 254, ..] => false,
        // the platform address of one cloud: public by number, answers only inside
        [168, 63, 129, 16] => false,
        [172, 16..=31, ..] | [192, 168, ..] => false,
        // protocol assignments, documentation, 6to4 relays, AS112, AMT
        [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [192, 31, 196, _]
        | [192, 52, 193, _]
        | [192, 175, 48, _] => false,
        // benchmarking, documentation
        [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => false,
        // multicast, reserved, broadcast
        [224..=255, ..] => false,
        _ => true,
    }
}

fn is_global_v6(address: Ipv6Addr) -> bool {
    let [s0, s1, ..] = address.segments();
    // Only 2000::/3 has ever been given out as global unicast. This leaves out ::, ::1, mapped
    // and compatible IPv4, NAT64 (64:ff9b::/96 and 64:ff9b:1::/48), the discard prefix, unique
    // local, link-local, site-local and multicast.
    if s0 & 0xe000 != 0x2000 {
        return false;
    }
    // 2001::/23 (Teredo, ORCHID, benchmarking), 2001:db8::/32 and 3fff::/20 (documentation),
    // 2002::/16 (6to4)
    !matches!(
        (s0, s1),
        (0x2001, 0..0x0200 | 0x0db8) | (0x2002, _) | (0x3fff, 0..0x1000)
    )
}

/// True for addresses that no allowance admits: unspecified, link-local (metadata services),
/// multicast, broadcast, and IPv6 forms that smuggle an IPv4 address.
pub(crate) fn is_never_allowed(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.octets()[0] == 0 || v4.is_link_local() || v4.octets()[0] >= 224,
        IpAddr::V6(v6) => {
            let [s0, ..] = v6.segments();
            v6.is_unspecified()
                || v6.to_ipv4_mapped().is_some()
                || (s0 & 0xffc0) == 0xfe80
                || v6.is_multicast()
                || s0 == 0x2002
                || s0 == 0x0064
                || v6 == Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254)
        }
    }
}

/// True if the name stands for this machine or this network; it is refused without resolving it. A
/// single label is such a name too: only a local search list could complete it.
pub fn is_local_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    if !name.contains('.') {
        return true;
    }
    REFUSED_SUFFIXES.iter().any(|suffix| {
        name.len() > suffix.len()
            && name.is_char_boundary(name.len() - suffix.len())
            && name[name.len() - suffix.len()..].eq_ignore_ascii_case(suffix)
            && name.as_bytes()[name.len() - suffix.len() - 1] == b'.'
    })
}

/// True if no HTTP API is expected behind the port.
pub fn is_refused_port(port: u16) -> bool {
    REFUSED_PORTS.binary_search(&port).is_ok()
}

/// Reason why a URL was refused before anything was resolved. The text may be shown to the person
/// who entered the URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlFault {
    /// Not an absolute URL as the WHATWG URL standard reads it.
    Unreadable,
    /// A scheme other than `http` and `https`.
    Scheme,
    /// `http` where only `https` is admitted (MCP-AB-16).
    PlainHttp,
    /// A user name or password inside the URL.
    UserInfo,
    /// No host.
    NoHost,
    /// A port on which no HTTP API is expected.
    Port(u16),
    /// A name of this machine or of a private network.
    LocalName,
}

impl fmt::Display for UrlFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable => {
                f.write_str("it is not a complete URL; write it like https://api.example.com/v1")
            }
            Self::Scheme => f.write_str("only https:// URLs are called"),
            Self::PlainHttp => f.write_str("http:// is not encrypted; use the https:// address"),
            Self::UserInfo => f.write_str(
                "a user name or password in a URL is not sent; set it as a credential instead",
            ),
            Self::NoHost => f.write_str("it names no host"),
            Self::Port(port) => write!(f, "port {port} is not a port of an HTTP API"),
            Self::LocalName => {
                f.write_str("the host is a name of a private network; only public hosts are called")
            }
        }
    }
}

/// One destination outside the rules that the operator admits: exactly this host as it stands in
/// the URL, exactly this port. The development demo API is the usual case. An allowance for an
/// address admits the literal address only, not a name that happens to resolve to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedDestination {
    host: AllowedHost,
    port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum AllowedHost {
    Address(IpAddr),
    Name(String),
}

impl AllowedDestination {
    /// Admits a literal address and port.
    pub const fn address(address: IpAddr, port: u16) -> Self {
        Self {
            host: AllowedHost::Address(address),
            port,
        }
    }

    /// Admits a host as written in a URL (a name, or an address with or without brackets) and a
    /// port.
    pub fn host(host: &str, port: u16) -> Self {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let host = match bare.parse() {
            Ok(address) => AllowedHost::Address(address),
            Err(_) => AllowedHost::Name(bare.trim_end_matches('.').to_ascii_lowercase()),
        };
        Self { host, port }
    }

    fn matches_address(&self, address: IpAddr, port: u16) -> bool {
        self.port == port && self.host == AllowedHost::Address(address)
    }

    fn matches_name(&self, name: &str, port: u16) -> bool {
        self.port == port
            && matches!(&self.host, AllowedHost::Name(own) if own.eq_ignore_ascii_case(name.trim_end_matches('.')))
    }
}

impl portolan_config::Value for AllowedDestination {
    const FORM: Form = Form::Text("host:port");
    fn parse(text: &str) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let (host, port) = text.rsplit_once(':').ok_or("is not host:port")?;
        let port = port.parse().map_err(|_| "has no port number")?;
        Ok(Self::host(host, port))
    }
    fn text(&self) -> String {
        match &self.host {
            AllowedHost::Address(address) => SocketAddr::new(*address, self.port).to_string(),
            AllowedHost::Name(name) => format!("{name}:{}", self.port),
        }
    }
}

/// Destination of a URL, as far as its text shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Destination<'a> {
    Address(IpAddr),
    Name(&'a str),
}

/// Decision of the guard about a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressVerdict {
    /// Named by an allowance.
    Allowed,
    /// To be held to the general rules.
    General,
}

/// The rules about URLs and addresses of one egress client.
#[derive(Debug, Clone, Default)]
pub(crate) struct AddressRules {
    pub(crate) allow: Vec<AllowedDestination>,
    pub(crate) allow_plain_http: bool,
    pub(crate) any_destination: bool,
}

/// A refusal by [`AddressRules`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressRefusal {
    Url(UrlFault),
    Address,
}

impl AddressRules {
    pub(crate) fn verdict(&self, destination: Destination<'_>, port: u16) -> AddressVerdict {
        let allowed = match destination {
            Destination::Address(address) => {
                self.allow.iter().any(|a| a.matches_address(address, port))
                    && !is_never_allowed(address)
            }
            Destination::Name(name) => self.allow.iter().any(|a| a.matches_name(name, port)),
        };
        if allowed {
            AddressVerdict::Allowed
        } else {
            AddressVerdict::General
        }
    }

    /// Checks everything that the text of a URL shows: scheme, credentials, port, host.
    pub(crate) fn check_url(&self, url: &Url) -> Result<(), AddressRefusal> {
        let plain = match url.scheme() {
            "https" => false,
            "http" => true,
            _ => return Err(AddressRefusal::Url(UrlFault::Scheme)),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(AddressRefusal::Url(UrlFault::UserInfo));
        }
        let destination = match url.host() {
            Some(Host::Ipv4(address)) => Destination::Address(address.into()),
            Some(Host::Ipv6(address)) => Destination::Address(address.into()),
            Some(Host::Domain(name)) if !name.is_empty() => Destination::Name(name),
            _ => return Err(AddressRefusal::Url(UrlFault::NoHost)),
        };
        let port = url.port().unwrap_or(if plain { 80 } else { 443 });
        self.check_destination(destination, port, plain)
    }

    /// Checks a destination that is already parsed; the connector checks again with its own input.
    pub(crate) fn check_destination(
        &self,
        destination: Destination<'_>,
        port: u16,
        plain: bool,
    ) -> Result<(), AddressRefusal> {
        if self.verdict(destination, port) == AddressVerdict::Allowed {
            return Ok(());
        }
        let private = match destination {
            Destination::Address(address) if !is_global_unicast(address) => {
                Some(AddressRefusal::Address)
            }
            Destination::Name(name) if is_local_name(name) => {
                Some(AddressRefusal::Url(UrlFault::LocalName))
            }
            Destination::Address(_) | Destination::Name(_) => None,
        };
        if self.any_destination {
            // The port is the person's choice; tokens still go over the internet by TLS alone.
            return if plain && private.is_none() && !self.allow_plain_http {
                Err(AddressRefusal::Url(UrlFault::PlainHttp))
            } else {
                Ok(())
            };
        }
        if let Some(refusal) = private {
            return Err(refusal);
        }
        if is_refused_port(port) {
            return Err(AddressRefusal::Url(UrlFault::Port(port)));
        }
        if plain && !self.allow_plain_http {
            return Err(AddressRefusal::Url(UrlFault::PlainHttp));
        }
        Ok(())
    }

    /// Holds the addresses that a name resolved to: every one of them must pass, else none is
    /// dialled (AUTH-C2).
    pub(crate) fn check_resolved(
        &self,
        name: &str,
        port: u16,
        addresses: &[IpAddr],
    ) -> Result<(), AddressRefusal> {
        if self.any_destination {
            return Ok(());
        }
        let passes = match self.verdict(Destination::Name(name), port) {
            AddressVerdict::Allowed => addresses.iter().all(|address| !is_never_allowed(*address)),
            AddressVerdict::General => addresses.iter().all(|address| is_global_unicast(*address)),
        };
        if passes {
            Ok(())
        } else {
            Err(AddressRefusal::Address)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_refused_ports_is_sorted_for_the_search() {
        assert!(REFUSED_PORTS.is_sorted());
        for port in [22, 25, 5432, 6379] {
            assert!(is_refused_port(port), "{port}");
        }
        for port in [80, 443, 3000, 8000, 8080, 8443] {
            assert!(!is_refused_port(port), "{port}");
        }
    }

    #[test]
    fn addresses_of_public_services_pass() {
        for text in [
            "1.1.1.1",
            "93.184.216.34",
            "172.15.0.1",
            "172.32.0.1",
            "100.63.0.1",
            "192.169.0.1",
            "2606:4700::1111",
            "2a00:1450:4001::200e",
            "2001:4860:4860::8888",
        ] {
            assert!(is_global_unicast(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn single_labels_and_private_suffixes_are_local_names() {
        for name in [
            "redis",
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "metadata.google.internal",
            "x.local.",
            "a.home.arpa",
        ] {
            assert!(is_local_name(name), "{name}");
        }
        for name in [
            "example.com",
            "localhost.example.com",
            "mylocal.com",
            "notinternal.org.",
        ] {
            assert!(!is_local_name(name), "{name}");
        }
    }

    #[test]
    fn a_persons_own_program_calls_every_place_and_the_internet_by_tls_alone() {
        let rules = AddressRules {
            any_destination: true,
            ..AddressRules::default()
        };
        let check = |rules: &AddressRules, url: &str| rules.check_url(&Url::parse(url).unwrap());
        for url in [
            "http://localhost:3000/mcp",
            "http://127.0.0.1:22/mcp",
            "http://[::1]:5432/mcp",
            "http://nas.local/mcp",
            "http://192.168.1.2/mcp",
            "https://10.0.0.1/mcp",
            "https://mcp.example.com:25/mcp",
        ] {
            assert_eq!(check(&rules, url), Ok(()), "{url}");
            assert!(check(&AddressRules::default(), url).is_err(), "{url}");
        }
        let plain = Err(AddressRefusal::Url(UrlFault::PlainHttp));
        for url in ["http://mcp.example.com/mcp", "http://93.184.216.34/mcp"] {
            assert_eq!(check(&rules, url), plain, "{url}");
            let open = AddressRules {
                allow_plain_http: true,
                ..rules.clone()
            };
            assert_eq!(check(&open, url), Ok(()), "{url}");
        }
        for url in ["ftp://localhost/x", "https://me:secret@mcp.example.com/mcp"] {
            assert!(check(&rules, url).is_err(), "{url}");
        }
        let inside = ["10.0.0.1".parse().unwrap()];
        assert_eq!(
            rules.check_resolved("mcp.example.com", 443, &inside),
            Ok(())
        );
    }
}
