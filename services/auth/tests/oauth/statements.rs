//! The statements that the service sends to the database, as its driver logs them.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
    subscriber::DefaultGuard,
};

/// The driver's log target for an executed statement.
const TARGET: &str = "sqlx::query";

/// The statements of this thread since the last [`Statements::take`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Statements(Arc<Mutex<Vec<String>>>);

impl Statements {
    /// Records statements as long as the guard lives.
    pub(crate) fn listen() -> (Self, DefaultGuard) {
        let statements = Self::default();
        let guard = tracing::subscriber::set_default(statements.clone());
        (statements, guard)
    }

    /// Returns and clears the recorded statements.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Subscriber for Statements {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == TARGET
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(text.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// The text of a statement in an event: its summary, or the whole if that is longer.
struct Text(String);

impl Visit for Text {
    fn record_str(&mut self, field: &Field, value: &str) {
        if matches!(field.name(), "summary" | "db.statement") {
            self.0.push_str(value);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}
