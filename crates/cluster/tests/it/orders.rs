//! Files of the product that are nothing but atomics, in every order of events that the memory model allows (testing.md, layer I). What runs
//! is the very text of the files, with `loom`'s atomics in place of the standard library's.

use loom::{
    model,
    sync::{Arc, Mutex, atomic},
    thread,
};

use self::{
    counts::{Counts, Listed},
    known::Known,
};

#[path = "../../src/node/limits/places/counts.rs"]
mod counts;
#[path = "../../src/node/running/known.rs"]
mod known;

/// One place, used by somebody else; the store has no more.
fn one_place_in_use() -> Arc<Counts> {
    let counts = Arc::new(Counts::new());
    counts.granted(1, false);
    assert_eq!(counts.enter(None), Some((1, 1)));
    counts
}

/// Kills the mutant that says *full* after the number: then both look past each other, and a place lies idle while somebody waits for it.
#[test]
fn a_place_that_is_given_back_while_the_store_says_full_is_taken_or_told() {
    model(|| {
        let counts = one_place_in_use();
        let leaving = {
            let counts = Arc::clone(&counts);
            thread::spawn(move || counts.leave())
        };
        // As `places::ask` does it for whoever waits.
        counts.granted(1, true);
        assert!(counts.is_full());
        let is_in = counts.enter(None).is_some();
        let is_told = leaving.join().expect("no panic");
        assert!(
            is_in || is_told,
            "somebody waits, and nobody tells of the place"
        );
    });
}

/// Kills a store in place of the swap in [`Listed::clear`]: then what was given back meanwhile is not seen, and not listed either.
#[test]
fn a_place_that_is_given_back_while_the_store_is_asked_is_seen_or_listed_again() {
    model(|| {
        let (counts, listed) = (one_place_in_use(), Arc::new(Listed::new()));
        assert!(listed.set(), "the store is being asked");
        let leaving = {
            let (counts, listed) = (Arc::clone(&counts), Arc::clone(&listed));
            thread::spawn(move || {
                let _ = counts.leave();
                listed.set()
            })
        };
        listed.clear();
        let (held, used) = counts.get();
        let is_listed = leaving.join().expect("no panic");
        assert!(is_listed || held > used, "nobody gives the place back");
    });
}

/// Kills an `enter` that adds without comparing, and a `hold` that writes what it read before.
#[test]
fn no_more_places_are_used_than_held_and_none_is_forgotten() {
    model(|| {
        let counts = Arc::new(Counts::new());
        counts.granted(1, false);
        let entering = {
            let counts = Arc::clone(&counts);
            thread::spawn(move || counts.enter(None).is_some())
        };
        let giving_back = {
            let counts = Arc::clone(&counts);
            // As `places::ask` does it with what is idle.
            thread::spawn(move || counts.hold(|_, used| used))
        };
        let is_in = counts.enter(None).is_some();
        let was_used = giving_back.join().expect("no panic");
        let others = u64::from(entering.join().expect("no panic")) + u64::from(is_in);
        let (held, used) = counts.get();
        assert!(others <= 1, "one place, and two who use it");
        assert_eq!(used, others);
        assert_eq!(held, was_used, "what is held is what was told to the store");
        assert!(used <= held);
    });
}

/// What the store has of a request whose stream closes. Kills a `tell` that does not look, and an `is_over` that is asked too early.
#[test]
fn no_entry_of_a_request_outlives_its_stream() {
    model(|| {
        let (known, entry) = (Arc::new(Known::new()), Arc::new(Mutex::new(false)));
        let registering = {
            let (known, entry) = (Arc::clone(&known), Arc::clone(&entry));
            thread::spawn(move || register(&known, &entry))
        };
        // As the writer does it: the append that closes the stream takes the entry along.
        known.end();
        *entry.lock().expect("no panic") = false;
        registering.join().expect("no panic");
        assert!(!*entry.lock().expect("no panic"), "nobody takes it away");
    });
}

/// The same for one without a stream: its end takes the entry away if there may be one.
#[test]
fn no_entry_of_a_request_outlives_it() {
    model(|| {
        let (known, entry) = (Arc::new(Known::new()), Arc::new(Mutex::new(false)));
        let registering = {
            let (known, entry) = (Arc::clone(&known), Arc::clone(&entry));
            thread::spawn(move || register(&known, &entry))
        };
        if known.end() {
            *entry.lock().expect("no panic") = false;
        }
        registering.join().expect("no panic");
        assert!(!*entry.lock().expect("no panic"), "nobody takes it away");
        assert!(known.is_over() && !known.is_told());
    });
}

/// As `running::register_one` does it.
fn register(known: &Known, entry: &Mutex<bool>) {
    if !known.tell() {
        return;
    }
    *entry.lock().expect("no panic") = true;
    if known.is_over() {
        *entry.lock().expect("no panic") = false;
    }
}
