//! The scripts. The head of each file lists its keys, arguments and replies.

use redis::Script;

macro_rules! scripts {
    ($($name:ident: $file:literal),* $(,)?) => {
        /// Every script with its SHA-1, computed once.
        #[derive(Debug)]
        pub(super) struct Scripts {
            $(pub(super) $name: ScriptSource,)*
        }

        impl Scripts {
            pub(super) fn new() -> Self {
                Self { $($name: ScriptSource::new($file, include_str!(concat!("scripts/", $file, ".lua"))),)* }
            }

            /// All scripts.
            pub(super) fn all(&self) -> Vec<&ScriptSource> {
                vec![$(&self.$name,)*]
            }
        }
    };
}

scripts! {
    begin: "begin",
    update: "update",
    remember: "remember",
    remove: "remove",
    append: "append",
    attach: "attach",
    read: "read",
    take_over: "take_over",
    register: "register",
    cancel: "cancel",
    answer: "answer",
    put_record: "put_record",
    records: "records",
    heartbeat: "heartbeat",
    take_tokens: "take_tokens",
    hold_slots: "hold_slots",
    inc: "inc",
}

/// Script with its name and digest.
#[derive(Debug)]
pub(super) struct ScriptSource {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
    pub(super) sha1: String,
}

impl ScriptSource {
    fn new(name: &'static str, text: &'static str) -> Self {
        Self {
            name,
            text,
            sha1: Script::new(text).get_hash().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_says_what_it_may_do_and_what_it_is_called_with() {
        for script in Scripts::new().all() {
            let mut lines = script.text.lines();
            let first = lines.next().unwrap_or_default();
            assert!(
                first.starts_with("#!lua"),
                "{}: without it, a full memory stops the script half-way (STREAM-5)",
                script.name
            );
            for word in ["-- KEYS ", "-- ARGV ", "-- Replies ", "-- Called "] {
                assert!(
                    script.text.lines().any(|line| line.starts_with(word)),
                    "{}: {word}",
                    script.name
                );
            }
            // STREAM-5, STREAM-17.2: scripts that write almost nothing run even when memory is
            // full.
            let allowed = [
                "begin",
                "attach",
                "remove",
                "take_over",
                "cancel",
                "inc",
                "heartbeat",
                "hold_slots",
            ];
            assert_eq!(
                first.contains("allow-oom"),
                allowed.contains(&script.name),
                "{}",
                script.name
            );
        }
    }
}
