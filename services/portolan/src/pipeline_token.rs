//! The token of a job of GitHub Actions (CONF-17): the ID token of the job, exchanged for a token of
//! the workspace (RFC 8693), so that no key is kept in the pipeline.

use anyhow::{Context, Result};
use http::{HeaderMap, HeaderValue, Method, header};
use portolan_net::egress::EgressRequest;
use serde_json::Value;
use url::{Url, form_urlencoded};

use crate::{
    connect::Environment,
    installation::{Installation, bearer_headers},
};

/// The variables by which GitHub offers a job its ID token, if it has `id-token: write`.
const REQUEST_URL: &str = "ACTIONS_ID_TOKEN_REQUEST_URL";
const REQUEST_TOKEN: &str = "ACTIONS_ID_TOKEN_REQUEST_TOKEN";

const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";

/// A job that can ask for an ID token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job<'e> {
    request_url: &'e str,
    request_token: &'e str,
}

impl<'e> Job<'e> {
    /// The job of this process; `None` outside of one that may ask.
    pub(crate) fn of(environment: &'e Environment) -> Option<Self> {
        let set = |name| environment.get(name).filter(|value| !value.is_empty());
        Some(Self {
            request_url: set(REQUEST_URL)?,
            request_token: set(REQUEST_TOKEN)?,
        })
    }

    /// A token of a workspace of the installation at `url`. Each call asks for a new ID token: an
    /// installation takes one once.
    pub(crate) fn token(
        self,
        installation: &Installation,
        (url, workspace): (&Url, &str),
    ) -> Result<String> {
        let base = url.origin().ascii_serialization();
        let job = self.id_token(installation, &base);
        let job = job.context("GitHub gave this job no ID token")?;
        let body = form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", TOKEN_EXCHANGE)
            .append_pair("subject_token_type", JWT)
            .append_pair("subject_token", &job)
            .append_pair("resource", &format!("{base}/api/v1/workspaces/{workspace}"))
            .finish();
        let mut request = EgressRequest::new(Method::POST, installation.at(&["oauth", "token"])?);
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers = HeaderMap::from_iter([(header::CONTENT_TYPE, form)]);
        request.body = body.into();
        let answer = installation
            .send(request)
            .with_context(|| format!("the workspace {workspace} gave this job no token"))?;
        member(&answer, "access_token").context("the service answered without a token")
    }

    /// The ID token of the job for an audience.
    fn id_token(self, installation: &Installation, audience: &str) -> Result<String> {
        let mut url = Url::parse(self.request_url).context(REQUEST_URL)?;
        url.query_pairs_mut().append_pair("audience", audience);
        let mut request = EgressRequest::get(url);
        request.headers = bearer_headers(self.request_token)?;
        let answer = installation.send(request)?;
        member(&answer, "value").context("the answer has no token")
    }
}

fn member(answer: &str, name: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    answer[name].as_str().map(str::to_owned)
}
