//! Losses of a translation, by name.

use std::fmt;

macro_rules! losses {
    ($($variant:ident $rule:literal $doc:literal),* $(,)?) => {
        /// One sort of loss. The order is that of the table in `docs/revisions.md`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Loss { $(#[doc = $doc] $variant),* }

        impl Loss {
            /// Every sort.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The rule that names it.
            pub const fn rule(self) -> &'static str {
                match self { $(Self::$variant => $rule),* }
            }

            /// Describes the loss.
            pub const fn what(self) -> &'static str {
                match self { $(Self::$variant => $doc),* }
            }
        }
    };
}

losses! {
    Title "X-60" "The display name `title`.",
    Icons "X-60" "Pictures.",
    UnsafeIcons "IC-2" "Pictures that are neither `https:` nor `data:`.",
    Annotations "X-60" "Hints about a tool.",
    LastModified "X-60" "The date in the hints about a block or a resource.",
    Execution "X-60" "Whether a tool runs as a task.",
    Meta "X-60" "`_meta` of an object that has none in the older revision.",
    OutputSchema "X-60" "The schema of structured output.",
    Caching "X-60" "How long and for whom a result stays fresh.",
    Audio "X-61" "Sound; a line of text stands for it.",
    ResourceLink "X-62" "A link to a resource; a line of text stands for it.",
    Structured "X-63" "Structured output; its JSON stands in a text.",
    StructuredShape "X-64" "Structured output that is no object; its JSON stands in a text.",
    OutputShape "X-64" "The schema of structured output that is no object.",
    UnknownBlock "V-7" "A block of a type that no revision knows; a line of text stands for it.",
    Malformed "X-8" "A member of a type that no revision allows.",
    SchemaDialect "JS-9" "`$schema`.",
    BooleanSchema "JS-9" "A property whose schema is a boolean; an object that says the same stands for it.",
    MirroredHeader "X-6C" "An invalid `x-mcp-header`.",
    CompletionValues "X-6F" "Suggestions beyond the hundredth.",
    ErrorCode "X-6A" "The number of an error; it stands in the data.",
    ElicitationId "X-32" "The id of a question by URL: there is no notice of its end.",
    FormDefault "X-34" "A value that a form begins with.",
    FormPattern "EL-6" "A pattern in a form, which no revision allows.",
    JoinedBlocks "X-3C" "The bounds between blocks of text in a message.",
    IncludeContext "X-3E" "The wish for context of other servers.",
    QuestionTask "TK-17" "The wish that a question be answered by a task.",
    QuestionProgress "X-19" "The asker's progress token.",
}

/// Several sorts of loss at once.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Losses(u32);

impl Losses {
    /// Nothing is lost.
    pub const NONE: Self = Self(0);

    /// One more.
    pub const fn add(&mut self, loss: Loss) {
        self.0 |= 1 << loss as u32;
    }

    /// Those of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// True if it is among them.
    pub const fn has(self, loss: Loss) -> bool {
        self.0 & (1 << loss as u32) != 0
    }

    /// True if nothing is lost.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Loss> {
        Loss::ALL
            .iter()
            .copied()
            .filter(move |loss| self.has(*loss))
    }
}

impl fmt::Debug for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
