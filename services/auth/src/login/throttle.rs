//! Limits of sign-in and sign-up (`auth.md` L6, L15).
//!
//! Nobody is ever locked out: a used-up budget fills again by itself, and a browser in which the person has signed in before has a
//! budget of its own, so that a stranger's wrong tries do not keep the owner away (case 144).

use std::net::IpAddr;

use portolan_keys::{Keys, Purpose};
use portolan_model::{
    Timestamp,
    id::{TenantId, UserId},
};
use time::Duration;

use crate::rate::{Budget, Rates};

const ACCOUNT: Budget = Budget {
    burst: 10,
    per: Duration::minutes(10),
};
const ADDRESS: Budget = Budget {
    burst: 30,
    per: Duration::minutes(1),
};
const DISTINCT_ACCOUNTS: Budget = Budget {
    burst: 20,
    per: Duration::hours(1),
};
const SIGN_UPS_AN_HOUR: Budget = Budget {
    burst: 5,
    per: Duration::hours(1),
};
const SIGN_UPS_A_DAY: Budget = Budget {
    burst: 20,
    per: Duration::days(1),
};
/// New members of one workspace by its provider.
const JOINS_AN_HOUR: Budget = Budget {
    burst: 200,
    per: Duration::hours(1),
};
const JOINS_A_DAY: Budget = Budget {
    burst: 5000,
    per: Duration::days(1),
};
/// Looks at the provider of one workspace.
const LOOKS: Budget = Budget {
    burst: 30,
    per: Duration::hours(1),
};
const MAILS: Budget = Budget {
    burst: 5,
    per: Duration::hours(1),
};
/// A page with a sign-in form asks for a challenge when it is opened, and again every few minutes.
const CHALLENGES: Budget = Budget {
    burst: 60,
    per: Duration::minutes(1),
};
const CODES: Budget = Budget {
    burst: 5,
    per: Duration::minutes(5),
};
const MISSES: Budget = Budget {
    burst: 5,
    per: Duration::hours(1),
};
const HINTS: Budget = Budget {
    burst: 1,
    per: Duration::days(1),
};

/// The budgets of this process.
#[derive(Debug)]
pub struct Throttle {
    loopback_is_unthrottled: bool,
    accounts: Rates,
    addresses: Rates,
    distinct_accounts: Rates,
    seen_accounts: Rates,
    sign_ups_an_hour: Rates,
    sign_ups_a_day: Rates,
    mails: Rates,
    misses: Rates,
    hints: Rates,
    codes: Rates,
    challenges: Rates,
    joins_an_hour: Rates,
    joins_a_day: Rates,
    looks: Rates,
}

/// Too early: how long to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooEarly {
    /// Until a try has a chance.
    pub wait: Duration,
}

impl TooEarly {
    /// Whole seconds, rounded up, for `Retry-After`.
    pub fn seconds(self) -> i64 {
        self.wait.whole_seconds() + 1
    }
}

/// A try at signing in, paid for. Given back when the password was right.
#[derive(Debug)]
pub struct Try {
    account: String,
    distinct: Option<String>,
}

/// An account, known by a MAC of its address, so that budgets do not keep addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountKey(String);

impl AccountKey {
    /// Of a normalised address.
    pub fn new(keys: &Keys, address_norm: &str) -> Self {
        let mac = keys.mac(Purpose::Throttle, address_norm.as_bytes());
        Self(hex(&mac[..16]))
    }

    /// To be kept for a step later.
    pub(super) fn to_text(&self) -> String {
        self.0.clone()
    }

    /// What [`AccountKey::to_text`] gave.
    pub(super) fn from_text(text: String) -> Self {
        Self(text)
    }

    /// For what is bound to the account.
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

impl Throttle {
    /// Before somebody becomes a member by a workspace's provider.
    pub fn join(&self, tenant: TenantId, now: Timestamp) -> Result<(), TooEarly> {
        take(&self.joins_an_hour, &tenant.to_string(), now)?;
        take(&self.joins_a_day, &tenant.to_string(), now)
    }

    /// Before a workspace's provider, or what is to become one, is asked for its metadata.
    pub fn look(&self, tenant: TenantId, now: Timestamp) -> Result<(), TooEarly> {
        take(&self.looks, &tenant.to_string(), now)
    }

