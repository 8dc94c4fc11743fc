//! A running call: its channel to the client, suspended calls, progress and permits.

pub(crate) mod client_channel;
pub(crate) mod notices;
pub(crate) mod request_state;
pub(crate) mod retry;
pub(crate) mod stream_permit;
pub(crate) mod suspended;
