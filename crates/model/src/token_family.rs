//! Refresh tokens: rotation, the replay window, and reuse (AUTH-K8 to AUTH-K11).
//!
//! Clients run several processes on one stored token, lose answers, and throw everything away after
//! one refusal. So a token that was just superseded is answered with the *same* head of the chain:
//! nothing forks, there is at most one live branch, and a thief is still found out, one generation
//! later.

use time::Duration;

use crate::Timestamp;

/// A superseded token is answered for this long after its own supersession (AUTH-K9).
pub const REPLAY_WINDOW: Duration = Duration::seconds(120);
/// The immediate predecessor is answered for this long, to the network that superseded it, while
/// its successor was never presented: the answer was lost (AUTH-K10, REVIEW-S-10).
pub const LOST_ANSWER_WINDOW: Duration = Duration::hours(24);
/// Most replays of one superseded token. As many as a family may refresh in a minute (AUTH-K17), so
/// that fifty processes that wake up together (CASE-119) all go on; a loop does not.
pub const MAX_REPLAYS: i32 = 60;
/// A family ends when it was not used for this long (AUTH-K13).
pub const IDLE_LIFE: Duration = Duration::days(30);
/// A family ends after this long in any case (AUTH-K13).
pub const ABSOLUTE_LIFE: Duration = Duration::days(90);

/// The state of a presented token and its family, read under the family's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Presented {
    /// Its place in the chain.
    pub generation: i32,
    /// The head's place.
    pub head_generation: i32,
    /// When a later one took its place.
    pub superseded_at: Option<Timestamp>,
    /// Whether the head was ever presented.
    pub head_presented: bool,
    /// How often it was replayed already.
    pub replays: i32,
    /// When the family ends for lack of use.
    pub idle_expires_at: Timestamp,
    /// When it ends in any case.
    pub expires_at: Timestamp,
    /// Whether it was revoked.
    pub revoked: bool,
}

/// What to do with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is the head: make its successor.
    Rotate,
    /// Superseded a moment ago: answer with the head.
    ReplayInWindow,
    /// The answer that carried its successor seems lost: answer with the head.
    ReplayLostAnswer,
    /// Replayed more often than any set of processes would: wait. No answer, and no harm to the
    /// family.
    Throttled,
    /// Used again when it should be long forgotten: revoke the family and the grant (AUTH-K11).
    Reuse,
    /// Over, one way or another. Nothing to revoke.
    Ended,
}

/// The network that presents a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PresentedFrom {
    /// The address block that superseded the token.
    SameNetwork,
    /// Another one, or one that is not known.
    AnotherOrUnknown,
}

impl Presented {
    /// Decides at `now`.
    pub fn verdict(&self, now: Timestamp, from: PresentedFrom) -> Verdict {
        if self.revoked || now >= self.idle_expires_at || now >= self.expires_at {
            return Verdict::Ended;
        }
        let Some(superseded_at) = self.superseded_at else {
            return Verdict::Rotate;
        };
        let age = now - superseded_at;
        let immediate = self.generation + 1 == self.head_generation;
        let verdict = if age <= REPLAY_WINDOW {
            Verdict::ReplayInWindow
        } else if from == PresentedFrom::SameNetwork
            && immediate
            && !self.head_presented
            && age <= LOST_ANSWER_WINDOW
        {
            Verdict::ReplayLostAnswer
        } else {
            return Verdict::Reuse;
        };
        if self.replays >= MAX_REPLAYS {
            Verdict::Throttled
        } else {
            verdict
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    fn superseded() -> Presented {
        Presented {
            generation: 3,
            head_generation: 4,
            superseded_at: Some(START),
            head_presented: true,
            replays: 0,
            idle_expires_at: START + IDLE_LIFE,
            expires_at: START + ABSOLUTE_LIFE,
            revoked: false,
        }
    }

    #[test]
    fn case_120_the_window_is_two_minutes_from_its_own_supersession() {
        let token = superseded();
        assert_eq!(
            token.verdict(
                START + Duration::seconds(119),
                PresentedFrom::AnotherOrUnknown
            ),
            Verdict::ReplayInWindow
        );
        assert_eq!(
            token.verdict(START + Duration::seconds(121), PresentedFrom::SameNetwork),
            Verdict::Reuse
        );
    }

    #[test]
    fn case_121_s10_a_lost_answer_is_given_again_for_a_day_to_the_same_network_only() {
        let token = Presented {
            head_presented: false,
            ..superseded()
        };
        let six_hours = START + Duration::hours(6);
        assert_eq!(
            token.verdict(six_hours, PresentedFrom::SameNetwork),
            Verdict::ReplayLostAnswer
        );
        assert_eq!(
            token.verdict(six_hours, PresentedFrom::AnotherOrUnknown),
            Verdict::Reuse
        );
        assert_eq!(
            token.verdict(
                START + Duration::seconds(120),
                PresentedFrom::AnotherOrUnknown
            ),
            Verdict::ReplayInWindow,
            "AUTH-K9: two minutes are everybody's"
        );
        assert_eq!(
            token.verdict(START + Duration::hours(25), PresentedFrom::SameNetwork),
            Verdict::Reuse
        );
    }

    #[test]
    fn case_122_two_generations_old_is_good_inside_its_window_only() {
        let token = Presented {
            head_generation: 5,
            head_presented: false,
            ..superseded()
        };
        assert_eq!(
            token.verdict(START + Duration::seconds(60), PresentedFrom::SameNetwork),
            Verdict::ReplayInWindow
        );
        assert_eq!(
            token.verdict(START + Duration::seconds(121), PresentedFrom::SameNetwork),
            Verdict::Reuse
        );
    }

    #[test]
    fn case_127_a_family_ends_when_idle_and_in_any_case() {
        let head = Presented {
            superseded_at: None,
            generation: 4,
            ..superseded()
        };
        assert_eq!(
            head.verdict(
                START + IDLE_LIFE - Duration::SECOND,
                PresentedFrom::SameNetwork
            ),
            Verdict::Rotate
        );
        assert_eq!(
            head.verdict(START + IDLE_LIFE, PresentedFrom::SameNetwork),
            Verdict::Ended
        );
        let busy = Presented {
            idle_expires_at: START + Duration::days(1000),
            ..head
        };
        assert_eq!(
            busy.verdict(START + ABSOLUTE_LIFE, PresentedFrom::SameNetwork),
            Verdict::Ended
        );
        assert_eq!(
            Presented {
                revoked: true,
                ..head
            }
            .verdict(START, PresentedFrom::SameNetwork),
            Verdict::Ended
        );
    }

    #[test]
    fn k9_replays_are_bounded() {
        let token = Presented {
            replays: MAX_REPLAYS,
            ..superseded()
        };
        assert_eq!(
            token.verdict(START + Duration::SECOND, PresentedFrom::SameNetwork),
            Verdict::Throttled
        );
        assert_eq!(
            token.verdict(START + Duration::seconds(121), PresentedFrom::SameNetwork),
            Verdict::Reuse
        );
    }
}
