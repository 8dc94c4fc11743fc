//! Settings of the listeners.

use std::net::SocketAddr;
use std::time::Duration;

use super::{BUFFER_BYTES, HEAD_WITHIN, HYPER_HEADERS, ListenLimits, Sharing};
use crate::client_ip::{ProxyHeader, ProxyNetwork, TrustedProxies};

portolan_config::config! {
    /// Listeners and proxies
    pub struct ListenConfig {
        /// Address of the public listener.
        listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 8080));
        /// Most connections that the public listener serves at once; more wait unaccepted. Each
        /// needs an open file, and a running call another one.
        listen_max_connections: usize = 40_000, in 1..=1_000_000;
        /// Most connections that one client address (IPv6: one /64) holds at the public listener;
        /// more are refused. Default: a twentieth of listen_max_connections, but at least 64, or
        /// half of them where that is less. 0: no limit, the default of `portolan dev`. Proxies in
        /// trusted_proxies are exempt; behind a proxy that is not named there, all clients have its
        /// address. Whatever this says, the last tenth of the listener is for addresses that were
        /// authorised within the last hour.
        listen_max_connections_per_address: Option<usize> = None, in 0..=1_000_000;
        /// Seconds after which a connection is closed on which no byte moves and no request runs.
        /// Keep it longer than a balancer in front keeps its idle connections.
        listen_idle_secs: u64 = 75, in 5..=3_600;
        /// Address of the second listener: /healthz, /readyz, /metrics. Never publish it.
        admin_listen: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 9090));
        /// Networks of proxies whose word on the client's address is believed, such as 10.0.0.0/8.
        trusted_proxies: Vec<ProxyNetwork> = Vec::new();
        /// The one header that the trusted proxies write.
        proxy_header: ProxyHeader = ProxyHeader::XForwardedFor;
    }
}

impl ListenConfig {
    /// The proxies in front.
    pub fn proxies(&self) -> TrustedProxies {
        let networks = self.trusted_proxies.iter().map(|network| network.0);
        TrustedProxies::new(networks.collect(), self.proxy_header)
    }

    /// The bounds of the public listener.
    pub fn limits(&self) -> ListenLimits {
        ListenLimits {
            connections: self.listen_max_connections,
            sharing: Sharing {
                per_address: self.per_address(),
                reserve: self.listen_max_connections / 10,
                proxies: self.proxies(),
            },
            buffer_bytes: BUFFER_BYTES,
            headers: HYPER_HEADERS,
            head_within: HEAD_WITHIN,
            idle: Duration::from_secs(self.listen_idle_secs),
        }
    }

    /// A twentieth of the listener, but enough for an office behind one address, and never more
    /// than half, unless the setting says otherwise.
    fn per_address(&self) -> usize {
        self.listen_max_connections_per_address.unwrap_or_else(|| {
            let enough = 64.min(self.listen_max_connections / 2);
            (self.listen_max_connections / 20).max(enough).max(1)
        })
    }
}

#[cfg(test)]
mod tests {
    use portolan_config::{Config, Values};

    use super::*;

    #[test]
    fn s2_an_address_has_a_twentieth_of_the_listener_unless_set() {
        let share = |pairs: &[(&str, &str)]| {
            let mut values = Values::default();
            for (name, value) in pairs {
                values.set(name, *value);
            }
            let config = ListenConfig::read(&values).unwrap();
            config.limits().sharing.per_address
        };
        assert_eq!(share(&[]), 2_000);
        for (connections, expected) in [("1", 1), ("10", 5), ("100", 50), ("1000", 64)] {
            let pairs = [("listen_max_connections", connections)];
            assert_eq!(share(&pairs), expected, "{connections}");
        }
        let set = |value| share(&[("listen_max_connections_per_address", value)]);
        assert_eq!((set("0"), set("7")), (0, 7));
    }
}
