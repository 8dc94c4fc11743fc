//! The starting point of most tests: a workspace with a published server, and a client that may use it.

use anyhow::Result;

use crate::{
    console::Published,
    fixture::FixtureApi,
    mcp::McpClient,
    oauth::{OAuthClient, Tokens},
    person::Person,
    stack::{Stack, StackBuilder},
};

/// All running parts, and all people and clients.
#[derive(Debug)]
pub struct Scene {
    /// The API behind the tools.
    pub fixture: FixtureApi,
    /// Portolan.
    pub stack: Stack,
    /// Owner of the workspace.
    pub owner: Person,
    /// The owner's published server: every operation of the fixture, as server `fixture` of
    /// workspace `harbour`.
    pub published: Published,
    /// A registered client.
    pub client: OAuthClient,
    /// Its tokens for the published server.
    pub tokens: Tokens,
    /// Speaks to the published server with the access token.
    pub mcp: McpClient,
}

impl Scene {
    /// With the defaults.
    pub async fn new() -> Result<Self> {
        Self::with(Stack::builder()).await
    }

    /// With settings.
    pub async fn with(builder: StackBuilder) -> Result<Self> {
        let fixture = FixtureApi::start()?;
        let stack = builder.allow_egress(fixture.address()).start()?;
        let owner = Person::sign_up(&stack, "ann").await?;
        let published = owner.console().publish_fixture("harbour", &fixture).await?;
        let client = OAuthClient::register(stack.url(), "Harness").await?;
        let tokens = client.authorize(&owner, &published.url).await?;
        let mcp = McpClient::new(&published.url)?.with_token(&tokens.access)?;
        Ok(Self {
            fixture,
            stack,
            owner,
            published,
            client,
            tokens,
            mcp,
        })
    }
}
