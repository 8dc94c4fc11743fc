//! The catalogue: published servers in memory, with compiled tools and finished list pages.
//!
//! Only the first request of a server after a change waits for Postgres. Changes of the registry
//! make entries stale; the next request reloads once, and concurrent requests wait for it. While
//! the database is away, the stale entry is served (STREAM-17.4).

pub(crate) mod accounts;
pub(crate) mod backend;
pub(crate) mod bodies;
pub(crate) mod marks;
pub(crate) mod offers;
pub(crate) mod pages;
pub(crate) mod renames;
pub(crate) mod server;
pub(crate) mod upstream;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use arc_swap::ArcSwapOption;
use portolan_keys::Keys;
use portolan_model::{
    Clock,
    id::{SourceId, TenantId},
    resource::Resource,
};
use portolan_storage::{
    StorageError, Store,
    platform::{limits, tenants::Reach},
    registry::catalog,
};
use quick_cache::{Equivalent, sync::Cache};
use tokio::sync::Mutex;

use crate::{
    caller::Caller,
    catalog::{server::Server, upstream::UpstreamSource},
    error::McpError,
    instruments,
    limits::AdmissionControl,
    target::{Target, Transport},
};

/// How long an unknown server is cached without a change.
const NEGATIVE_FOR: Duration = Duration::from_secs(5);

/// How long after a failed load the next one is tried.
const BACK_OFF: Duration = Duration::from_secs(1);

/// The server at an address, for the holder of a token of one tenant.
#[derive(Debug)]
pub(crate) struct Entry {
    /// All slugs of the tenant, the current one first.
    ///
    /// Empty if the path's tenant is not the token's, or is suspended.
    slugs: Vec<String>,
    /// The path as a resource.
    resource: Resource,
    /// The server, if there is a published one.
    pub(crate) server: Option<Arc<Server>>,
    /// The server exists and is paused.
    pub(crate) is_paused: bool,
    /// How clients reach the tenant's servers.
    pub(crate) reach: Reach,
    loaded_at: Instant,
    as_of: u64,
}

impl Entry {
    /// True if the path names the token's tenant.
    pub(crate) fn is_own_tenant(&self) -> bool {
        !self.slugs.is_empty()
    }

    /// The current slug of the tenant.
    pub(crate) fn tenant_slug(&self) -> &str {
        self.slugs.first().map_or("", String::as_str)
    }

    /// AUTH-4.5.8: whether the token is for this path, or for a wider one.
    pub(crate) fn admits(&self, caller: &Caller) -> bool {
        let names_tenant = |slug: &str| self.slugs.iter().any(|own| own == slug);
        let is_wide = self.reach.workspace_tokens;
        caller.may_use(&self.resource, names_tenant, is_wide)
    }
}

/// The key of an entry: the token's tenant, and the tenant and server in the path, if any.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    tenant: TenantId,
    tenant_slug: Option<Box<str>>,
    server_slug: Option<Box<str>>,
}

impl Place {
    pub(crate) fn new(tenant: TenantId, target: &Target<'_>) -> Self {
        Self {
            tenant,
            tenant_slug: target.tenant.map(Into::into),
            server_slug: target.server.map(Into::into),
        }
    }

    /// The target to resolve again.
    fn target(&self) -> Target<'_> {
        Target {
            tenant: self.tenant_slug.as_deref(),
            server: self.server_slug.as_deref(),
            path: "",
            transport: Transport::Mcp,
        }
    }
}

/// A [`Place`] that borrows the path, so that a lookup allocates nothing.
#[derive(Hash)]
struct PlaceRef<'a> {
    tenant: TenantId,
    tenant_slug: Option<&'a str>,
    server_slug: Option<&'a str>,
}

impl Equivalent<Place> for PlaceRef<'_> {
    fn equivalent(&self, key: &Place) -> bool {
        self.tenant == key.tenant
            && self.tenant_slug == key.tenant_slug.as_deref()
            && self.server_slug == key.server_slug.as_deref()
    }
}

#[derive(Debug)]
struct Slot {
    tenant: TenantId,
    current: ArcSwapOption<Entry>,
    /// The number of possible changes.
    ///
    /// An entry carries the number from before its load, so a change during the load makes it
    /// stale.
    changes: AtomicU64,
    /// Allows one load at a time; holds the time of the next attempt after a failure.
    loading: Mutex<Option<Instant>>,
}

impl Slot {
    fn fresh(&self) -> Option<Arc<Entry>> {
        let entry = self.current.load_full()?;
        let stale = !self.is_current(&entry)
            || (entry.server.is_none() && entry.loaded_at.elapsed() > NEGATIVE_FOR);
        (!stale).then_some(entry)
    }

