//! Where nodes take the connections of `portolan attach`.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Result;
use axum::Router;
use portolan_attached::{AUTH_PATH, MCP_PATH, Taking, router};
use portolan_cluster::node::Node;
use portolan_keys::random;
use portolan_model::Clock;
use portolan_net::egress::Egress;
use portolan_storage::{Reason, StorageError, Store, registry::attachments};

use crate::{lifecycle::Lifecycle, settings::Role};

/// Interval of the reports of a node with the console alone.
const BEAT: Duration = Duration::from_secs(8);

/// The parts that both kinds of nodes need.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) store: Store,
    pub(crate) egress: Egress,
    pub(crate) clock: Clock,
}

/// The route of a node with MCP endpoints.
pub(crate) fn beside_endpoints(parts: Parts, role: Role, node: &Node, life: &Lifecycle) -> Router {
    let members = node.members();
    let taking = Taking {
        store: parts.store,
        egress: parts.egress,
        clock: parts.clock,
        node: node.id().to_string(),
        nodes: Arc::new(move || {
            let members = members.borrow();
            members.live.iter().map(ToString::to_string).collect()
        }),
        has_other_kind: !role.has_auth(),
        stopping: life.stopping.clone(),
        drained: life.drained.clone(),
        tasks: life.tasks.clone(),
    };
    router(MCP_PATH, taking)
}

/// The route of a node with the console alone. Such nodes know each other by the database.
pub(crate) fn beside_console(parts: Parts, life: &Lifecycle) -> Result<Router> {
    let id = random::bytes::<8>()?;
    let me = id.iter().fold(String::from("c"), |mut me, byte| {
        me.push_str(&format!("{byte:02x}"));
        me
    });
    let known = Arc::new(Mutex::new(vec![me.clone()]));
    let read = Arc::clone(&known);
    let (store, clock, name) = (parts.store.clone(), parts.clock.clone(), me.clone());
    let stop = life.stopping.clone();
    life.tasks.spawn(async move {
        loop {
            match beat(&store, &clock, &name).await {
                Ok(nodes) => *known.lock().unwrap_or_else(PoisonError::into_inner) = nodes,
                Err(error) => tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "the nodes with the console are not read"
                ),
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(BEAT) => {}
            }
        }
    });
    let taking = Taking {
        store: parts.store,
        egress: parts.egress,
        clock: parts.clock,
        node: me,
        nodes: Arc::new(move || read.lock().unwrap_or_else(PoisonError::into_inner).clone()),
        has_other_kind: false,
        stopping: life.stopping.clone(),
        drained: life.drained.clone(),
        tasks: life.tasks.clone(),
    };
    Ok(router(AUTH_PATH, taking))
}

async fn beat(store: &Store, clock: &Clock, me: &str) -> Result<Vec<String>, StorageError> {
    let mut tx = store.system(Reason::Upstreams).await?;
    let nodes = attachments::beat(&mut tx, me, clock.now()).await?;
    tx.commit().await?;
    Ok(nodes)
}
