//! The arguments and answers of calls that a server's policy keeps (CAPTURE-1 to CAPTURE-6).
//!
//! A call hands over copies of at most [`TAKEN`] bytes each. The writer of the log of calls masks
//! and seals them, so that no call waits for that.

use std::sync::Arc;

use portolan_keys::{
    Keys,
    vault::{self, DataKey},
};
use portolan_metering::{
    CallContent, CapturePolicy, Captured,
    capture::{DAYS, TAKEN},
};
use portolan_model::{
    Timestamp,
    id::{CallId, ServerId, TenantId},
    registry::CallOutcome,
};
use portolan_storage::{
    platform::call_contents::{NewContent, end_of},
    registry::catalog::PublishedCapture,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use crate::instruments;

/// Content that waits to be written on a node, in KiB. Beyond, calls are logged without it.
const WAITING_KIB: usize = 32 * 1024;

/// The capture policy of a server, with the key that content is sealed under.
#[derive(Debug)]
pub(crate) struct Capture {
    policy: CapturePolicy,
    days: i16,
    key_id: Uuid,
    key: DataKey,
}

impl Capture {
    /// Reads the policy of a server. `None`: nothing is kept. A policy or a key that cannot be read
    /// is logged, and nothing is kept.
    pub(crate) fn read(
        tenant: TenantId,
        row: &PublishedCapture,
        keys: &Keys,
        now: Timestamp,
    ) -> Option<Arc<Self>> {
        let policy = CapturePolicy::of_word(&row.row.policy, row.row.percent);
        let owner = vault::data_key_owner(tenant.uuid().into_bytes(), row.key.id.into_bytes());
        let key = keys.open_data_key(&owner, &row.key.wrapped, now);
        let (Some(policy), Ok(key)) = (policy, key) else {
            tracing::error!(tenant.id = %tenant, "the capture policy of a server cannot be used");
            return None;
        };
        (policy != CapturePolicy::Metadata).then(|| {
            Arc::new(Self {
                policy,
                days: row.row.days.clamp(*DAYS.start(), *DAYS.end()),
                key_id: row.key.id,
                key,
            })
        })
    }

    /// Whether the content of a call is kept.
    pub(crate) fn wants(&self, call: CallId, outcome: CallOutcome) -> bool {
        self.policy.wants(call.uuid(), outcome)
    }
}

/// Bounds the content that waits on a node.
#[derive(Debug, Clone)]
pub(crate) struct CaptureQuota(Arc<Semaphore>);

impl Default for CaptureQuota {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(WAITING_KIB)))
    }
}

/// A copy of the beginning of a text on the wire.
#[derive(Debug)]
struct Beginning {
    bytes: Vec<u8>,
    whole: usize,
}

impl Beginning {
    fn of(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes[..bytes.len().min(TAKEN)].to_vec(),
            whole: bytes.len(),
        }
    }

    fn captured(&self) -> Captured {
        Captured::of(&self.bytes, self.whole)
    }
}

/// The content of a call on its way to the writer.
#[derive(Debug)]
pub(crate) struct TakenContent {
    capture: Arc<Capture>,
    arguments: Option<Beginning>,
    answer: Option<Beginning>,
    _permit: OwnedSemaphorePermit,
}

impl CaptureQuota {
    /// Copies arguments and answer; `None` if too much content waits.
    pub(crate) fn take(
        &self,
        capture: &Arc<Capture>,
        arguments: Option<&[u8]>,
        answer: Option<&[u8]>,
    ) -> Option<TakenContent> {
        let size = |bytes: Option<&[u8]>| bytes.map_or(0, |bytes| bytes.len().min(TAKEN));
        let kib = (size(arguments) + size(answer)).div_ceil(1024);
        let permits = u32::try_from(kib).unwrap_or(u32::MAX);
        let Ok(permit) = Arc::clone(&self.0).try_acquire_many_owned(permits) else {
            instruments::content_dropped(1);
            return None;
        };
        Some(TakenContent {
            capture: Arc::clone(capture),
            arguments: arguments.map(Beginning::of),
            answer: answer.map(Beginning::of),
            _permit: permit,
        })
    }
}

/// The content of a call, with the facts of its row.
#[derive(Debug)]
pub(crate) struct ContentOfCall {
    pub(crate) tenant: TenantId,
    pub(crate) call: CallId,
    pub(crate) at: Timestamp,
    pub(crate) server: ServerId,
    pub(crate) taken: TakenContent,
}

impl ContentOfCall {
    /// Masks, cuts and seals. `None`, which is logged, if it cannot be sealed: nothing is kept in
    /// clear.
    pub(crate) fn sealed(&self) -> Option<NewContent> {
        let TakenContent {
            capture,
            arguments,
            answer,
            ..
        } = &self.taken;
        let content = CallContent {
            arguments: arguments.as_ref().map(Beginning::captured),
            answer: answer.as_ref().map(Beginning::captured),
        };
        let place = vault::content_place(
            self.tenant.uuid().into_bytes(),
            self.call.uuid().into_bytes(),
        );
        let plain = serde_json::to_vec(&content).ok()?;
        let sealed = match capture.key.seal_content(&place, &plain) {
            Ok(sealed) => sealed,
            Err(error) => {
                tracing::error!(%error, "the content of a call cannot be sealed");
                return None;
            }
        };
        Some(NewContent {
            tenant: self.tenant,
            call: self.call,
            at: self.at,
            server: self.server,
            ends_at: end_of(self.at, capture.days),
            key: capture.key_id,
            sealed,
        })
    }
}
