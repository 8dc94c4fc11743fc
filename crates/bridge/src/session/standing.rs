//! The GET stream: what the server sends outside of requests.

use std::time::Duration;

use http::StatusCode;

use super::{LAST_EVENT_ID, PAUSE, Session};
use crate::{
    account::For,
    fault::Fault,
    stream::{Events, Place, is_events},
};

/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Silence after which the stream is opened again: the connection may be dead.
const SILENCE: Duration = Duration::from_secs(300);

impl Session {
    /// Keeps the stream open for as long as the session lives. Ends if the server has none.
    pub(super) async fn stand(&self) {
        let mut place = Place::default();
        let mut generation = self.seat().generation;
        let mut pause = PAUSE;
        loop {
            let seat = self.seat();
            if seat.generation != generation {
                generation = seat.generation;
                place = Place::default();
                pause = PAUSE;
            }
            let mut headers = self.headers(&seat);
            if let Some(last) = place.header().filter(|_| self.0.agreed.is_resumable()) {
                headers.push((LAST_EVENT_ID, last));
            }
            let url = &self.0.wire.url;
            match self.0.wire.listen(url, &headers, For::Ourselves).await {
                Ok(answer) if answer.status.is_success() && is_events(&answer.headers) => {
                    let mut events = Events::new(answer);
                    while let Ok(Some(event)) =
                        tokio::time::timeout(SILENCE, events.next(&mut place)).await
                    {
                        pause = PAUSE;
                        let handed = self.hand_event(&event.event, event.data, generation);
                        if handed.await.is_err() {
                            break;
                        }
                    }
                }
                Ok(answer) if answer.status == StatusCode::NOT_FOUND && seat.id.is_some() => {
                    // The next request opens the session if this fails.
                    if self.renew(generation).await.is_ok() {
                        continue;
                    }
                }
                Ok(answer) if answer.status.is_server_error() => {}
                // 405, or another way to say that there is no such stream.
                Ok(_) => return,
                Err(Fault::Refused(_)) => return,
                Err(_) => {}
            }
            tokio::time::sleep(place.pause.unwrap_or(pause).max(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
