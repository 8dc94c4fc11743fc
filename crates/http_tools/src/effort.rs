//! Bounds for the cost of a piece of work (REVIEW-S-1, MCP-JS-7, TEST-B6).
//!
//! A schema of a few hundred bytes can demand an unbounded number of looks at one value: every
//! level of `allOf: [next, next]` doubles the work below it. A document can do the same to its
//! import: three thousand operations share one large schema. Work on untrusted input therefore runs
//! [`within`] bounds. It counts its steps with [`spend`], and ends after too many steps, after its
//! deadline, or when its caller is gone ([`Stop`]).
//!
//! - A check of a value counts the looks at it. The checked value has the form [`Counted`].
//! - [`crate::survey::is_bounded`]: schemas that apply to the same place of a value may do so
//!   without a look at it. They are counted in the schema beforehand.
//! - [`pattern`]: the cost of a pattern is computed before it is compiled.

pub(crate) mod pattern;

use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    iter,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use jsonschema::{
    JsonType,
    json::{Array, Json, Node, NodeIdentity, Object},
};
use serde_json::Value;

/// Bytes of a text that are one step.
const TEXT: usize = 64;
/// No check of a value takes longer, whatever the machine does beside it.
const LONGEST_CHECK: Duration = Duration::from_secs(1);
/// Steps between two checks of the deadline and the stop flag. A step takes about 25 ns.
const OFTEN: usize = 1_024;

/// Tells work on another thread to end. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends the work at its next look.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Ends the work when the guard is dropped: with the request that wants it.
    #[must_use]
    pub fn when_dropped(&self) -> StopWhenDropped {
        StopWhenDropped(self.clone())
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// See [`Stop::when_dropped`].
#[derive(Debug)]
pub struct StopWhenDropped(Stop);

impl Drop for StopWhenDropped {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// What bounds a piece of work.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    /// Steps that it may take.
    pub(crate) steps: usize,
    /// When its time is over.
    pub(crate) until: Instant,
    /// Signals that the caller is gone; `None` if the caller waits in any case.
    pub(crate) stop: Option<Stop>,
}

impl Bounds {
    /// For work that the caller waits for: so many steps, and no longer than the check of a value.
    pub(crate) fn of_check(steps: usize) -> Self {
        Self {
            steps,
            until: Instant::now() + LONGEST_CHECK,
            stop: None,
        }
    }
}

/// Why work was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GivenUp {
    /// It takes more steps than it may.
    TooMuch,
    /// Its time is over.
    TooLate,
    /// The caller is gone.
    Stopped,
}

/// What else than its steps ends the work of this thread.
struct Ends {
    until: Instant,
    stop: Option<Stop>,
}

thread_local! {
    /// Steps that the running work may still take.
    static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
    /// `None`: no work runs within bounds.
    static ENDS: RefCell<Option<Ends>> = const { RefCell::new(None) };
    /// Cost of a byte of a member's name, in sixty-fourths of a step.
    static NAMES: Cell<usize> = const { Cell::new(1) };
}

/// The bounds of the work around, put back when this is dropped.
struct Outer {
    left: usize,
    ends: Option<Ends>,
}

impl Drop for Outer {
    fn drop(&mut self) {
        LEFT.set(self.left);
        ENDS.replace(self.ends.take());
    }
}

/// Runs work within bounds. Unfinished results are dropped.
pub(crate) fn within<T>(bounds: Bounds, work: impl FnOnce() -> T) -> Result<T, GivenUp> {
    let ends = Ends {
        until: bounds.until,
        stop: bounds.stop,
    };
    let _outer = Outer {
        left: LEFT.replace(bounds.steps),
        ends: ENDS.replace(Some(ends)),
    };
    // Nothing outlives the work that could be left half done: a compiled schema does not change.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => Ok(done),
        Err(thrown) => match thrown.downcast::<GivenUp>() {
            Ok(why) => Err(*why),
            Err(thrown) => resume_unwind(thrown),
        },
    }
}

/// Runs a check of a value that may take so many looks. A byte of a member's name costs `names`
/// sixty-fourths of one. `None` if they were not enough: nothing is known then.
pub(crate) fn check<T>(looks: usize, names: usize, check: impl FnOnce() -> T) -> Option<T> {
    NAMES.set(names.max(1));
    within(Bounds::of_check(looks), check).ok()
}

fn look() {
    spend(1);
}

/// Counts steps of the work that runs. Work that runs without bounds goes on for ever.
pub(crate) fn spend(steps: usize) {
    let left = LEFT.get();
    let Some(rest) = left.checked_sub(steps) else {
        give_up(GivenUp::TooMuch);
    };
    LEFT.set(rest);
    if rest / OFTEN != left / OFTEN {
        look_around();
    }
}

/// Counts the steps of reading or copying a text.
pub(crate) fn spend_text(text: &str) {
    spend(1 + text.len() / TEXT);
}

