//! A span: a piece of work of a call, from its beginning until it is dropped.

use std::sync::{Mutex, PoisonError};

use portolan_model::{Clock, Timestamp};

use crate::{Context, finished};

/// Role of a span between two processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// It answers a request.
    Server,
    /// It makes one.
    Client,
    /// Neither.
    Internal,
}

/// Where the parent of a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParentPlace {
    /// In this process.
    Here,
    /// In another process, which sent its context.
    Remote,
}

/// Value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A word.
    Text(String),
    /// A number.
    Number(i64),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// A span that is over.
#[derive(Debug, Clone)]
pub struct Finished {
    /// 16 bytes.
    pub trace: u128,
    /// 8 bytes.
    pub id: u64,
    /// The span in which it was made.
    pub parent: Option<u64>,
    /// That one is of another process.
    pub parent_is_remote: bool,
    /// `tracestate`, as the client sent it.
    pub state: Option<String>,
    /// Name of the operation.
    pub name: &'static str,
    /// Its part.
    pub kind: SpanKind,
    /// When it began.
    pub began: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// Attributes.
    pub attributes: Vec<(&'static str, Value)>,
    /// How it failed.
    pub failure: Option<&'static str>,
}

#[derive(Debug)]
struct Record {
    parent: Option<u64>,
    parent_is_remote: bool,
    name: &'static str,
    kind: SpanKind,
    began: Timestamp,
    attributes: Vec<(&'static str, Value)>,
    failure: Option<&'static str>,
}

/// Work that is under way. It ends when it is dropped.
#[derive(Debug)]
#[must_use = "a span ends when it is dropped"]
pub struct Span(Box<SpanState>);

#[derive(Debug)]
struct SpanState {
    context: Context,
    /// `None`: the trace is not recorded, and this only passes that on.
    record: Option<Mutex<Record>>,
}

impl Span {
    pub(crate) fn root(context: Context, name: &'static str, kind: SpanKind) -> Self {
        Self::new(context.next(), None, false, name, kind)
    }

    pub(crate) fn under(
        parent: &Context,
        place: ParentPlace,
        name: &'static str,
        kind: SpanKind,
    ) -> Self {
        if !parent.is_sampled() {
            return Self(Box::new(SpanState {
                context: parent.clone(),
                record: None,
            }));
        }
        let is_remote = place == ParentPlace::Remote;
        Self::new(parent.next(), Some(parent.span), is_remote, name, kind)
    }

    fn new(
        context: Context,
        parent: Option<u64>,
        parent_is_remote: bool,
        name: &'static str,
        kind: SpanKind,
    ) -> Self {
        let record = Record {
            parent,
            parent_is_remote,
            name,
            kind,
            began: Clock::system().now(),
            attributes: Vec::new(),
            failure: None,
        };
        Self(Box::new(SpanState {
            context,
            record: Some(Mutex::new(record)),
        }))
    }

    /// Work of the same call that another node began. `None` if it is not recorded, or nothing is
    /// here.
    pub fn of_another_node(context: &Context, name: &'static str) -> Option<Self> {
        (crate::is_on() && context.is_sampled())
            .then(|| Self::under(context, ParentPlace::Remote, name, SpanKind::Internal))
    }

    /// A part of this work. `None` if nothing is recorded.
    pub fn part(&self, name: &'static str) -> Option<Self> {
        self.is_recorded()
            .then(|| Self::under(self.context(), ParentPlace::Here, name, SpanKind::Internal))
    }

    /// Starts a span for a request to another service, which receives [`Span::context`].
    pub fn request(&self, name: &'static str) -> Self {
        Self::under(self.context(), ParentPlace::Here, name, SpanKind::Client)
    }

    /// Position in the trace.
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// Whether it is recorded.
    pub fn is_recorded(&self) -> bool {
        self.0.record.is_some()
    }

    /// Says something about it.
    pub fn set(&self, name: &'static str, value: impl Into<Value>) {
        self.with(|record| record.attributes.push((name, value.into())));
    }

    /// It did not go well.
    pub fn failed(&self, how: &'static str) {
        self.with(|record| record.failure = Some(how));
    }

