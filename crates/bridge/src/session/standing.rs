//! The GET stream: what the server sends outside of requests.

use std::time::Duration;

use http::StatusCode;

use super::{LAST_EVENT_ID, NO_STREAM, PAUSE, RemoteSession, Seat};
use crate::{
    account::For,
    fault::BridgeFault,
    stream::{Events, StreamPosition, is_events},
};

/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Silence after which the stream is opened again: the connection may be dead.
const SILENCE: Duration = Duration::from_secs(300);

impl RemoteSession {
    /// Keeps the stream open for as long as the session lives. Ends if the server has none.
    pub(super) async fn stand(&self) {
        let mut renewed = self.0.renewed.subscribe();
        let mut place = StreamPosition::default();
        let mut pause = PAUSE;
        // Until the stream is open.
        self.0.standing.send_replace(0);
        loop {
            let generation = *renewed.borrow_and_update();
            let seat = self.seat();
            if seat.generation == generation {
                tokio::select! {
                    is_over = self.stand_once(&seat, &mut place, &mut pause) => if is_over {
                        self.0.standing.send_replace(NO_STREAM);
                        return;
                    },
                    _ = renewed.changed() => {
                        (place, pause) = (StreamPosition::default(), PAUSE);
                        continue;
                    }
                }
            }
            let wait = place.pause.unwrap_or(pause).max(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = renewed.changed() => (place, pause) = (StreamPosition::default(), PAUSE),
            }
        }
    }

    /// Reads the stream until it ends. True if the server has none.
    async fn stand_once(
        &self,
        seat: &Seat,
        place: &mut StreamPosition,
        pause: &mut Duration,
    ) -> bool {
        let mut headers = self.headers(seat);
        if let Some(last) = place.header().filter(|_| self.0.agreed.is_resumable()) {
            headers.push((LAST_EVENT_ID, last));
        }
        let url = &self.0.wire.url;
        match self.0.wire.listen(url, &headers, For::Ourselves).await {
            Ok(answer) if answer.status.is_success() && is_events(&answer.headers) => {
                self.0.standing.send_replace(seat.generation);
                let mut events = Events::new(answer);
                while let Ok(Some(event)) = tokio::time::timeout(SILENCE, events.next(place)).await
                {
                    *pause = PAUSE;
                    let handed = self.hand_event(&event.event, event.data, seat.generation, None);
                    if handed.await.is_err() {
                        break;
                    }
                }
                false
            }
            Ok(answer) if answer.status == StatusCode::NOT_FOUND && seat.id.is_some() => {
                // This task ends when the session is a new one.
                let _ = self.renew_apart(seat.generation).await;
                false
            }
            Ok(answer) => !answer.status.is_server_error(),
            Err(fault) => matches!(fault, BridgeFault::Refused(_)),
        }
    }
}
