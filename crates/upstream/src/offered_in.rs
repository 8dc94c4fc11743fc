//! A server of both eras may list other tools in sessions than in 2026-07-28.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::offer::{Offer, OfferedTool};

/// Eras in which a server of both eras offers a tool, if they differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferedIn {
    /// In sessions alone.
    Sessions,
    /// In 2026-07-28 alone.
    Stateless,
    /// In both; what it requires, only sessions require.
    GatedSessions,
}

impl OfferedIn {
    const ALL: [Self; 3] = [Self::Sessions, Self::Stateless, Self::GatedSessions];

    /// As a plan has it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Stateless => "stateless",
            Self::GatedSessions => "gated_sessions",
        }
    }

    /// Of the plan of a tool, which is `own` in `{"upstream": own}`.
    pub fn of(own: &Value) -> Option<Self> {
        let word = own.get("era")?.as_str()?;
        Self::ALL.into_iter().find(|place| place.word() == word)
    }
}

impl Offer {
    /// Adds the tools that the same server lists in sessions. Tools of both eras keep the
    /// definition of 2026-07-28.
    pub(crate) fn join(&mut self, sessions: Self) {
        let mut others: BTreeMap<String, OfferedTool> = sessions
            .tools
            .into_iter()
            .map(|tool| (tool.name.clone(), tool))
            .collect();
        for tool in &mut self.tools {
            match others.remove(&tool.name) {
                None => tool.is_in(OfferedIn::Stateless),
                Some(other) => {
                    let requires = &other.plan["upstream"]["requires"];
                    if requires.is_array() {
                        tool.plan["upstream"]["requires"] = requires.clone();
                        tool.is_in(OfferedIn::GatedSessions);
                    }
                }
            }
        }
        for mut tool in others.into_values() {
            tool.is_in(OfferedIn::Sessions);
            self.tools.push(tool);
        }
        self.tools.sort_by(|a, b| a.name.cmp(&b.name));
        for sentence in sessions.skipped {
            if !self.skipped.contains(&sentence) {
                self.skipped.push(sentence);
            }
        }
    }
}

impl OfferedTool {
    fn is_in(&mut self, place: OfferedIn) {
        self.plan["upstream"]["era"] = json!(place.word());
    }
}
