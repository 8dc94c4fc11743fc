//! Which calls the log keeps.

use std::sync::Arc;

use portolan_metering::{Budget, budget::Judged};
use portolan_model::id::TenantId;
use uuid::Uuid;

/// A day's budget of ten rows a second.
const ROWS: u32 = 864_000;

struct Log {
    budget: Budget,
    tenant: TenantId,
    item: Arc<str>,
    now: f64,
}

/// Rows, and the calls that they stand for.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Kept {
    rows: u64,
    calls: u64,
}

impl Log {
    fn new() -> Self {
        Self {
            budget: Budget::new(ROWS),
            tenant: TenantId::generate(),
            item: "get_port".into(),
            now: 1_000_000.0,
        }
    }

    fn weigh(&mut self, is_error: bool, took_us: u64) -> Option<u32> {
        let call = Judged {
            tenant: self.tenant,
            id: Uuid::now_v7(),
            item: &self.item,
            is_error,
            took_us,
        };
        self.budget.weigh(&call, self.now)
    }

    /// So many calls a second, for so many seconds.
    fn calls(&mut self, a_second: u32, seconds: u32, is_error: bool) -> Kept {
        let mut kept = Kept::default();
        for _ in 0..seconds {
            for _ in 0..a_second {
                if let Some(weight) = self.weigh(is_error, 1_000) {
                    kept.rows += 1;
                    kept.calls += u64::from(weight);
                }
            }
            self.now += 1.0;
            self.budget.tidy(self.now);
        }
        kept
    }
}

/// Rule: METER-7.
#[test]
fn within_the_budget_every_call_is_kept() {
    let mut log = Log::new();
    let kept = log.calls(9, 3_600, false);
    assert_eq!((kept.rows, kept.calls), (32_400, 32_400));
}

/// Rule: METER-7. Beyond it a row stands for several calls, so that their sum is right.
#[test]
fn beyond_the_budget_the_weights_sum_to_the_calls() {
    let mut log = Log::new();
    // Uses up the first half of the bucket.
    log.calls(2_000, 20, false);
    let kept = log.calls(2_000, 300, false);
    assert!(kept.rows <= 11 * 300, "{kept:?}");
    let share = kept.calls as f64 / (2_000.0 * 300.0);
    assert!((0.9..1.1).contains(&share), "{kept:?}");
}

/// Rule: METER-7.
#[test]
fn an_error_is_kept_where_others_are_sampled() {
    let mut log = Log::new();
    log.calls(2_000, 60, false);
    for _ in 0..1_000 {
        assert_eq!(log.weigh(true, 1_000), Some(1));
    }
}

/// Rule: METER-7. Even errors are bounded: twice the bucket, then a sample.
#[test]
fn a_storm_of_errors_is_sampled_at_the_end() {
    let mut log = Log::new();
    let first = log.calls(10_000, 20, true);
    assert!(first.rows <= 80_000, "{first:?}");
    let then = log.calls(10_000, 60, true);
    assert!(then.rows <= 11 * 60, "{then:?}");
    let share = then.calls as f64 / 600_000.0;
    assert!((0.7..1.3).contains(&share), "{then:?}");
}

/// Rule: METER-7. Slow is slower than 99 of a hundred calls of the same tool.
#[test]
fn a_slow_call_is_kept_where_others_are_sampled() {
    let mut log = Log::new();
    log.calls(2_000, 60, false);
    for _ in 0..100 {
        assert_eq!(log.weigh(false, 50_000), Some(1));
    }
}

/// Whether a call is in a sample depends on its id: the halves of a call's rows agree.
#[test]
fn a_sample_is_decided_by_the_id_alone() {
    let mut log = Log::new();
    log.calls(2_000, 60, false);
    let id = Uuid::now_v7();
    let mut judged = || {
        let call = Judged {
            tenant: log.tenant,
            id,
            item: &log.item,
            is_error: false,
            took_us: 1_000,
        };
        log.budget.weigh(&call, log.now).is_some()
    };
    let first = judged();
    assert!((0..20).all(|_| judged() == first));
}

/// A quiet tenant gets its budget back.
#[test]
fn a_pause_fills_the_bucket_again() {
    let mut log = Log::new();
    log.calls(2_000, 60, false);
    log.now += 3_600.0;
    let kept = log.calls(100, 10, false);
    assert_eq!(
        kept,
        Kept {
            rows: 1_000,
            calls: 1_000
        }
    );
}
