//! Server-sent events: MCP-T-9, MCP-T-10, MCP-T-24, MCP-T-25, MCP-T-34, MCP-J-19.

use portolan_protocol::sse::{self, Decoder, SseEvent};

fn decode(text: &[u8]) -> Vec<SseEvent> {
    Decoder::new(1 << 20).push(text).unwrap()
}

#[test]
fn t10_a_message_is_one_data_line_even_if_its_json_has_line_breaks() {
    let frame = sse::message(Some("s-1"), b"{\r\n\"a\":\n1}");
    assert_eq!(frame, b"event: message\nid: s-1\ndata: {  \"a\": 1}\n\n");
    let event = SseEvent {
        event: "message".into(),
        data: "{  \"a\": 1}".into(),
        id: Some("s-1".into()),
    };
    assert_eq!(decode(&frame), [event]);
    assert_eq!(sse::message(None, b"{}"), b"event: message\ndata: {}\n\n");
    // An id that would break the frame is left out.
    assert_eq!(
        sse::message(Some("a\nb"), b"{}"),
        b"event: message\ndata: {}\n\n"
    );
}

#[test]
fn t9_t24_t25_comments_priming_and_retry() {
    assert!(decode(sse::KEEP_ALIVE).is_empty());
    assert_eq!(
        decode(&sse::priming("s-0")),
        [SseEvent {
            event: "message".into(),
            data: String::new(),
            id: Some("s-0".into())
        }]
    );
    let mut decoder = Decoder::new(100);
    assert!(decoder.push(&sse::retry(1500)).unwrap().is_empty());
    assert_eq!(decoder.retry(), Some(1500));
}

#[test]
fn every_line_end_and_field_form_of_the_standard_is_read() {
    let events = decode(b"\xef\xbb\xbf:c\rdata:a\rdata: b\r\revent: e\r\ndata\r\nid: 7\r\n\r\nid: 8\n\nretry: 1x\ndata:  c\nunknown: x\n\n");
    let event = |event: &str, data: &str, id: Option<&str>| SseEvent {
        event: event.into(),
        data: data.into(),
        id: id.map(str::to_owned),
    };
    assert_eq!(
        events,
        [
            event("message", "a\nb", None),
            event("e", "", Some("7")),
            event("message", " c", Some("8"))
        ]
    );
    // An event that no empty line ended is not an event.
    assert!(decode(b"data: a\n").is_empty());
    assert_eq!(decode(b"id: a\0b\ndata: x\n\n")[0].id, None);
}

/// Rule: MCP-T-34 (WHATWG HTML §9.2.6: the id counts when its event is dispatched).
#[test]
fn resume_id_is_that_of_the_last_whole_event() {
    let mut decoder = Decoder::new(100);
    decoder.push(b"id: 1\ndata: a\n\nid: 2\nda").unwrap();
    assert_eq!(decoder.last_id(), Some("1"), "2 is cut before its data");
    decoder.push(b"ta: b\n").unwrap();
    assert_eq!(decoder.last_id(), Some("1"));
    decoder.push(b"\nid: 3\n\n").unwrap();
    assert_eq!(decoder.last_id(), Some("3"), "without data too");
}

#[test]
fn streams_13_a_line_beside_the_data_is_short_and_the_data_may_be_long() {
    let long = "x".repeat(70_000);
    for line in [format!(":{long}"), format!("event: {long}"), long.clone()] {
        // Whether the line comes at once or in pieces, and whether it ends.
        assert!(Decoder::new(8 << 20).push(line.as_bytes()).is_err());
        let mut decoder = Decoder::new(8 << 20);
        let mut pieces = line.as_bytes().chunks(1000);
        assert!(pieces.any(|piece| decoder.push(piece).is_err()));
    }
    let events = Decoder::new(8 << 20)
        .push(format!("\u{feff}data:{long}\ndata: {long}\n\n").as_bytes())
        .unwrap();
    assert_eq!(events[0].data.len(), 2 * 70_000 + 1);
    let fits = format!(":{}\n", "x".repeat(60_000));
    assert!(Decoder::new(8 << 20).push(fits.as_bytes()).is_ok());
}

#[test]
fn j19_an_event_beyond_the_limit_is_refused_however_it_comes() {
    let big = vec![b'x'; 60];
    assert!(Decoder::new(50).push(&big).is_err());
    let mut decoder = Decoder::new(50);
    let fails = (0..20).any(|_| decoder.push(b"data: 12345\n").is_err());
    assert!(fails);
    let mut decoder = Decoder::new(50);
    for _ in 0..1000 {
        decoder.push(b"data: 12345\n\n").unwrap();
    }
}