    /// Nothing used yet. `loopback_is_unthrottled` is for development, where every visitor comes from 127.0.0.1.
    pub fn new(loopback_is_unthrottled: bool) -> Self {
        Self {
            loopback_is_unthrottled,
            accounts: Rates::new(ACCOUNT),
            addresses: Rates::new(ADDRESS),
            distinct_accounts: Rates::new(DISTINCT_ACCOUNTS),
            seen_accounts: Rates::new(Budget {
                burst: 1,
                per: Duration::hours(1),
            }),
            sign_ups_an_hour: Rates::new(SIGN_UPS_AN_HOUR),
            sign_ups_a_day: Rates::new(SIGN_UPS_A_DAY),
            mails: Rates::new(MAILS),
            misses: Rates::new(MISSES),
            hints: Rates::new(HINTS),
            codes: Rates::new(CODES),
            joins_an_hour: Rates::new(JOINS_AN_HOUR),
            joins_a_day: Rates::new(JOINS_A_DAY),
            looks: Rates::new(LOOKS),
            challenges: Rates::new(CHALLENGES),
        }
    }

    /// Before a password is compared. `device` is the mark of a browser in which this account has signed in before.
    pub fn sign_in(
        &self,
        ip: IpAddr,
        account: &AccountKey,
        device: Option<&str>,
        now: Timestamp,
    ) -> Result<Try, TooEarly> {
        self.request(ip, now)?;
        let account_key = device.map_or_else(
            || account.0.clone(),
            |device| format!("{}:{device}", account.0),
        );
        take(&self.accounts, &account_key, now)?;
        let mut distinct = None;
        if device.is_none() && !self.is_exempt(ip) {
            let block = block(ip);
            let pair = format!("{block} {}", account.0);
            // Only an account that this block has not tried within the hour counts as another one.
            if self.seen_accounts.take(&pair, now).is_ok() {
                if let Err(early) = take(&self.distinct_accounts, &block, now) {
                    self.seen_accounts.give_back(&pair);
                    self.accounts.give_back(&account_key);
                    return Err(early);
                }
                distinct = Some(block);
            }
        }
        Ok(Try {
            account: account_key,
            distinct,
        })
    }

    /// The password was right: the try costs nothing.
    pub fn signed_in(&self, paid: &Try) {
        self.accounts.give_back(&paid.account);
        if let Some(block) = &paid.distinct {
            self.distinct_accounts.give_back(block);
        }
    }

    /// The password was wrong. True once a day, when it was so more than five times within the hour: then the person is told by mail.
    pub fn missed(&self, account: &AccountKey, now: Timestamp) -> bool {
        self.misses.take(&account.0, now).is_err() && self.hints.take(&account.0, now).is_ok()
    }

    /// Any unsafe request of the login pages, by address: IPv4 /32, IPv6 /64.
    pub fn request(&self, ip: IpAddr, now: Timestamp) -> Result<(), TooEarly> {
        if self.is_exempt(ip) {
            return Ok(());
        }
        take(&self.addresses, &block(ip), now)
    }

    /// A sign-up, by address (L15).
    pub fn sign_up(&self, ip: IpAddr, now: Timestamp) -> Result<(), TooEarly> {
        if self.is_exempt(ip) {
            return Ok(());
        }
        let block = block(ip);
        take(&self.sign_ups_an_hour, &block, now)?;
        take(&self.sign_ups_a_day, &block, now)
    }

    /// A message to an address, whether or not it has an account.
    pub fn mail(&self, account: &AccountKey, now: Timestamp) -> Result<(), TooEarly> {
        take(&self.mails, &account.0, now)
    }

    /// Something for an authenticator to sign, or what it signed, by address.
    pub fn challenge(&self, ip: IpAddr, now: Timestamp) -> Result<(), TooEarly> {
        if self.is_exempt(ip) {
            return Ok(());
        }
        take(&self.challenges, &block(ip), now)
    }

    /// A code of a second factor: five tries in five minutes, whatever browser they come from (L11).
    pub fn second_factor(&self, user: UserId, now: Timestamp) -> Result<(), TooEarly> {
        take(&self.codes, &user.to_string(), now)
    }

    /// The code was right: the try costs nothing.
    pub fn second_factor_was_right(&self, user: UserId) {
        self.codes.give_back(&user.to_string());
    }

