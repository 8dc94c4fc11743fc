//! HTTP to the server, with the credential.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use portolan_net::egress::{Egress, EgressRequest, EgressStream, Redirects};
use portolan_upstream::oauth::Challenge;
use tokio_util::task::TaskTracker;
use url::Url;

use crate::{
    account::{Account, For},
    fault::BridgeFault,
    lines::LONGEST,
};

/// Time for the head of an answer. The client decides how long it waits: it cancels.
const LONG: Duration = Duration::from_secs(24 * 3600);
/// Time for what has no answer.
const SHORT: Duration = Duration::from_secs(30);
/// Time for the end of a session.
const END: Duration = Duration::from_secs(1);
/// The longest wait for a server that is too busy.
const BUSY: Duration = Duration::from_secs(5);

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Own headers of a message.
pub(crate) type Headers = Vec<(HeaderName, HeaderValue)>;

/// The way to the server.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) egress: Egress,
    pub(crate) url: Url,
    /// Headers that the person entered, sensitive.
    pub(crate) headers: HeaderMap,
    /// Signs in where the server wants it. None with a key.
    pub(crate) account: Option<Arc<Account>>,
    /// Everything that runs beside the client's lines.
    pub(crate) tasks: TaskTracker,
}

impl Wire {
    /// POSTs a message that has an answer.
    pub(crate) async fn ask(
        &self,
        url: &Url,
        own: &Headers,
        body: Bytes,
    ) -> Result<EgressStream, BridgeFault> {
        self.send(Method::POST, url, own, body, LONG, For::Client)
            .await
    }

    /// POSTs a message that has none.
    pub(crate) async fn tell(
        &self,
        url: &Url,
        own: &Headers,
        body: Bytes,
    ) -> Result<EgressStream, BridgeFault> {
        self.send(Method::POST, url, own, body, SHORT, For::Ourselves)
            .await
    }

    /// Opens an event stream.
    pub(crate) async fn listen(
        &self,
        url: &Url,
        own: &Headers,
        purpose: For,
    ) -> Result<EgressStream, BridgeFault> {
        self.send(Method::GET, url, own, Bytes::new(), LONG, purpose)
            .await
    }

    /// Ends a session. Servers may refuse it.
    pub(crate) async fn end(&self, url: &Url, own: &Headers) {
        let end = self.send(Method::DELETE, url, own, Bytes::new(), END, For::Ourselves);
        let _ = tokio::time::timeout(END, end).await;
    }

    async fn send(
        &self,
        method: Method,
        url: &Url,
        own: &Headers,
        body: Bytes,
        within: Duration,
        purpose: For,
    ) -> Result<EgressStream, BridgeFault> {
        let (mut has_waited, mut has_renewed, mut has_stepped_up) = (false, false, false);
        loop {
            let token = match &self.account {
                Some(account) => account.token().await?,
                None => None,
            };
            let request = self.request(&method, url, own, &body, within, token.as_deref())?;
            let answer = self.egress.open(request).await?;
            match (answer.status, &self.account) {
                (StatusCode::UNAUTHORIZED, Some(account)) if !has_renewed => {
                    has_renewed = true;
                    let challenge = challenge(&answer.headers);
                    account.renew(challenge, token, purpose).await?;
                }
                (StatusCode::UNAUTHORIZED, Some(_)) => {
                    let why = "the server does not accept the new token";
                    return Err(BridgeFault::NotSignedIn(why.to_owned()));
                }
                (StatusCode::UNAUTHORIZED, None) => return Err(BridgeFault::Refused(401)),
                (StatusCode::FORBIDDEN, Some(account)) if !has_stepped_up => {
                    let challenge = challenge(&answer.headers);
                    if challenge.error.as_deref() != Some("insufficient_scope") {
                        return Err(BridgeFault::Refused(403));
                    }
                    has_stepped_up = true;
                    account.step_up(challenge, token, purpose).await?;
                }
                (StatusCode::FORBIDDEN, _) => return Err(BridgeFault::Refused(403)),
                (StatusCode::TOO_MANY_REQUESTS, _) => {
                    let wait = retry_after(&answer.headers).filter(|wait| *wait <= BUSY);
                    match wait {
                        Some(wait) if !has_waited => {
                            has_waited = true;
                            tokio::time::sleep(wait).await;
                        }
                        _ => return Err(BridgeFault::Limited),
                    }
                }
                _ => return Ok(answer),
            }
        }
    }

    fn request(
        &self,
        method: &Method,
        url: &Url,
        own: &Headers,
        body: &Bytes,
        within: Duration,
        token: Option<&str>,
    ) -> Result<EgressRequest, BridgeFault> {
        let mut headers = HeaderMap::with_capacity(own.len() + self.headers.len() + 3);
        if *method == Method::POST {
            headers.insert(header::CONTENT_TYPE, JSON);
            headers.insert(header::ACCEPT, BOTH);
        } else if *method == Method::GET {
            headers.insert(header::ACCEPT, EVENTS);
        }
        for (name, value) in own {
            headers.insert(name, value.clone());
        }
        // The credential goes to the server's origin and nowhere else.
        if url.origin() == self.url.origin() {
            for (name, value) in &self.headers {
                headers.insert(name, value.clone());
            }
            if let Some(token) = token {
                let value = HeaderValue::try_from(format!("Bearer {token}"));
                let mut value =
                    value.map_err(|_| BridgeFault::Invalid("its token fits no header"))?;
                value.set_sensitive(true);
                headers.insert(header::AUTHORIZATION, value);
            }
        }
        Ok(EgressRequest {
            headers,
            body: body.clone(),
            timeout: within,
            max_response_bytes: LONGEST,
            redirects: Redirects::SameOrigin,
            ..EgressRequest::new(method.clone(), url.clone())
        })
    }
}

fn challenge(headers: &HeaderMap) -> Challenge {
    let all = headers.get_all(header::WWW_AUTHENTICATE).iter();
    let all: Vec<&str> = all.filter_map(|value| value.to_str().ok()).collect();
    Challenge::read((!all.is_empty()).then(|| all.join(", ")).as_deref())
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    seconds.trim().parse().ok().map(Duration::from_secs)
}
