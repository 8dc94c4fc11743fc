//! Results and answers of a client or an upstream, and other bytes in their place (MCP-MR-3,
//! MCP-MR-12): a value that was read is written the same.
#![cfg_attr(fuzzing, no_main)]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use portolan_protocol::{
    Identity, Method,
    initialize::Implementation,
    input_required::{Brought, InputRequired, may_ask, read_responses, write_responses},
    jsonrpc::{Params, Raw},
};

fn identity() -> &'static Identity {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let card = Raw::parse(r#"{"name":"portolan","version":"1"}"#).expect("JSON");
        Identity::new(&card.read::<Implementation>("card").expect("a card"))
    })
}

fuzz_target!(|data: &[u8]| {
    let Ok(raw) = Raw::parse(data.to_vec()) else {
        return;
    };
    if InputRequired::is(&raw)
        && let Ok(asked) = InputRequired::read(&raw)
    {
        assert!(
            !asked.requests.is_empty() || asked.state.is_some(),
            "MCP-MR-3"
        );
        let written = Raw::parse(asked.to_json(identity())).expect("JSON");
        assert!(InputRequired::is(&written));
        assert_eq!(InputRequired::read(&written).as_ref(), Ok(&asked));
    }
    if let Ok(responses) = read_responses(&raw) {
        let written = write_responses(responses.iter().map(|(key, value)| (key.as_str(), value)));
        let again = read_responses(&written).expect("what is written can be read");
        assert_eq!(again, responses);
    }
    if let Ok(brought) = Brought::read(&Params::from(raw.clone())) {
        let state = raw.get("requestState").and_then(|state| state.string());
        assert_eq!(brought.state, state);
        assert_eq!(brought.responses, raw.get("inputResponses"));
        let sound = |responses: &Raw| read_responses(responses).is_ok();
        assert!(brought.responses.as_ref().is_none_or(sound), "MCP-MR-12");
    }
    // The method of a call: what may ask names what it is about, so that the retry can be known again.
    let method = raw.get("method").and_then(|method| method.string());
    if let Some(method) = method.as_deref().and_then(Method::from_name) {
        assert!(
            !may_ask(method) || method.mirrored_param().is_some(),
            "MCP-MR-1"
        );
    }
});
