//! How often somebody may say something: so many a second, a second's worth at once, and what is more is not let through.

use std::time::Duration;

use tokio::time::Instant;

/// Of one speaker.
#[derive(Debug)]
pub(crate) struct Meter {
    apart: Duration,
    /// When all that was let through would have been said evenly.
    even: Option<Instant>,
}

impl Meter {
    pub(crate) fn new(a_second: u32) -> Self {
        Self {
            apart: Duration::from_secs(1) / a_second.max(1),
            even: None,
        }
    }

    /// True if this one may be said.
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
