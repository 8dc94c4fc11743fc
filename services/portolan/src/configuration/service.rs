//! The management API of a workspace, as a client.

use anyhow::Result;
use http::Method;
use serde_json::Value;

use crate::{
    connect::Environment,
    installation::{Installation, Refusal},
    workspace_api::{WorkspaceApi, WorkspaceOptions},
};

/// A workspace of an installation.
pub(super) struct Service {
    installation: Installation,
    api: WorkspaceApi,
}

impl Service {
    pub(super) fn new(options: &WorkspaceOptions, environment: &Environment) -> Result<Self> {
        let installation = options.installation(environment)?;
        let api = WorkspaceApi::new(options, &installation, environment)?;
        Ok(Self { installation, api })
    }

    /// A POST of JSON, and the JSON of the answer.
    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Value, Refusal> {
        let request = self.api.request(Method::POST, path, &[]);
        let mut request = request.map_err(Refusal::other)?;
        request.body = body.to_string().into();
        let text = self.installation.send(request)?;
        serde_json::from_str(&text).map_err(Refusal::other)
    }

    /// A GET, and the text of the answer.
    pub(super) fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<String, Refusal> {
        let request = self.api.request(Method::GET, path, query);
        self.installation.send(request.map_err(Refusal::other)?)
    }
}