    /// It began earlier than it was made.
    pub fn since(&self, began: Timestamp) {
        self.with(|record| record.began = began);
    }

    fn with(&self, act: impl FnOnce(&mut Record)) {
        if let Some(record) = &self.0.record {
            act(&mut record.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        let Some(record) = self.0.record.take() else {
            return;
        };
        let record = record.into_inner().unwrap_or_else(PoisonError::into_inner);
        finished(Finished {
            trace: self.0.context.trace,
            id: self.0.context.span,
            parent: record.parent,
            parent_is_remote: record.parent_is_remote,
            state: self.0.context.tracestate().map(str::to_owned),
            name: record.name,
            kind: record.kind,
            began: record.began,
            ended: Clock::system().now(),
            attributes: record.attributes,
            failure: record.failure,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::{Sink, call, is_on, now, start};

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<Finished>>>);

    impl Sink for Kept {
        fn take(&self, span: Finished) {
            self.0.lock().unwrap().push(span);
        }
    }

    /// One test, because a process starts its traces once.
    #[test]
    fn a_call_is_one_trace_if_its_client_or_the_share_says_so() {
        let parent = |flags: &str| {
            Context::read(
                &format!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-{flags}"),
                Some("vendor=a"),
            )
        };
        assert!(!is_on() && now().is_none());
        assert!(call("call", parent("01")).is_none(), "nothing was started");

        let kept = Kept::default();
        start(Box::new(kept.clone()), 0.0, 1).unwrap();
        assert!(start(Box::new(kept.clone()), 1.0, 1).is_err());
        assert!(call("call", None).is_none(), "no share is traced");

        let unsampled = call("call", parent("00")).unwrap();
        assert!(unsampled.part("run").is_none() && !unsampled.is_recorded());
        assert_eq!(
            Some(unsampled.request("upstream").context()),
            parent("00").as_ref(),
            "who comes after is told so"
        );
        drop(unsampled);
        assert!(kept.0.lock().unwrap().is_empty());

        let span = call("call", parent("01")).unwrap();
        let run = span.part("run").unwrap();
        let request = run.request("upstream");
        request.set("number", 7);
        request.failed("timeout");
        let sent = request.context().clone();
        drop(request);
        drop(run);
        let elsewhere = Span::of_another_node(
            &Context::from_bytes(&span.context().to_bytes()).unwrap(),
            "resume",
        );
        drop(elsewhere);
        drop(span);
        // STREAM-20: a client above the limit gets no more recorded spans, and the next service
        // receives that decision. Five more would take 5 s.
        let more: Vec<_> = (0..50).filter_map(|_| call("more", parent("01"))).collect();
        let recorded = more.iter().filter(|span| span.is_recorded()).count();
        assert!(more.len() == 50 && recorded < 5, "{recorded}");
        for span in more.iter().filter(|span| !span.is_recorded()) {
            assert_eq!(Some(span.context()), parent("00").as_ref());
        }
        drop(more);
        kept.0.lock().unwrap().retain(|span| span.name != "more");

        let spans = kept.0.lock().unwrap();
        let names: Vec<_> = spans.iter().map(|span| span.name).collect();
        assert_eq!(names, ["upstream", "run", "resume", "call"]);
        let [upstream, run, resume, call] = &spans[..] else {
            panic!("{spans:?}")
        };
        assert!(spans.iter().all(|span| span.trace == sent.trace));
        assert_eq!(call.parent, Some(0x00f0_67aa_0ba9_02b7));
        assert!(call.parent_is_remote && resume.parent_is_remote && !run.parent_is_remote);
        assert_eq!((run.parent, resume.parent), (Some(call.id), Some(call.id)));
        assert_eq!((upstream.parent, upstream.id), (Some(run.id), sent.span));
        assert_eq!(upstream.attributes, [("number", Value::Number(7))]);
        assert_eq!(upstream.failure, Some("timeout"));
        assert_eq!(upstream.state.as_deref(), Some("vendor=a"));
        assert!(call.began <= upstream.began && upstream.ended <= call.ended);
    }
}
