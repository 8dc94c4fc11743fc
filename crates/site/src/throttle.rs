//! Limits of sign-in and sign-up (AUTH-L6, AUTH-L15).
//!
//! No account is ever locked out: a used-up budget refills by itself. A browser in which the person
//! has signed in before has a budget of its own, so that a stranger's wrong attempts do not keep
//! the owner out (CASE-144).

pub mod tries;

use std::net::IpAddr;

use portolan_keys::{Keys, Purpose};
use portolan_model::{
    Timestamp,
    id::{AccessTokenId, TenantId, UserId},
};
use time::Duration;

use crate::{
    rate::Budget,
    throttle::tries::{Counted, Tries},
};

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

/// New members that join one workspace by its provider.
const JOINS_AN_HOUR: Budget = Budget {
    burst: 200,
    per: Duration::hours(1),
};

const JOINS_A_DAY: Budget = Budget {
    burst: 5000,
    per: Duration::days(1),
};

/// Metadata requests to the provider of one workspace.
const LOOKS: Budget = Budget {
    burst: 30,
    per: Duration::hours(1),
};

const MAILS: Budget = Budget {
    burst: 5,
    per: Duration::hours(1),
};

/// Challenges. A page with a sign-in form requests one when it is opened, and again every few
/// minutes.
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

/// Questions to all nodes for the sessions of a workspace, of one person or token (PLAY-8).
const SESSION_LOOKS: Budget = Budget {
    burst: 60,
    per: Duration::minutes(1),
};

/// Requests of one address for workspace tokens (API-22). Runners of a CI system share addresses.
const WORKSPACE_TOKEN_REQUESTS: Budget = Budget {
    burst: 60,
    per: Duration::minutes(1),
};

/// Tokens that the token endpoint gives for one workspace (API-22).
const ISSUED_TOKENS: Budget = Budget {
    burst: 60,
    per: Duration::minutes(1),
};

/// Requests of one token of the management API (API-10).
pub const API_REQUESTS: Budget = Budget {
    burst: 300,
    per: Duration::minutes(1),
};

/// The budgets, counted over all nodes.
#[derive(Debug)]
pub struct Throttle {
    loopback_is_unthrottled: bool,
    accounts: Counted,
    addresses: Counted,
    distinct_accounts: Counted,
    seen_accounts: Counted,
    sign_ups_an_hour: Counted,
    sign_ups_a_day: Counted,
    mails: Counted,
    misses: Counted,
    hints: Counted,
    codes: Counted,
    challenges: Counted,
    joins_an_hour: Counted,
    joins_a_day: Counted,
    looks: Counted,
    session_looks: Counted,
    api_requests: Counted,
    workspace_token_requests: Counted,
    issued_tokens: Counted,
}

/// The error for an empty budget, with the time to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooEarly {
    /// Time until the budget has one attempt again.
    pub wait: Duration,
}

impl TooEarly {
    /// Whole seconds, rounded up, for `Retry-After`.
    pub fn seconds(self) -> i64 {
        self.wait.whole_seconds() + 1
    }
}

/// One sign-in attempt, taken from the budgets. It is given back when the password was right.
#[derive(Debug)]
pub struct Try {
    account: String,
    distinct: Option<String>,
}

/// The key of an account: a MAC of its address, so that budgets do not store addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountKey(String);

impl AccountKey {
    /// Makes the key of a normalised address.
    pub fn new(keys: &Keys, address_norm: &str) -> Self {
        let mac = keys.mac(Purpose::Throttle, address_norm.as_bytes());
        Self(hex(&mac[..16]))
    }

    /// The key as text, for a later step.
    pub fn to_text(&self) -> String {
        self.0.clone()
    }

    /// Reads the text that [`AccountKey::to_text`] writes.
    pub fn from_text(text: String) -> Self {
        Self(text)
    }

