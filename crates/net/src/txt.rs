//! TXT records of the DNS, with which a person proves control of a domain. The system's resolver,
//! which egress uses, returns addresses only.

use std::{io, sync::Arc, time::Duration};

use hickory_resolver::{TokioResolver, proto::rr::RData};

use crate::resolve::BoxFuture;

/// Longest wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Most bytes of the records that are read.
const LARGEST: usize = 64 * 1024;

/// Source of the records. A trait, so that a test can own a domain.
pub trait LookUp: Send + Sync + 'static {
    /// Returns the texts of a name; none if it has none, or does not exist.
    ///
    /// # Errors
    /// The failure of the query.
    fn look_up<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<String>>>;
}

/// TXT records. Cheap to clone.
#[derive(Clone)]
pub struct TxtRecords(Arc<dyn LookUp>);

impl TxtRecords {
    /// By another way than the system's name servers.
    pub fn by(who: Arc<dyn LookUp>) -> Self {
        Self(who)
    }

    /// Returns the texts of a name.
    ///
    /// # Errors
    /// No answer; it does not mean that the name has no records.
    pub async fn of(&self, name: &str) -> io::Result<Vec<String>> {
        tokio::time::timeout(TIMEOUT, self.0.look_up(name))
            .await
            .map_err(|_| io::ErrorKind::TimedOut)?
    }
}

impl Default for TxtRecords {
    /// By the name servers of the system.
    fn default() -> Self {
        Self(Arc::new(System))
    }
}

impl std::fmt::Debug for TxtRecords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TxtRecords")
    }
}

/// The name servers of the system, as they are configured at the time of the question; nothing is
/// remembered.
struct System;

impl LookUp for System {
    fn look_up<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<String>>> {
        Box::pin(async move {
            let resolver = TokioResolver::builder_tokio()
                .and_then(hickory_resolver::ResolverBuilder::build)
                .map_err(io::Error::other)?;
            // With the dot: the search list of the machine is not ours to try.
            let found = match resolver.txt_lookup(format!("{name}.")).await {
                Ok(found) => found,
                Err(error) if error.is_no_records_found() => return Ok(Vec::new()),
                Err(error) => return Err(io::Error::other(error)),
            };
            let mut left = LARGEST;
            let mut texts = Vec::new();
            for record in found.answers() {
                if let RData::TXT(txt) = &record.data {
                    let text = txt.txt_data.concat();
                    left = left.saturating_sub(text.len());
                    if left == 0 {
                        break;
                    }
                    texts.push(String::from_utf8_lossy(&text).into_owned());
                }
            }
            Ok(texts)
        })
    }
}
