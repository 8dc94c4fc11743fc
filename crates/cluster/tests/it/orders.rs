//! Runs files of the product that contain only atomics through every order of events that the
//! memory model allows (TEST-I). The files themselves are compiled, with `loom`'s
//! atomics in place of the standard library's.

use loom::{
    model,
    sync::{Arc, Mutex, atomic},
    thread,
};

use self::{
    counts::{Counts, ListedFlag},
    known::StoreKnowledge,
};

#[path = "../../src/node/limits/permits/counts.rs"]
mod counts;
#[path = "../../src/node/running/known.rs"]
mod known;

/// One permit, used by another call; the store has no more.
fn one_place_in_use() -> Arc<Counts> {
    let counts = Arc::new(Counts::new());
    counts.granted(1, false);
    assert_eq!(counts.enter(None), Some((1, 1)));
    counts
}

/// Kills the mutant that stores the flag `is_full` after the number. Both threads then miss each
/// other, and a permit stays unused while a call waits.
#[test]
fn a_place_that_is_given_back_while_the_store_says_full_is_taken_or_told() {
    model(|| {
        let counts = one_place_in_use();
        let leaving = {
            let counts = Arc::clone(&counts);
            thread::spawn(move || counts.leave())
        };
        // As `permits::ask` does for a waiting call.
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

/// Kills a store in place of the swap in [`ListedFlag::clear`]. A permit that was returned
/// meanwhile would then be neither seen nor listed.
#[test]
fn a_place_that_is_given_back_while_the_store_is_asked_is_seen_or_listed_again() {
    model(|| {
        let (counts, listed) = (one_place_in_use(), Arc::new(ListedFlag::new()));
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

/// Kills an `enter` that adds without a comparison, and a `hold` that writes a stale value.
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
            // As `permits::ask` does with unused permits.
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

/// Entry in the store of a request whose stream closes. Kills a `tell` without a check, and a check
/// of `is_over` that is too early.
#[test]
fn no_entry_of_a_request_outlives_its_stream() {
    model(|| {
        let (known, entry) = (Arc::new(StoreKnowledge::new()), Arc::new(Mutex::new(false)));
        let registering = {
            let (known, entry) = (Arc::clone(&known), Arc::clone(&entry));
            thread::spawn(move || register(&known, &entry))
        };
        // As the writer does: the append that closes the stream also removes the entry.
        known.end();
        *entry.lock().expect("no panic") = false;
        registering.join().expect("no panic");
        assert!(!*entry.lock().expect("no panic"), "nobody takes it away");
    });
}

/// The same for a request without a stream: its end removes the entry if there may be one.
#[test]
fn no_entry_of_a_request_outlives_it() {
    model(|| {
        let (known, entry) = (Arc::new(StoreKnowledge::new()), Arc::new(Mutex::new(false)));
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

/// As `running::register_one` does.
fn register(known: &StoreKnowledge, entry: &Mutex<bool>) {
    if !known.tell() {
        return;
    }
    *entry.lock().expect("no panic") = true;
    if known.is_over() {
        *entry.lock().expect("no panic") = false;
    }
}
