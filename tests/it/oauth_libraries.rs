//! Third-party OAuth libraries, through the whole life of a grant and as service accounts
//! (AUTH-6.2).

use std::{path::Path, time::Duration};

use anyhow::Result;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use portolan_tests::{
    console::text,
    program::{self, OpensBrowser},
    scene::Scene,
};
use serde_json::json;
use tokio::process::Command;

const LIMIT: Duration = Duration::from_secs(120);
const ACCOUNTS: &str = "/workspaces/harbour/service-accounts";

async fn drive(interpreter: &Path, file: &str) -> Result<()> {
    let scene = Scene::new().await?;
    let console = scene.owner.console();
    let by_secret = console
        .post(
            ACCOUNTS,
            json!({"name": "By secret", "auth": "client_secret"}),
        )
        .await?;
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING)?;
    let point = pair.public_key().as_ref();
    let coordinate = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let jwk = json!({"kty": "EC", "crv": "P-256", "kid": "one", "alg": "ES256", "use": "sig",
        "x": coordinate(&point[1..33]), "y": coordinate(&point[33..])});
    let by_key = console
        .post(
            ACCOUNTS,
            json!({"name": "By key", "auth": "private_key_jwt", "jwks": {"keys": [jwk]}}),
        )
        .await?;
    let private = pair.to_pkcs8v1()?;
    let issuer = scene.stack.url().as_str();
    let given = json!({
        "issuer": issuer.strip_suffix('/').unwrap_or(issuer),
        "mcp_url": scene.published.url,
        "by_secret": {"id": text(&by_secret["account"], "id")?, "secret": text(&by_secret, "client_secret")?},
        "by_key": {"id": text(&by_key["account"], "id")?, "kid": "one", "private_key": STANDARD.encode(private.as_ref())},
    });
    let mut command = Command::new(interpreter);
    command
        .arg(program::needs(file)?)
        .env("PORTOLAN_GIVEN", given.to_string());
    let finished = program::run(command, &scene.owner, &OpensBrowser::with_open()?, LIMIT).await?;
    assert!(
        finished.success
            && finished.output.contains("1..done")
            && !finished.output.contains("not ok"),
        "{}",
        finished.output
    );
    Ok(())
}

#[tokio::test]
async fn openid_client_gets_refreshes_asks_about_and_revokes_tokens() -> Result<()> {
    program::needs("tests/clients/oauth/node_modules/openid-client")?;
    drive("node".as_ref(), "tests/clients/oauth/openid-client.mjs").await
}

#[tokio::test]
async fn oauth4webapi_reads_every_answer() -> Result<()> {
    program::needs("tests/clients/oauth/node_modules/oauth4webapi")?;
    drive("node".as_ref(), "tests/clients/oauth/oauth4webapi.mjs").await
}

#[tokio::test]
async fn authlib_gets_refreshes_and_revokes_tokens() -> Result<()> {
    let python = program::needs(".portolan/tools/python-oauth/bin/python")?;
    drive(&python, "tests/clients/oauth/authlib_client.py").await
}
