//! A rate limiter in the process: a rate a second with a burst of one second.
//! dropped.

use std::time::Duration;

use tokio::time::Instant;

/// The limiter of one sender.
#[derive(Debug)]
pub(crate) struct Meter {
    apart: Duration,
    /// When all passed messages would have been sent at an even rate.
    even: Option<Instant>,
}

impl Meter {
    pub(crate) fn new(a_second: u32) -> Self {
        Self {
            apart: Duration::from_secs(1) / a_second.max(1),
            even: None,
        }
    }

    /// True if a message may pass now.
    pub(crate) fn passes(&mut self) -> bool {
        let now = Instant::now();
        let even = self.even.map_or(now, |even| even.max(now));
        let may = even + self.apart <= now + Duration::from_secs(1);
        if may {
            self.even = Some(even + self.apart);
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_second_has_room_for_so_many_and_the_next_second_again() {
        let mut meter = Meter::new(10);
        for second in 0..3 {
            let let_through = (0..100).filter(|_| meter.passes()).count();
            assert_eq!(let_through, 10, "second {second}");
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert!(meter.passes());
    }
}
