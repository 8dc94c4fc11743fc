//! Rate limit for notifications to a client while its request runs (MCP-PP-3, MCP-LG-6): ten per
//! second for each progress token and for each logger. Of notifications above the limit only the
//! newest is kept, and it is always sent. The caller passes the time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Most notifications of one queue within [`WINDOW`], for a client that waits.
pub const MOST: usize = 10;
/// Period in which at most [`MOST`] notifications are sent.
pub const WINDOW: Duration = Duration::from_secs(1);
/// Most loggers with a queue of their own in one request; the others share a queue.
const LOGGERS: usize = 16;

/// Which notifications are counted together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Progress under the token of the request.
    Progress,
    /// Messages of a logger, or of none.
    Log(Option<String>),
}

/// One queue: the times of its last notifications, and the notification that waits.
#[derive(Debug)]
struct QueueState<T> {
    queue: Queue,
    /// The last times, oldest first: as many as there may be in the window.
    told: VecDeque<Instant>,
    waits: Option<T>,
}

impl<T> QueueState<T> {
    /// Time from which the next notification may be sent; `None` if it may be sent at once.
    fn opens(&self, most: usize) -> Option<Instant> {
        let first = self.told.front().filter(|_| self.told.len() >= most)?;
        Some(*first + WINDOW)
    }

    fn is_open(&self, most: usize, now: Instant) -> bool {
        self.opens(most).is_none_or(|opens| opens <= now)
    }

    fn tell(&mut self, most: usize, now: Instant) {
        while self.told.len() >= most {
            self.told.pop_front();
        }
        self.told.push_back(now);
    }
}

/// The notifications of one request on their way to its client.
#[derive(Debug)]
pub struct Pace<T> {
    most: usize,
    queues: Vec<QueueState<T>>,
    dropped: u64,
}

impl<T> Pace<T> {
    /// Creates a limit of `most` notifications per second and queue, at least one.
    pub fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            queues: Vec::new(),
            dropped: 0,
        }
    }

    /// Takes a notification. Returns it if it may be sent now; otherwise it waits and replaces the
    /// notification that waited before.
    pub fn take(&mut self, queue: Queue, notification: T, now: Instant) -> Option<T> {
        let most = self.most;
        let kept = self.queue(queue);
        if kept.waits.is_none() && kept.is_open(most, now) {
            kept.tell(most, now);
            return Some(notification);
        }
        if kept.waits.replace(notification).is_some() {
            self.dropped += 1;
        }
        None
    }

    /// Earliest time at which a waiting notification may be sent.
    pub fn due(&self) -> Option<Instant> {
        let waiting = self.queues.iter().filter(|kept| kept.waits.is_some());
        waiting.filter_map(|kept| kept.opens(self.most)).min()
    }

    /// Takes a waiting notification that may be sent now.
    pub fn next(&mut self, now: Instant) -> Option<T> {
        let most = self.most;
        let is_due = |kept: &&mut QueueState<T>| kept.waits.is_some() && kept.is_open(most, now);
        let kept = self.queues.iter_mut().find(is_due)?;
        kept.tell(most, now);
        kept.waits.take()
    }

    /// Takes a waiting notification before the answer is sent: the newest of each queue is always
    /// sent.
    pub fn last(&mut self) -> Option<T> {
        self.queues.iter_mut().find_map(|kept| kept.waits.take())
    }

    /// Number of notifications that newer ones replaced since the last call.
    pub fn dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    fn queue(&mut self, queue: Queue) -> &mut QueueState<T> {
        let find = |queues: &[QueueState<T>], queue: &Queue| {
            queues.iter().position(|kept| kept.queue == *queue)
        };
        let mut queue = queue;
        let mut known = find(&self.queues, &queue);
        // Loggers beyond the limit share one queue, so that a new logger for each message does not
        // evade the limit.
        if known.is_none() && self.queues.len() > LOGGERS && queue != Queue::Progress {
            queue = Queue::Log(None);
            known = find(&self.queues, &queue);
        }
        let at = known.unwrap_or_else(|| {
            self.queues.push(QueueState {
                queue,
                told: VecDeque::new(),
                waits: None,
            });
            self.queues.len() - 1
        });
        &mut self.queues[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes `count` notifications from `start` on, a millisecond apart. Returns those that were
    /// sent, with their times.
    fn told(
        pace: &mut Pace<u32>,
        queue: &Queue,
        start: Instant,
        count: u32,
    ) -> Vec<(Instant, u32)> {
        let mut told = Vec::new();
        for number in 0..count {
            let now = start + Duration::from_millis(number.into());
            told.extend(pace.next(now).map(|waited| (now, waited)));
            told.extend(pace.take(queue.clone(), number, now).map(|new| (now, new)));
        }
        told
    }

    #[test]
    fn pp_3_and_lg_6_ten_a_second_are_told_and_the_newest_of_what_came_between() {
        let (mut pace, start) = (Pace::new(MOST), Instant::now());
        let told = told(&mut pace, &Queue::Progress, start, 5_000);
        assert_eq!(told.len(), 5 * MOST);
        for window in told.windows(MOST + 1) {
            assert!(window[MOST].0 - window[0].0 >= WINDOW, "{window:?}");
        }
        assert!(told.is_sorted_by(|a, b| a.1 < b.1));
        // The rest of the first burst waits for the second to be over, and is then the newest there
        // was.
        assert_eq!(told[MOST - 1].1, 9);
        assert_eq!(told[MOST], (start + WINDOW, 999));
        let due = pace.due().unwrap();
        assert_eq!(due, start + 5 * WINDOW);
        assert_eq!(pace.next(start + Duration::from_millis(4_999)), None);
        assert_eq!(pace.next(due), Some(4_999), "the last one is told");
        assert_eq!((pace.due(), pace.last()), (None, None), "once");
        assert_eq!(pace.dropped(), 5_000 - 5 * 10 - 1);
    }

    #[test]
    fn pp_3_and_lg_6_each_token_and_logger_is_counted_by_itself_and_the_last_words_are_told() {
        let (mut pace, now) = (Pace::new(1), Instant::now());
        let log = |name: &str| Queue::Log(Some(name.to_owned()));
        for (queue, first) in [
            (Queue::Progress, 1),
            (log("a"), 2),
            (log("b"), 3),
            (Queue::Log(None), 4),
        ] {
            assert_eq!(
                pace.take(queue.clone(), first, now),
                Some(first),
                "{queue:?}"
            );
            assert_eq!(pace.take(queue, 10 * first, now), None);
        }
        let mut rest: Vec<_> = std::iter::from_fn(|| pace.last()).collect();
        rest.sort_unstable();
        assert_eq!(rest, [10, 20, 30, 40]);
    }

    #[test]
    fn lg_6_who_makes_up_a_logger_for_each_message_is_heard_no_more_often_for_it() {
        let (mut pace, now) = (Pace::new(MOST), Instant::now());
        let told = (0..10_000)
            .filter_map(|number: u32| pace.take(Queue::Log(Some(number.to_string())), number, now));
        assert!(told.count() <= LOGGERS + 1 + MOST);
        assert_eq!(pace.take(Queue::Progress, 1, now), Some(1));
    }
}