/// Counts the steps of copying a value.
pub(crate) fn spend_value(value: &Value) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => spend(1),
        Value::String(text) => spend_text(text),
        Value::Array(items) => {
            spend(2);
            items.iter().for_each(spend_value);
        }
        Value::Object(members) => {
            spend(2);
            for (name, value) in members {
                spend_text(name);
                spend_value(value);
            }
        }
    }
}

#[cold]
fn look_around() {
    let why = ENDS.with_borrow(|ends| {
        let ends = ends.as_ref()?;
        if ends.stop.as_ref().is_some_and(Stop::is_set) {
            Some(GivenUp::Stopped)
        } else if Instant::now() > ends.until {
            Some(GivenUp::TooLate)
        } else {
            None
        }
    });
    if let Some(why) = why {
        give_up(why);
    }
}

#[cold]
fn give_up(why: GivenUp) -> ! {
    // Bypasses the panic hook: giving up is no defect and is not reported.
    resume_unwind(Box::new(why))
}

/// Validators of this take values in the form `F`, and count the looks at them.
pub(crate) struct Counted<F>(PhantomData<F>);

/// A value whose looks are counted.
#[derive(Debug, Clone)]
pub(crate) struct SeenNode<N>(pub(crate) N);

/// The members of an object, likewise.
#[derive(Debug)]
pub(crate) struct CountedMembers<O>(O);

/// The items of a list, likewise.
#[derive(Debug)]
pub(crate) struct Items<A>(A);

type OfMember<M, N> = fn((M, N)) -> (M, SeenNode<N>);
type OfItem<N> = fn(N) -> SeenNode<N>;

fn member<M: AsRef<str>, N>((name, value): (M, N)) -> (M, SeenNode<N>) {
    spend(1 + name.as_ref().len().saturating_mul(NAMES.get()) / TEXT);
    (name, SeenNode(value))
}

fn item<N>(value: N) -> SeenNode<N> {
    look();
    SeenNode(value)
}

impl<F: Json> Json for Counted<F> {
    type Node<'a> = SeenNode<F::Node<'a>>;
    type PreparedKey = F::PreparedKey;
    type StringBuffer = F::StringBuffer;

    const KEYS_PER_LOOKUP: usize = F::KEYS_PER_LOOKUP;

    fn prepare_key(key: &str) -> F::PreparedKey {
        F::prepare_key(key)
    }

    fn with_string_node<T>(
        buffer: &mut F::StringBuffer,
        string: &str,
        f: impl FnOnce(Self::Node<'_>) -> T,
    ) -> T {
        F::with_string_node(buffer, string, |node| f(SeenNode(node)))
    }
}

impl<'a, F: Json, N: Node<'a, F>> Node<'a, Counted<F>> for SeenNode<N> {
    type Object = CountedMembers<N::Object>;
    type Array = Items<N::Array>;
    type Number = N::Number;

    fn as_object(&self) -> Option<Self::Object> {
        look();
        self.0.as_object().map(CountedMembers)
    }

    fn as_array(&self) -> Option<Self::Array> {
        look();
        self.0.as_array().map(Items)
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.0.as_string();
        spend(1 + text.as_ref().map_or(0, |text| text.len() / TEXT));
        text
    }

    fn as_number(&self) -> Option<N::Number> {
        look();
        self.0.as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        look();
        self.0.as_boolean()
    }

    fn is_null(&self) -> bool {
        look();
        self.0.is_null()
    }

    fn is_number(&self) -> bool {
        look();
        self.0.is_number()
    }

    fn is_string(&self) -> bool {
        look();
        self.0.is_string()
    }

    fn json_type(&self) -> JsonType {
        look();
        self.0.json_type()
    }

    fn string_length(&self) -> Option<u64> {
        let length = self.0.string_length();
        spend(1 + length.map_or(0, |length| usize::try_from(length).unwrap_or(0) / TEXT));
        length
    }

    fn equals_value(&self, expected: &Value) -> bool {
        look();
        self.0.equals_value(expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        look();
        self.0.to_value()
    }

    fn identity(&self) -> Option<NodeIdentity> {
        self.0.identity()
    }

    fn container_identity(&self) -> Option<NodeIdentity> {
        self.0.container_identity()
    }
}

impl<'a, F: Json, O: Object<'a, F>> Object<'a, Counted<F>> for CountedMembers<O> {
    type Node = SeenNode<O::Node>;
    type MemberName = O::MemberName;
    type MembersIter = iter::Map<O::MembersIter, OfMember<O::MemberName, O::Node>>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &F::PreparedKey) -> Option<Self::Node> {
        look();
        self.0.get(key).map(SeenNode)
    }

    fn members(&self) -> Self::MembersIter {
        self.0.members().map(member)
    }
}

impl<'a, F: Json, A: Array<'a, F>> Array<'a, Counted<F>> for Items<A> {
    type Node = SeenNode<A::Node>;
    type ElementsIter = iter::Map<A::ElementsIter, OfItem<A::Node>>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> Self::ElementsIter {
        self.0.elements().map(item)
    }

    fn is_unique(&self) -> bool {
        spend(self.0.len());
        self.0.is_unique()
    }
}
