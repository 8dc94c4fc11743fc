//! What the check of a value against a schema may cost (JS-7, testing.md B6).
//!
//! A schema of a few hundred bytes can ask for the same look at a value more often than anybody can wait for: every level of `allOf: [next, next]`
//! doubles what is below it. Two bounds hold that, whoever wrote the schema:
//!
//! - [`within`]: looks at the value are counted while it is checked, and the check is given up when there were too many, or they took too long.
//!   What is checked has the form [`Counted`].
//! - [`is_bounded`]: what applies to one and the same place of a value, which may be without a look at it, is counted in the schema before.

mod survey;

use std::{
    borrow::Cow,
    cell::Cell,
    iter,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    time::{Duration, Instant},
};

use jsonschema::{
    JsonType,
    json::{Array, Json, Node, NodeIdentity, Object},
};
use serde_json::Value;

pub(crate) use self::survey::is_bounded;

/// Bytes of a text that are one more look.
const TEXT: usize = 64;
/// No check takes longer, whatever the machine does beside it.
const LONGEST: Duration = Duration::from_secs(1);
/// Looks after which the clock is looked at.
const OFTEN: usize = 1_024;

thread_local! {
    /// Looks that the running check may still take.
    static LEFT: Cell<usize> = const { Cell::new(0) };
    /// When it began.
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Thrown by a check that has looked too often.
struct TooMuch;

/// Runs a check that may take so many looks. `None` if they were not enough: nothing is known then.
pub(crate) fn within<T>(looks: usize, check: impl FnOnce() -> T) -> Option<T> {
    LEFT.set(looks);
    BEGAN.set(Some(Instant::now()));
    // Nothing outlives the check that could be left half done: a compiled schema does not change.
    match catch_unwind(AssertUnwindSafe(check)) {
        Ok(found) => Some(found),
        Err(thrown) if thrown.is::<TooMuch>() => None,
        Err(thrown) => resume_unwind(thrown),
    }
}

fn look() {
    looks(1);
}

fn looks(count: usize) {
    let left = LEFT.get();
    let Some(rest) = left.checked_sub(count) else {
        give_up();
    };
    LEFT.set(rest);
    if rest / OFTEN != left / OFTEN && BEGAN.get().is_none_or(|began| began.elapsed() > LONGEST) {
        give_up();
    }
}

#[cold]
fn give_up() -> ! {
    // Past the hook for panics: it is no defect, and nobody is told.
    resume_unwind(Box::new(TooMuch))
}

/// Validators of this take values in the form `F`, and count the looks at them.
pub(crate) struct Counted<F>(PhantomData<F>);

/// A value of which looks are counted.
#[derive(Debug, Clone)]
pub(crate) struct Seen<N>(pub(crate) N);

/// The members of an object, likewise.
#[derive(Debug)]
pub(crate) struct Members<O>(O);

/// The items of a list, likewise.
#[derive(Debug)]
pub(crate) struct Items<A>(A);

type OfMember<M, N> = fn((M, N)) -> (M, Seen<N>);
type OfItem<N> = fn(N) -> Seen<N>;

fn member<M, N>((name, value): (M, N)) -> (M, Seen<N>) {
    look();
    (name, Seen(value))
}

fn item<N>(value: N) -> Seen<N> {
    look();
    Seen(value)
}

impl<F: Json> Json for Counted<F> {
    type Node<'a> = Seen<F::Node<'a>>;
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
        F::with_string_node(buffer, string, |node| f(Seen(node)))
    }
}

impl<'a, F: Json, N: Node<'a, F>> Node<'a, Counted<F>> for Seen<N> {
    type Object = Members<N::Object>;
    type Array = Items<N::Array>;
    type Number = N::Number;

    fn as_object(&self) -> Option<Self::Object> {
        look();
        self.0.as_object().map(Members)
    }

    fn as_array(&self) -> Option<Self::Array> {
        look();
        self.0.as_array().map(Items)
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.0.as_string();
        looks(1 + text.as_ref().map_or(0, |text| text.len() / TEXT));
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
        looks(1 + length.map_or(0, |length| usize::try_from(length).unwrap_or(0) / TEXT));
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

impl<'a, F: Json, O: Object<'a, F>> Object<'a, Counted<F>> for Members<O> {
    type Node = Seen<O::Node>;
    type MemberName = O::MemberName;
    type MembersIter = iter::Map<O::MembersIter, OfMember<O::MemberName, O::Node>>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &F::PreparedKey) -> Option<Self::Node> {
        look();
        self.0.get(key).map(Seen)
    }

    fn members(&self) -> Self::MembersIter {
        self.0.members().map(member)
    }
}

impl<'a, F: Json, A: Array<'a, F>> Array<'a, Counted<F>> for Items<A> {
    type Node = Seen<A::Node>;
    type ElementsIter = iter::Map<A::ElementsIter, OfItem<A::Node>>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> Self::ElementsIter {
        self.0.elements().map(item)
    }

    fn is_unique(&self) -> bool {
        looks(self.0.len());
        self.0.is_unique()
    }
}
