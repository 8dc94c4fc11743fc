//! The cost of tokens that programs get without a person: by the secret of a service account
//! (AUTH-T12), against the signature of each; and by refreshing, in [`refreshes`].
//!
//! A grant and a signature are compared by processor time: the node's for a grant with all of its HTTP, and one thread's that does nothing but
//! sign. The signature is the product's own call with the claims of a token that the product has just made, because nothing that ends in such
//! a token can cost less. Neither the load generator nor Postgres is counted; what Postgres took is in the note.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use portolan_keys::{
    AccessClaims, Keys, KeysError, SigningKeys,
    ring::{KeyTimes, NewKeyPair, SigningKey},
    seal::MasterSecret,
};
use portolan_model::{Timestamp, clock::Clock};
use portolan_tests::console::text;
use serde::Deserialize;
use serde_json::json;

use crate::{
    Arguments,
    access::Access,
    figure::{Bar, Figure, Spread, Table, each},
    issuer::Issuer,
    load::{Connection, Load},
    process::{Spent, cpu_seconds_of_children},
    refreshes,
    scene::Alone,
};

/// Kept connections of the load generator.
const CONNECTIONS: usize = 32;
/// Service accounts that request tokens, each on as many of the connections.
const ACCOUNTS: usize = 8;
/// Signatures of a round: long enough for the kernel's count of the thread that makes them.
const SIGNATURES: usize = 4_000;

/// Everything that ends in a token without a page.
pub(crate) async fn measure(
    arguments: &Arguments,
    api: SocketAddr,
    table: &mut Table,
) -> Result<()> {
    let alone = Alone::new(api).await?;
    let issuer = Issuer::new(alone.url())?;
    by_client_credentials(arguments, &alone, &issuer, table)
        .await
        .context("client credentials")?;
    refreshes::rotation(arguments, &alone, &issuer, table)
        .await
        .context("refreshes with rotation")?;
    refreshes::race(&alone, &issuer, table)
        .await
        .context("the race of refreshes")
}

async fn by_client_credentials(
    arguments: &Arguments,
    alone: &Alone,
    issuer: &Issuer,
    table: &mut Table,
) -> Result<()> {
    let mut requests = Vec::with_capacity(CONNECTIONS);
    for number in 1..=ACCOUNTS {
        let request = account(alone, issuer, number).await?;
        requests.extend(std::iter::repeat_n(request, CONNECTIONS / ACCOUNTS));
    }
    let token = token(issuer.address, requests.first().context("an account")?).await?;
    Access::new(&alone.published.url, &alone.published.url, &token)?
        .sessions(1)
        .await
        .context("the server does not take the token")?;
    let signer = Signer::of_tokens_like(&token)?;
    let mut load = Load::new(issuer.address, requests, "\"access_token\"");
    let process = alone.process_id();

    load.run(arguments.calls).await?;
    signer.seconds_each().await?;
    let (mut ratios, mut grants, mut signatures) = (Vec::new(), Vec::new(), Vec::new());
    let (mut spent, mut beside) = (0.0, 0.0);
    for round in 0..arguments.rounds {
        let mut signature = None;
        if round % 2 == 1 {
            signature = Some(signer.seconds_each().await?);
        }
        let (node, database) = (Spent::by(process)?, cpu_seconds_of_children(process)?);
        let count = load.run(arguments.calls).await?.len();
        let took = Spent::by(process)?.since(&node);
        beside += cpu_seconds_of_children(process)? - database;
        spent += took;
        // Turn about, so that neither always comes first on a machine that becomes faster or slower.
        let signature = match signature {
            Some(signature) => signature,
            None => signer.seconds_each().await?,
        };
        let grant = each(took, count);
        ratios.push(signature / grant);
        grants.push(grant);
        signatures.push(signature);
    }
    let spread = Spread::of(&mut ratios);
    table.add(Figure {
        what: "a token by client credentials : its ES256 signature".to_owned(),
        seen: spread.median,
        unit: "",
        bar: Bar::AtLeast(0.3),
        note: format!(
            "{}; {:.0} µs of the node, of which a signature is {:.0} µs; its database took {:.2} of its time beside it",
            spread.text(),
            1e6 * Spread::of(&mut grants).median,
            1e6 * Spread::of(&mut signatures).median,
            beside / spent
        ),
    });
    Ok(())
}

/// Makes a service account, and the request by which it gets a token for the published server.
async fn account(alone: &Alone, issuer: &Issuer, number: usize) -> Result<Vec<u8>> {
    let published = &alone.published;
    let path = format!("/workspaces/{}/service-accounts", published.workspace);
    let body = json!({ "name": format!("Bench {number}"), "auth": "client_secret", "server_id": published.server_id });
    let made = alone.owner.console().post(&path, body).await?;
    let (id, secret) = (text(&made["account"], "id")?, text(&made, "client_secret")?);
    let proof = STANDARD.encode(format!("{id}:{secret}"));
    let fields = [
        ("grant_type", "client_credentials"),
        ("resource", published.url.as_str()),
    ];
    let headers = format!("authorization: Basic {proof}\r\n");
    Ok(issuer.form("/oauth/token", &headers, &fields))
}

/// One token.
async fn token(address: SocketAddr, request: &[u8]) -> Result<String> {
    #[derive(Deserialize)]
    struct Tokens {
        access_token: String,
    }
    let mut connection = Connection::open(address).await?;
    let answer = connection.call(request).await?;
    answer.check("\"access_token\"")?;
    let tokens: Tokens = serde_json::from_slice(answer.body)?;
    Ok(tokens.access_token)
}

/// Signs access tokens as the product does, with a key of its own. Cheap to clone.
#[derive(Debug, Clone)]
struct Signer {
    keys: SigningKeys,
    claims: AccessClaims,
    now: Timestamp,
}

impl Signer {
    /// With the claims of this token.
    fn of_tokens_like(token: &str) -> Result<Self> {
        let claims = token.split('.').nth(1).context("a JWT has claims")?;
        let claims = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims)?)?;
        let now = Clock::system().now();
        let secrets = Keys::new(&MasterSecret::generate()?, &[])?;
        let pair = NewKeyPair::generate()?;
        let sealed = pair.sealed_private(&secrets)?;
        let times = KeyTimes::signing_from(now, now);
        let keys = SigningKeys::default();
        keys.replace(vec![SigningKey::open(
            &secrets,
            pair.public,
            &sealed,
            times,
            now,
        )?]);
        Ok(Self { keys, claims, now })
    }

    /// Processor seconds of a signature, in a loop on one thread. The thread stays, so that the kernel's count of it can be read when it is
    /// through.
    async fn seconds_each(&self) -> Result<f64> {
        let signer = self.clone();
        let own = std::process::id();
        let before = Spent::by(own)?;
        tokio::task::spawn_blocking(move || signer.sign()).await??;
        Ok(each(Spent::by(own)?.since(&before), SIGNATURES))
    }

    fn sign(&self) -> Result<(), KeysError> {
        for _ in 0..SIGNATURES {
            std::hint::black_box(self.keys.sign(&self.claims, self.now)?);
        }
        Ok(())
    }
}