    fn is_current(&self, entry: &Entry) -> bool {
        entry.as_of == self.changes.load(Ordering::Acquire)
    }
}

/// The catalogue of this node.
#[derive(Debug)]
pub(crate) struct Catalog {
    store: Store,
    keys: Keys,
    clock: Clock,
    admission: Arc<AdmissionControl>,
    page_size: usize,
    max_stale: Duration,
    slots: Cache<Place, Arc<Slot>>,
}

impl Catalog {
    pub(crate) fn new(
        store: Store,
        keys: Keys,
        clock: Clock,
        admission: Arc<AdmissionControl>,
        page_size: usize,
        max_stale: Duration,
        capacity: usize,
    ) -> Self {
        Self {
            store,
            keys,
            clock,
            admission,
            page_size: page_size.max(1),
            max_stale,
            slots: Cache::new(capacity),
        }
    }

    /// The entry of a path, for a token of `tenant`.
    ///
    /// Only holders of good tokens get this far, so no other client can cause a database query.
    pub(crate) async fn resolve(
        &self,
        tenant: TenantId,
        target: &Target<'_>,
    ) -> Result<Arc<Entry>, McpError> {
        let place = PlaceRef {
            tenant,
            tenant_slug: target.tenant,
            server_slug: target.server,
        };
        let slot = match self.slots.get(&place) {
            Some(slot) => slot,
            None => self.slot(tenant, target),
        };
        if let Some(entry) = slot.fresh() {
            return Ok(entry);
        }
        // Boxed: a load would make the future of every request a dozen times as large.
        Box::pin(self.reload(&slot, tenant, target)).await
    }

    /// Resolves a known place again.
    pub(crate) async fn resolve_again(&self, place: &Place) -> Result<Arc<Entry>, McpError> {
        self.resolve(place.tenant, &place.target()).await
    }

    /// Whether an entry is what the database held after the last change that this node received.
    ///
    /// A stale entry is used while the database is away; another may have changed meanwhile.
    pub(crate) fn is_current(&self, place: &Place, entry: &Entry) -> bool {
        let slot = self.slots.get(place);
        slot.is_some_and(|slot| slot.is_current(entry))
    }

    /// Whether a place still holds this server, as far as this node knows.
    pub(crate) fn is_still(&self, place: &Place, server: &Arc<Server>) -> bool {
        let fresh = self.slots.get(place).and_then(|slot| slot.fresh());
        let server_now = fresh.as_ref().and_then(|entry| entry.server.as_ref());
        server_now.is_some_and(|now| Arc::ptr_eq(now, server))
    }

    fn slot(&self, tenant: TenantId, target: &Target<'_>) -> Arc<Slot> {
        let place = Place::new(tenant, target);
        let made = || {
            Ok::<_, std::convert::Infallible>(Arc::new(Slot {
                tenant,
                current: ArcSwapOption::empty(),
                changes: AtomicU64::new(0),
                loading: Mutex::new(None),
            }))
        };
        let Ok(slot) = self.slots.get_or_insert_with(&place, made);
        slot
    }

