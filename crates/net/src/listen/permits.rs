//! How the connections of a listener are shared out among addresses (REVIEW-S-2).
//!
//! One address holds a bounded number of them, so that it cannot hold them all. The last permits
//! are kept for addresses that were authorised lately, so that many addresses together cannot keep
//! established clients out either. Proxies of ours stand for many clients, and are neither counted
//! nor refused.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::client_ip::TrustedProxies;

/// An address that was authorised counts as an established client for so long.
const ESTABLISHED_FOR: Duration = Duration::from_secs(3600);
/// A connection notes that its client is authorised no more often.
const NOTE_EVERY_SECS: u64 = 60;
/// Most addresses that are remembered as established.
const MOST_ESTABLISHED: usize = 100_000;

/// How the connections of one listener are shared out.
#[derive(Debug, Clone, Default)]
pub struct Sharing {
    /// Most connections of one address (IPv4) or one /64 (IPv6); more are refused. 0: no bound.
    pub per_address: usize,
    /// Permits that only addresses get which were authorised within the last hour.
    pub reserve: usize,
    /// Peers that are neither counted nor refused.
    pub proxies: TrustedProxies,
}

/// Why a connection is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionRefused {
    /// Its address holds as many as it may.
    Address,
    /// Only permits for established clients are left.
    Reserve,
}

impl ConnectionRefused {
    /// Value of the metric's label.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Reserve => "reserve",
        }
    }
}

/// The permits of one listener.
#[derive(Debug)]
pub(super) struct ConnectionPermits {
    sharing: Sharing,
    began: Instant,
    state: Mutex<PermitState>,
}

#[derive(Debug, Default)]
struct PermitState {
    held: HashMap<IpAddr, usize>,
    /// When an address was last authorised.
    established: HashMap<IpAddr, Instant>,
}

/// The permit of one connection; free again when dropped.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    permits: Arc<ConnectionPermits>,
    /// `None` for what is not counted.
    counted: Option<IpAddr>,
}

/// Reports from a connection's handlers to its listener.
#[derive(Debug)]
pub(crate) struct AuthorisationReport {
    permits: Arc<ConnectionPermits>,
    address: IpAddr,
    /// Seconds from the begin of the listener to the last note, and one; 0: never.
    noted: AtomicU64,
}

impl ConnectionPermits {
    pub(super) fn new(sharing: Sharing) -> Arc<Self> {
        Arc::new(Self {
            sharing,
            began: Instant::now(),
            state: Mutex::default(),
        })
    }

    /// Takes a permit for a connection of `peer`, where `free` more are left.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn take(
        self: &Arc<Self>,
        peer: IpAddr,
        free: usize,
    ) -> Result<ConnectionPermit, ConnectionRefused> {
        let permit = |counted| ConnectionPermit {
            permits: Arc::clone(self),
            counted,
        };
        let Sharing {
            per_address,
            reserve,
            proxies,
        } = &self.sharing;
        if *per_address == 0 && *reserve == 0 || proxies.trusts(peer.to_canonical()) {
            return Ok(permit(None));
        }
        let address = holder(peer);
        let mut state = self.state();
        if free < *reserve {
            let is_established = state
                .established
                .get(&address)
                .is_some_and(|at| at.elapsed() < ESTABLISHED_FOR);
            if !is_established {
                return Err(ConnectionRefused::Reserve);
            }
        }
        let held = state.held.entry(address).or_default();
        if *per_address > 0 && *held >= *per_address {
            return Err(ConnectionRefused::Address);
        }
        *held += 1;
        Ok(permit(Some(address)))
    }

    /// Returns the handle through which the connection of `peer` reports to its listener.
    pub(super) fn standing(self: &Arc<Self>, peer: IpAddr) -> Option<Arc<AuthorisationReport>> {
        (self.sharing.reserve > 0).then(|| {
            Arc::new(AuthorisationReport {
                permits: Arc::clone(self),
                address: holder(peer),
                noted: AtomicU64::new(0),
            })
        })
    }

    fn establish(&self, address: IpAddr) {
        let mut state = self.state();
        let established = &mut state.established;
        if established.len() >= MOST_ESTABLISHED && !established.contains_key(&address) {
            established.retain(|_, at| at.elapsed() < ESTABLISHED_FOR);
            if established.len() >= MOST_ESTABLISHED {
                return;
            }
        }
        established.insert(address, Instant::now());
    }

    fn state(&self) -> MutexGuard<'_, PermitState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let Some(address) = self.counted else { return };
        let mut state = self.permits.state();
        if let Some(held) = state.held.get_mut(&address) {
            *held -= 1;
            if *held == 0 {
                state.held.remove(&address);
            }
        }
    }
}

impl AuthorisationReport {
    /// Notes that the client of this connection is authorised. Cheap: it is called for each
    /// request.
    pub(crate) fn authorised(&self) {
        let now = self.permits.began.elapsed().as_secs() + 1;
        let noted = self.noted.load(Ordering::Relaxed);
        if noted == 0 || now - noted >= NOTE_EVERY_SECS {
            self.noted.store(now, Ordering::Relaxed);
            self.permits.establish(self.address);
        }
    }
}

/// Address by which connections are counted: an IPv4 address, or the /64 from which one IPv6 host
/// chooses its addresses.
fn holder(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use crate::client_ip::ProxyHeader;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn s2_an_address_holds_no_more_than_its_share_and_gets_it_back() {
        let permits = ConnectionPermits::new(Sharing {
            per_address: 2,
            reserve: 0,
            proxies: TrustedProxies::new(
                vec!["10.0.0.0/8".parse().unwrap()],
                ProxyHeader::XForwardedFor,
            ),
        });
        let first = permits.take(ip("192.0.2.1"), 10).unwrap();
        let _second = permits.take(ip("::ffff:192.0.2.1"), 10).unwrap();
        assert_eq!(
            permits.take(ip("192.0.2.1"), 10).unwrap_err(),
            ConnectionRefused::Address
        );
        let _other = permits.take(ip("192.0.2.2"), 10).unwrap();
        drop(first);
        let _again = permits.take(ip("192.0.2.1"), 10).unwrap();
        // One /64 is one holder, another is another.
        let _six = permits.take(ip("2001:db8:0:1::1"), 10).unwrap();
        let _six = permits.take(ip("2001:db8:0:1:ffff::2"), 10).unwrap();
        assert!(permits.take(ip("2001:db8:0:1::3"), 10).is_err());
        assert!(permits.take(ip("2001:db8:0:2::1"), 10).is_ok());
        let proxied: Vec<_> = (0..9)
            .map(|_| permits.take(ip("10.1.2.3"), 10).unwrap())
            .collect();
        assert_eq!(proxied.len(), 9);
        drop(proxied);
        assert_eq!(permits.state().held.len(), 3);
    }

    #[test]
    fn s2_the_last_places_are_for_addresses_that_were_authorised() {
        let permits = ConnectionPermits::new(Sharing {
            per_address: 0,
            reserve: 3,
            proxies: TrustedProxies::default(),
        });
        let (known, stranger) = (ip("192.0.2.1"), ip("192.0.2.2"));
        permits.standing(known).unwrap().authorised();
        assert!(permits.take(stranger, 3).is_ok());
        assert_eq!(
            permits.take(stranger, 2).unwrap_err(),
            ConnectionRefused::Reserve
        );
        assert!(permits.take(known, 0).is_ok());
    }
}
