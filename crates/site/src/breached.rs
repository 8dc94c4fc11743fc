//! Passwords in lists of stolen ones (AUTH-L4).
//!
//! There are two sources: the operator's own list in memory, and a service that returns ranges of
//! digests. The service does not learn the password, because it only receives the start of the
//! digest (k-anonymity, as in Have I Been Pwned).

use std::{
    fmt,
    io::{self, BufRead},
    sync::Arc,
    time::Duration,
};

use http::{HeaderName, HeaderValue, StatusCode};
use portolan_keys::{
    Secret,
    password::{breach_digest, listed_digest},
};
use portolan_net::egress::{Egress, EgressRequest};
use url::Url;

/// Deadline of the service; without an answer the list decides.
const PATIENCE: Duration = Duration::from_secs(1);

/// Longest range in bytes. A range has about a thousand digests, with padding two thousand.
const LONGEST_RANGE: usize = 512 * 1024;

/// The sources of stolen passwords. Without list and service no password counts as stolen.
#[derive(Clone, Default)]
pub struct BreachedPasswords {
    /// The first eight bytes of each SHA-1, sorted: ten million passwords are 80 MB.
    list: Arc<[u64]>,
    ranges: Option<Url>,
}

impl fmt::Debug for BreachedPasswords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreachedPasswords")
            .field("list", &self.list.len())
            .field("ranges", &self.ranges)
            .finish()
    }
}

impl BreachedPasswords {
    /// Creates it from the text of a list and the address of a service. The list has one password
    /// or one SHA-1 in hex a line; the rest of a line behind a colon is ignored. The first five
    /// digits of a SHA-1 are appended to the address.
    pub fn new(list: &str, ranges: Option<Url>) -> Self {
        let found = list
            .lines()
            .filter_map(|line| head_of_line(line.as_bytes()));
        Self::of(found.collect(), ranges)
    }

    /// Does the same with a file of any size, line by line, whatever the encoding of its passwords.
    pub fn read(mut list: impl BufRead, ranges: Option<Url>) -> io::Result<Self> {
        let (mut found, mut line) = (Vec::new(), Vec::new());
        while list.read_until(b'\n', &mut line)? > 0 {
            let end = line.strip_suffix(b"\n").unwrap_or(&line);
            found.extend(head_of_line(end));
            line.clear();
        }
        Ok(Self::of(found, ranges))
    }

    fn of(mut found: Vec<u64>, ranges: Option<Url>) -> Self {
        found.sort_unstable();
        found.dedup();
        Self {
            list: found.into(),
            ranges,
        }
    }

    /// The number of passwords in the list.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// True without a list.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns true if the list or the service has the password. A failed request to the service
    /// counts as no match.
    pub async fn know(&self, egress: &Egress, password: &Secret<String>) -> bool {
        let digest = breach_digest(password);
        if self.list.binary_search(&head(&digest)).is_ok() {
            return true;
        }
        let Some(ranges) = &self.ranges else {
            return false;
        };
        let hex: String = digest.iter().map(|byte| format!("{byte:02X}")).collect();
        let (prefix, suffix) = hex.split_at(5);
        let answer = ask(egress, ranges, prefix).await.unwrap_or_default();
        answer.lines().any(|line| {
            line.trim_end()
                .split_once(':')
                .is_some_and(|(tail, count)| {
                    // Padding has the count 0.
                    tail.eq_ignore_ascii_case(suffix) && count.trim() != "0"
                })
        })
    }
}

async fn ask(egress: &Egress, ranges: &Url, prefix: &str) -> Option<String> {
    let url = Url::parse(&format!("{}{prefix}", ranges.as_str())).ok()?;
    let mut request = EgressRequest::get(url);
    request.timeout = PATIENCE;
    request.max_response_bytes = LONGEST_RANGE;
    // Without padding, the length of the response would reveal the range.
    request.headers.insert(
        HeaderName::from_static("add-padding"),
        HeaderValue::from_static("true"),
    );
    match egress.send(request).await {
        Ok(answer) if answer.status == StatusCode::OK => {
            String::from_utf8(answer.body.to_vec()).ok()
        }
        Ok(answer) => {
            tracing::warn!(status = %answer.status, "the list of breached passwords was not answered");
            None
        }
        Err(error) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the list of breached passwords was not reached"
            );
            None
        }
    }
}

fn head(digest: &[u8; 20]) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(first)
}

/// Reads a line of a list as the head of a digest. The line is an entry of a downloaded list,
/// `<40 hex digits>[:<count>]`, or a password. `None` for an empty line.
fn head_of_line(line: &[u8]) -> Option<u64> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() {
        return None;
    }
    let digest = line.split(|byte| *byte == b':').next().unwrap_or(line);
    let hex = std::str::from_utf8(digest)
        .ok()
        .filter(|hex| hex.len() == 40 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    hex.and_then(|hex| u64::from_str_radix(&hex[..16], 16).ok())
        .or_else(|| {
            let password = std::str::from_utf8(line).ok();
            Some(head(&password.map_or_else(
                || listed_digest(line),
                |text| breach_digest(&Secret::new(text.to_owned())),
            )))
        })
}

#[cfg(test)]
mod tests {
    use portolan_net::egress::EgressPolicy;

    use super::*;

    #[tokio::test]
    async fn l4_a_list_is_read_as_words_and_as_digests() {
        let list = BreachedPasswords::new(
            "trustno1 and nobody\r\n\nEC97CA16E26D56E8B51E5C0C8A5F6C9E36A8D9A0:12\n5BAA61E4C9B93F3F0682250B6CF8331B7EE68FD8:3861493\n",
            None,
        );
        let egress = Egress::new(EgressPolicy::default()).unwrap();
        assert_eq!(list.len(), 3);
        for (word, known) in [
            ("trustno1 and nobody", true),
            // Its SHA-1 is the last line.
            ("password", true),
            ("anchovy tram lantern sixty", false),
        ] {
            let word = Secret::new(word.to_owned());
            assert_eq!(list.know(&egress, &word).await, known);
        }
        assert!(!format!("{list:?}").contains("trustno1"), "AUTH-X1");
        // A file in another encoding, and a password typed in another Unicode form of the same
        // letters.
        let bytes = b"caf\xe9 au lait\r\n\npassword".as_slice();
        let list = BreachedPasswords::read(bytes, None).unwrap();
        assert_eq!(list.len(), 2);
        let wide = Secret::new("\u{ff50}assword".to_owned());
        assert!(list.know(&egress, &wide).await);
    }
}