    /// The key as bytes, for data that is bound to the account.
    pub fn as_bytes(&self) -> &[u8] {
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
    /// Takes from the budget of new members that join by a workspace's provider.
    pub async fn join(&self, tenant: TenantId, now: Timestamp) -> Result<(), TooEarly> {
        self.joins_an_hour.take(&tenant.to_string(), now).await?;
        self.joins_a_day.take(&tenant.to_string(), now).await
    }

    /// Takes from the budget of metadata requests to a workspace's provider, present or future.
    pub async fn look(&self, tenant: TenantId, now: Timestamp) -> Result<(), TooEarly> {
        self.looks.take(&tenant.to_string(), now).await
    }

    /// A question to all nodes for sessions. `who` is a person or a token.
    pub async fn session_look(&self, who: &str, now: Timestamp) -> Result<(), TooEarly> {
        self.session_looks.take(who, now).await
    }

    /// Creates full budgets. `loopback_is_unthrottled` is for development, where every request
    /// comes from 127.0.0.1.
    pub fn new(loopback_is_unthrottled: bool, tries: &Tries) -> Self {
        let count = |name, budget| Counted::new(name, budget, tries);
        Self {
            loopback_is_unthrottled,
            accounts: count("auth:accounts", ACCOUNT),
            addresses: count("auth:addresses", ADDRESS),
            distinct_accounts: count("auth:distinct_accounts", DISTINCT_ACCOUNTS),
            seen_accounts: count(
                "auth:seen_accounts",
                Budget {
                    burst: 1,
                    per: Duration::hours(1),
                },
            ),
            sign_ups_an_hour: count("auth:sign_ups_an_hour", SIGN_UPS_AN_HOUR),
            sign_ups_a_day: count("auth:sign_ups_a_day", SIGN_UPS_A_DAY),
            mails: count("auth:mails", MAILS),
            misses: count("auth:misses", MISSES),
            hints: count("auth:hints", HINTS),
            codes: count("auth:codes", CODES),
            joins_an_hour: count("auth:joins_an_hour", JOINS_AN_HOUR),
            joins_a_day: count("auth:joins_a_day", JOINS_A_DAY),
            looks: count("auth:looks", LOOKS),
            session_looks: count("auth:session_looks", SESSION_LOOKS),
            challenges: count("auth:challenges", CHALLENGES),
            api_requests: count("auth:api_requests", API_REQUESTS),
            workspace_token_requests: count(
                "auth:workspace_token_requests",
                WORKSPACE_TOKEN_REQUESTS,
            ),
            issued_tokens: count("auth:issued_tokens", ISSUED_TOKENS),
        }
    }

    /// Takes one sign-in attempt before the password is compared. `device` names a browser in which
    /// this account has signed in before.
    pub async fn sign_in(
        &self,
        ip: IpAddr,
        account: &AccountKey,
        device: Option<&str>,
        now: Timestamp,
    ) -> Result<Try, TooEarly> {
        self.request(ip, now).await?;
        let account_key = device.map_or_else(
            || account.0.clone(),
            |device| format!("{}:{device}", account.0),
        );
        self.accounts.take(&account_key, now).await?;
        let mut distinct = None;
        if device.is_none() && !self.is_exempt(ip) {
            let block = block(ip);
            let pair = format!("{block} {}", account.0);
            // An account counts as another one only if this block has not tried it within the hour.
            if self.seen_accounts.take(&pair, now).await.is_ok() {
                if let Err(early) = self.distinct_accounts.take(&block, now).await {
                    self.seen_accounts.give_back(&pair).await;
                    self.accounts.give_back(&account_key).await;
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

    /// Gives the attempt back after a right password.
    pub async fn signed_in(&self, paid: &Try) {
        self.accounts.give_back(&paid.account).await;
        if let Some(block) = &paid.distinct {
            self.distinct_accounts.give_back(block).await;
        }
    }

    /// Counts a wrong password. Returns true once a day, after more than five within the hour: the
    /// person then gets a message.
    pub async fn missed(&self, account: &AccountKey, now: Timestamp) -> bool {
        self.misses.take(&account.0, now).await.is_err()
            && self.hints.take(&account.0, now).await.is_ok()
    }

    /// Takes from the address's budget for unsafe requests of the login pages: IPv4 /32, IPv6 /64.
    pub async fn request(&self, ip: IpAddr, now: Timestamp) -> Result<(), TooEarly> {
        if self.is_exempt(ip) {
            return Ok(());
        }
        self.addresses.take(&block(ip), now).await
    }

    /// Takes a sign-up from the budget of its address (AUTH-L15).
    pub async fn sign_up(&self, ip: IpAddr, now: Timestamp) -> Result<(), TooEarly> {
        if self.is_exempt(ip) {
            return Ok(());
        }
        let block = block(ip);
        self.sign_ups_an_hour.take(&block, now).await?;
        self.sign_ups_a_day.take(&block, now).await
    }

    /// Takes a message to an address, with or without an account.
    pub async fn mail(&self, account: &AccountKey, now: Timestamp) -> Result<(), TooEarly> {
        self.mails.take(&account.0, now).await
    }

    /// Takes a request that sends a message.
    pub async fn message(
        &self,
        ip: IpAddr,
        account: &AccountKey,
        now: Timestamp,
    ) -> Result<(), TooEarly> {
        self.request(ip, now).await?;
        self.mail(account, now).await
    }

    /// Takes a sign-up and the message that it sends.
    pub async fn new_account(
        &self,
        ip: IpAddr,
        account: &AccountKey,
        now: Timestamp,
    ) -> Result<(), TooEarly> {
        self.sign_up(ip, now).await?;
        self.mail(account, now).await
    }

    /// Takes a request for a challenge, or a signed one, from the budget of its address.
    pub async fn challenge(&self, ip: IpAddr, now: Timestamp) -> Result<(), TooEarly> {
        if self.is_exempt(ip) {
            return Ok(());
        }
        self.challenges.take(&block(ip), now).await
    }

    /// Takes a code of a second factor: five in five minutes, over all browsers (AUTH-L11).
    pub async fn second_factor(&self, user: UserId, now: Timestamp) -> Result<(), TooEarly> {
        self.codes.take(&user.to_string(), now).await
    }

    /// Gives a right code back to the budget.
    pub async fn second_factor_was_right(&self, user: UserId) {
        self.codes.give_back(&user.to_string()).await;
    }

    /// Takes a request of a token of the management API. Returns the number that it still has at
    /// once, as far as this process knows (API-10).
    pub async fn api_request(&self, token: AccessTokenId, now: Timestamp) -> Result<u64, TooEarly> {
        let key = token.to_string();
        self.api_requests.take(&key, now).await?;
        Ok(self.api_requests.left(&key, now))
    }

    /// Takes a request for a workspace token from the budget of its address.
    pub async fn workspace_token_request(
        &self,
        ip: IpAddr,
        now: Timestamp,
    ) -> Result<(), TooEarly> {
        if self.is_exempt(ip) {
            return Ok(());
        }
        self.workspace_token_requests.take(&block(ip), now).await
    }

    /// Takes a token from the budget of its workspace. The job or the service account has proved
    /// itself, so that strangers do not use the budget up.
    pub async fn issued_token(&self, tenant: TenantId, now: Timestamp) -> Result<(), TooEarly> {
        self.issued_tokens.take(&tenant.to_string(), now).await
    }

    fn is_exempt(&self, ip: IpAddr) -> bool {
        self.loopback_is_unthrottled && ip.is_loopback()
    }
}

/// The smallest block of addresses that one attacker has: a single IPv4 address, a /64 of IPv6.
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

    #[tokio::test]
    async fn case_144_the_eleventh_wrong_try_waits_and_a_known_browser_does_not() {
        let throttle = Throttle::new(false, &Tries::alone());
        let ann = account("ann@acme.example");
        for n in 0..10 {
            throttle.sign_in(ip(n), &ann, None, START).await.unwrap();
        }
        let early = throttle
            .sign_in(ip(99), &ann, None, START)
            .await
            .unwrap_err();
        assert_eq!(early.wait, Duration::minutes(1), "then one a minute");
        throttle
            .sign_in(ip(1), &ann, Some("laptop"), START)
            .await
            .unwrap();
        throttle
            .sign_in(ip(99), &account("bob@acme.example"), None, START)
            .await
            .unwrap();
        throttle
            .sign_in(ip(99), &ann, None, START + Duration::minutes(1))
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn l6_a_right_password_costs_nothing() {
        let throttle = Throttle::new(false, &Tries::alone());
        let ann = account("ann@acme.example");
        for n in 0..25 {
            let paid = throttle.sign_in(ip(n), &ann, None, START).await.unwrap();
            throttle.signed_in(&paid).await;
        }
    }

    #[tokio::test]
    async fn case_145_many_accounts_from_one_block_are_stopped() {
        let throttle = Throttle::new(false, &Tries::alone());
        let mut now = START;
        let mut passed = 0;
        for n in 0..200 {
            // Slow enough to stay within the budget of requests.
            now += Duration::seconds(3);
            let host = IpAddr::V6(std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 7, 0, 0, 0, n));
            if throttle
                .sign_in(host, &account(&format!("user{n}@acme.example")), None, now)
                .await
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
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn l6_one_address_has_thirty_requests_a_minute() {
        let throttle = Throttle::new(false, &Tries::alone());
        let v4: IpAddr = "203.0.113.7".parse().unwrap();
        for _ in 0..30 {
            throttle.request(v4, START).await.unwrap();
        }
        assert_eq!(
            throttle.request(v4, START).await,
            Err(TooEarly {
                wait: Duration::seconds(2)
            })
        );
        assert_eq!(
            throttle
                .request("203.0.113.8".parse().unwrap(), START)
                .await,
            Ok(())
        );
    }

    #[tokio::test]
    async fn l15_sign_ups_are_five_an_hour_and_l7_mails_five_an_hour() {
        let throttle = Throttle::new(false, &Tries::alone());
        for _ in 0..5 {
            throttle.sign_up(ip(1), START).await.unwrap();
            throttle
                .mail(&account("ann@acme.example"), START)
                .await
                .unwrap();
        }
        assert!(throttle.sign_up(ip(1), START).await.is_err());
        assert!(
            throttle
                .mail(&account("ann@acme.example"), START)
                .await
                .is_err()
        );
        let local = Throttle::new(true, &Tries::alone());
        for _ in 0..50 {
            local
                .sign_up("127.0.0.1".parse().unwrap(), START)
                .await
                .unwrap();
        }
    }

    #[tokio::test]
    async fn l6_after_five_misses_there_is_one_hint_a_day() {
        let throttle = Throttle::new(false, &Tries::alone());
        let ann = account("ann@acme.example");
        let mut hints = 0;
        for n in 0..40 {
            let is_due = throttle.missed(&ann, START + Duration::minutes(n)).await;
            hints += usize::from(is_due);
        }
        assert_eq!(hints, 1);
    }
}
