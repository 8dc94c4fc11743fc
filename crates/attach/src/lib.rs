//! `portolan attach`: offers an MCP server of this machine or network as an upstream of a hosted
//! workspace, without an open port (ADR 39, `docs/attach.md`).
//!
//! ```text
//! node ── HTTP/2 requests ──► link ─► offer ─┬─ stdio: sessions of a command
//!      ◄── TLS, dialled by link ──           ├─ forward: a server with an address of its own
//!                                            └─ api: an HTTP API with an OpenAPI document
//! ```
//!
//! | Module | Subject |
//! |---|---|
//! | [`address`] | where the connection is opened |
//! | [`api`] | an MCP server in front of an HTTP API |
//! | [`answers`] | answers to requests of a node |
//! | [`link`] | one connection to one node |
//! | [`keeper`] | a connection to each node |
//! | [`offer`] | one request of a node |
//! | `figures` | measurements, and their listener |
//! | [`forward`] | requests to a server that speaks HTTP |
//! | [`stdio`] | a Streamable HTTP server in front of a command |

pub mod address;
pub mod answers;
pub mod api;
mod figures;
pub mod forward;
pub mod keeper;
pub mod link;
pub mod offer;
mod random;
pub mod stdio;

use std::{fmt, net::SocketAddr, sync::Arc};

use portolan_net::{egress::Authorities, outward::Outward, proxies::Proxies};
use tokio_util::sync::CancellationToken;

pub use self::{
    address::{AddressError, AttachAddress},
    api::{ApiError, ApiSource, DocumentPlace},
    keeper::AttachError,
    stdio::command::CommandLine,
};
use self::{
    api::Api, figures::Figures, forward::Forward, keeper::Keeper, offer::OfferedServer,
    random::random_id, stdio::Stdio,
};

/// The server that is offered.
#[derive(Debug, Clone)]
pub enum Target {
    /// A command that speaks MCP on its standard input and output.
    Command(CommandLine),
    /// The MCP endpoint of a server in this network.
    Url(url::Url),
    /// An HTTP API in this network.
    Api(ApiSource),
}

/// One run of `portolan attach`.
pub struct Options {
    /// Where the connection is opened.
    pub address: AttachAddress,
    /// The key of the attached server.
    pub key: String,
    /// The server.
    pub target: Target,
    /// Certificate authorities to trust besides those of the machine.
    pub authorities: Authorities,
    /// The way to the service.
    pub proxies: Proxies,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
}

impl fmt::Debug for Options {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// Offers the server until `stop` is cancelled, or until the first connection is refused for good.
///
/// # Errors
/// [`AttachError`], in words for the person who runs the program.
pub async fn run(options: Options, stop: CancellationToken) -> Result<(), AttachError> {
    let outward = Outward::new(&options.authorities, &options.proxies)?;
    let instance = random_id();
    let figures = Figures::new();
    let offer = match options.target {
        Target::Command(line) => {
            OfferedServer::Stdio(Stdio::start(line, instance.clone(), Arc::clone(&figures)))
        }
        Target::Url(url) => {
            let authorities = options.authorities.clone();
            let proxies = &options.proxies;
            OfferedServer::Forward(Forward::new(url, authorities, proxies, instance.clone())?)
        }
        Target::Api(source) => {
            let api = Api::load(source, &options.authorities).await?;
            OfferedServer::Api(Box::new(api))
        }
    };
    let offer = Arc::new(offer);
    let keeper = Keeper::new(
        link::Dialler {
            outward,
            address: options.address,
            key: options.key,
            instance,
        },
        Arc::clone(&offer),
        Arc::clone(&figures),
    );
    let measured = async {
        match options.metrics {
            Some(address) => figures.serve(address, stop.clone()).await,
            None => Ok(()),
        }
    };
    let attached = async {
        let outcome = keeper.run(stop.clone()).await;
        stop.cancel();
        outcome
    };
    let outcome = tokio::try_join!(attached, async { Ok(measured.await?) }).map(|_| ());
    offer.end().await;
    outcome
}