    fn is_exempt(&self, ip: IpAddr) -> bool {
        self.loopback_is_unthrottled && ip.is_loopback()
    }
}

fn take(rates: &Rates, key: &str, now: Timestamp) -> Result<(), TooEarly> {
    rates.take(key, now).map_err(|wait| TooEarly { wait })
}

/// What one attacker surely has: a single IPv4 address, a /64 of IPv6.
fn block(ip: IpAddr) -> String {
    match ip.to_canonical() {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

#[cfg(test)]
mod tests {
    use portolan_keys::MasterSecret;

    use super::*;

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    fn account(name: &str) -> AccountKey {
        AccountKey::new(
            &Keys::new(&MasterSecret::from_bytes([1; 32]), &[]).unwrap(),
            name,
        )
    }

    fn ip(n: u16) -> IpAddr {
        IpAddr::V6(std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, n, 0, 0, 0, 1))
    }

    #[test]
    fn case_144_the_eleventh_wrong_try_waits_and_a_known_browser_does_not() {
        let throttle = Throttle::new(false);
        let ann = account("ann@acme.example");
        for n in 0..10 {
            throttle.sign_in(ip(n), &ann, None, START).unwrap();
        }
        let early = throttle.sign_in(ip(99), &ann, None, START).unwrap_err();
        assert_eq!(early.wait, Duration::minutes(1), "then one a minute");
        throttle
            .sign_in(ip(1), &ann, Some("laptop"), START)
            .unwrap();
        throttle
            .sign_in(ip(99), &account("bob@acme.example"), None, START)
            .unwrap();
        throttle
            .sign_in(ip(99), &ann, None, START + Duration::minutes(1))
            .unwrap();
    }

    #[test]
    fn l6_a_right_password_costs_nothing() {
        let throttle = Throttle::new(false);
        let ann = account("ann@acme.example");
        for n in 0..25 {
            let paid = throttle.sign_in(ip(n), &ann, None, START).unwrap();
            throttle.signed_in(&paid);
        }
    }

    #[test]
    fn case_145_many_accounts_from_one_block_are_stopped() {
        let throttle = Throttle::new(false);
        let mut now = START;
        let mut passed = 0;
        for n in 0..200 {
            // Slow enough for the budget of requests.
            now += Duration::seconds(3);
            let host = IpAddr::V6(std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 7, 0, 0, 0, n));
            if throttle
                .sign_in(host, &account(&format!("user{n}@acme.example")), None, now)
                .is_ok()
            {
                passed += 1;
            }
        }
        assert!(
            (20..=24).contains(&passed),
            "{passed} accounts in ten minutes from one /64"
        );
        throttle
            .sign_in(ip(8), &account("user199@acme.example"), None, now)
            .unwrap();
    }

    #[test]
    fn l6_one_address_has_thirty_requests_a_minute() {
        let throttle = Throttle::new(false);
        let v4: IpAddr = "203.0.113.7".parse().unwrap();
        for _ in 0..30 {
            throttle.request(v4, START).unwrap();
        }
        assert_eq!(
            throttle.request(v4, START),
            Err(TooEarly {
                wait: Duration::seconds(2)
            })
        );
        assert_eq!(
            throttle.request("203.0.113.8".parse().unwrap(), START),
            Ok(())
        );
    }

    #[test]
    fn l15_sign_ups_are_five_an_hour_and_l7_mails_five_an_hour() {
        let throttle = Throttle::new(false);
        for _ in 0..5 {
            throttle.sign_up(ip(1), START).unwrap();
            throttle.mail(&account("ann@acme.example"), START).unwrap();
        }
        assert!(throttle.sign_up(ip(1), START).is_err());
        assert!(throttle.mail(&account("ann@acme.example"), START).is_err());
        let local = Throttle::new(true);
        for _ in 0..50 {
            local.sign_up("127.0.0.1".parse().unwrap(), START).unwrap();
        }
    }

    #[test]
    fn l6_after_five_misses_there_is_one_hint_a_day() {
        let throttle = Throttle::new(false);
        let ann = account("ann@acme.example");
        let hints = (0..40)
            .filter(|n| throttle.missed(&ann, START + Duration::minutes(*n)))
            .count();
        assert_eq!(hints, 1);
    }
}