    async fn reload(
        &self,
        slot: &Slot,
        tenant: TenantId,
        target: &Target<'_>,
    ) -> Result<Arc<Entry>, McpError> {
        let mut not_before = slot.loading.lock().await;
        // The previous holder of the lock may have loaded the entry.
        if let Some(entry) = slot.fresh() {
            return Ok(entry);
        }
        let usable = |entry: &Arc<Entry>| entry.loaded_at.elapsed() <= self.max_stale;
        if not_before.is_some_and(|at| Instant::now() < at) {
            return slot
                .current
                .load_full()
                .filter(usable)
                .ok_or(McpError::RegistryAway);
        }
        let begun = Instant::now();
        let as_of = slot.changes.load(Ordering::Acquire);
        let loaded = self.load(tenant, target).await;
        instruments::catalogue_loaded(begun.elapsed());
        match loaded {
            Ok(entry) => {
                let entry = Arc::new(Entry { as_of, ..entry });
                slot.current.store(Some(Arc::clone(&entry)));
                *not_before = None;
                Ok(entry)
            }
            Err(error) => {
                *not_before = Some(Instant::now() + BACK_OFF);
                let stale = slot.current.load_full().filter(usable);
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    tenant.id = %tenant,
                    stale = stale.is_some(),
                    "cannot load a catalogue"
                );
                stale.ok_or(McpError::RegistryAway)
            }
        }
    }

    async fn load(&self, tenant: TenantId, target: &Target<'_>) -> Result<Entry, StorageError> {
        let loaded_at = Instant::now();
        let nothing = |slugs, reach| Entry {
            slugs,
            resource: target.resource(),
            server: None,
            is_paused: false,
            reach,
            loaded_at,
            as_of: 0,
        };
        let mut tx = self.store.node(tenant).await?;
        let address = catalog::address(&mut tx).await?.filter(|address| {
            // If the path names no tenant, it is the token's.
            let is_own = |named: &str| address.slugs.iter().any(|slug| slug == named);
            target.tenant.is_none_or(is_own)
        });
        let Some(address) = address else {
            return Ok(nothing(Vec::new(), Reach::default()));
        };
        let Some(row) = catalog::published(&mut tx, target.server).await? else {
            let is_paused = catalog::is_paused(&mut tx, target.server).await?;
            return Ok(Entry {
                is_paused,
                ..nothing(address.slugs, address.reach)
            });
        };
        let own = limits::own(&mut tx).await?;
        tx.commit().await?;
        let limits = self.admission.of(tenant, &own);
        let (now, page_size) = (self.clock.now(), self.page_size);
        let server = Server::build(tenant, row, limits, &self.keys, now, page_size);
        Ok(Entry {
            server: Some(Arc::new(server)),
            ..nothing(address.slugs, address.reach)
        })
    }

    /// An upstream server as the tenant publishes it now.
    ///
    /// The result is `None` if no server with it was used on this node.
    pub(crate) async fn source(
        &self,
        tenant: TenantId,
        id: SourceId,
    ) -> Option<Arc<UpstreamSource>> {
        let find = |entry: &Entry| {
            let sources = entry.server.as_ref()?.upstreams();
            sources.into_iter().find(|source| source.id == id)
        };
        let places: Vec<Place> = {
            let slots = self.slots.iter();
            let of_tenant = slots.filter(|(place, _)| place.tenant == tenant);
            let had_it = of_tenant.filter(|(_, slot)| {
                let known = slot.current.load_full();
                known.is_some_and(|entry| find(&entry).is_some())
            });
            had_it.map(|(place, _)| place).collect()
        };
        for place in places {
            if let Ok(entry) = self.resolve_again(&place).await
                && let Some(found) = find(&entry)
            {
                return Some(found);
            }
        }
        None
    }

    /// Marks the tenant's entries as stale; `None` marks those of all tenants.
    pub(crate) fn outdate(&self, tenant: Option<TenantId>) {
        for (_, slot) in self.slots.iter() {
            if tenant.is_none_or(|tenant| slot.tenant == tenant) {
                slot.changes.fetch_add(1, Ordering::AcqRel);
            }
        }
    }

    /// Removes all entries of a tenant, with their credentials, if the tenant has no address any
    /// more.
    ///
    /// No request reaches its servers again.
    pub(crate) async fn drop_ended(&self, tenant: TenantId) -> Result<(), StorageError> {
        if !self.slots.iter().any(|(_, slot)| slot.tenant == tenant) {
            return Ok(());
        }
        let mut tx = self.store.node(tenant).await?;
        if catalog::address(&mut tx).await?.is_none() {
            self.slots.retain(|_, slot| slot.tenant != tenant);
        }
        Ok(())
    }

    /// Puts an entry in place, as a load does.
    #[cfg(test)]
    pub(crate) fn seed(
        &self,
        tenant: TenantId,
        target: &Target<'_>,
        slugs: &[&str],
        server: Option<Arc<Server>>,
    ) {
        let slugs = slugs.iter().map(|&slug| slug.to_owned()).collect();
        let slot = self.slot(tenant, target);
        let entry = Entry {
            slugs,
            resource: target.resource(),
            server,
            is_paused: false,
            reach: Reach::default(),
            loaded_at: Instant::now(),
            as_of: slot.changes.load(Ordering::Acquire),
        };
        slot.current.store(Some(Arc::new(entry)));
    }

    /// Replaces the entry by one with another reach (MCP-DP-6, AUTH-5.4).
    #[cfg(test)]
    pub(crate) fn change_reach(&self, tenant: TenantId, target: &Target<'_>, reach: Reach) {
        let slot = self.slot(tenant, target);
        let known = slot.current.load_full().expect("it was seeded");
        slot.current.store(Some(Arc::new(Entry {
            slugs: known.slugs.clone(),
            resource: target.resource(),
            server: known.server.clone(),
            is_paused: known.is_paused,
            reach,
            loaded_at: Instant::now(),
            as_of: known.as_of,
        })));
    }
}
