//! One HTTP exchange with a receiver, through the guarded egress (HOOK-3, HOOK-10).

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use portolan_model::{Clock, Timestamp};
use portolan_net::egress::{Egress, EgressError, EgressRequest, parse_url};
use portolan_storage::webhooks::deliveries::{AfterAttempt, AttemptResult};
use tokio::time::{Instant, timeout_at};

use crate::schedule;

/// Longest exchange, connection and answer included.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes that are kept of an answer's body.
const HEAD: usize = 1024;

/// Most characters of a fault.
const LONGEST_FAULT: usize = 500;

/// Sends messages.
#[derive(Debug, Clone)]
pub struct WebhookSender {
    /// The guarded client.
    pub egress: Egress,
    /// The time.
    pub clock: Clock,
    /// Longest exchange.
    pub timeout: Duration,
}

/// An exchange, with what the answer asks for.
#[derive(Debug, Clone)]
pub struct WebhookExchange {
    /// As it is recorded.
    pub result: AttemptResult,
    /// The pause that the answer asks for.
    pub retry_after: Option<time::Duration>,
}

impl WebhookExchange {
    /// True for an answer of success.
    pub fn is_accepted(&self) -> bool {
        matches!(self.result.status, Some(200..=299))
    }

    /// What follows from it. `tries` counts the attempts of this round.
    pub fn after(&self, tries: i32, now: Timestamp) -> AfterAttempt {
        if self.is_accepted() {
            AfterAttempt::Delivered
        } else if self.result.status == Some(StatusCode::GONE.as_u16()) {
            AfterAttempt::Gone
        } else {
            schedule::next_attempt(tries, self.retry_after, now)
                .map_or(AfterAttempt::Exhausted, AfterAttempt::Again)
        }
    }
}

impl WebhookSender {
    /// Posts a body. The status decides; of the answer's body the first KiB is read, as far as it
    /// comes in time. Redirects are answers, and are not followed.
    pub async fn post(&self, url: &str, headers: HeaderMap, body: Vec<u8>) -> WebhookExchange {
        let at = self.clock.now();
        let began = Instant::now();
        let answer = self
            .exchange(url, headers, body, began + self.timeout)
            .await;
        let millis = i32::try_from(began.elapsed().as_millis()).unwrap_or(i32::MAX);
        let mut result = AttemptResult {
            at,
            millis,
            status: None,
            fault: None,
            response_head: None,
        };
        let mut retry_after = None;
        match answer {
            Ok((status, headers, head)) => {
                result.status = Some(status.as_u16());
                result.response_head = (!head.is_empty()).then(|| shown(&head));
                retry_after = headers
                    .get(header::RETRY_AFTER)
                    .and_then(|value| value.to_str().ok())
                    .and_then(|text| schedule::retry_after(text, self.clock.now()));
            }
            Err(error) => {
                result.fault = Some(error.to_string().chars().take(LONGEST_FAULT).collect());
            }
        }
        WebhookExchange {
            result,
            retry_after,
        }
    }

    async fn exchange(
        &self,
        url: &str,
        headers: HeaderMap,
        body: Vec<u8>,
        deadline: Instant,
    ) -> Result<(StatusCode, HeaderMap, Vec<u8>), EgressError> {
        let mut request = EgressRequest::new(Method::POST, parse_url(url)?);
        request.headers = headers;
        request.body = Bytes::from(body);
        request.timeout = self.timeout;
        let mut answer = self.egress.open(request).await?;
        let mut head = Vec::new();
        while head.len() < HEAD {
            match timeout_at(deadline, answer.piece()).await {
                Ok(Ok(Some(piece))) => {
                    let room = HEAD - head.len();
                    head.extend_from_slice(&piece[..piece.len().min(room)]);
                }
                Ok(Ok(None) | Err(_)) | Err(_) => break,
            }
        }
        Ok((answer.status, answer.headers, head))
    }
}

/// The beginning of a body as text: bytes that are no text, and U+0000, which Postgres cannot hold,
/// are replaced.
fn shown(head: &[u8]) -> String {
    String::from_utf8_lossy(head).replace('\0', "\u{fffd}")
}
