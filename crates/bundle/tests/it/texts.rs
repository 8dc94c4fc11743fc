//! The canonical text: what is written is read again.

use portolan_bundle::{Bundle, canonical::canonical, parse, written::yaml};
use proptest::prelude::*;

use crate::generated::bundle;

const SMALL: &str = r#"format: portolan/v1
name: acme-prod
sources:
  - name: crm
    kind: openapi
    location: file:crm.yaml
    credential:
      bearer:
        secret: env:CRM_KEY
    tools:
      DELETE /customers/{id}:
        enabled: false
      GET /customers/{id}:
        name: get_customer
        description: |-
          Finds a customer.
          Give the id.
servers:
  - slug: sales
    status: published
    tools:
      - source: crm
        tool: GET /customers/{id}
        as: "no"
"#;

fn read(text: &str) -> Bundle {
    match parse(text) {
        Ok(parsed) => parsed.bundle,
        Err(fault) => panic!("{fault}\n{text}"),
    }
}

/// Rule: CONF-4
#[test]
fn a_canonical_text_stays_as_it_is() {
    assert_eq!(yaml(&canonical(read(SMALL))).unwrap(), SMALL);
}

/// Rule: CONF-4
#[test]
fn defaults_and_the_order_of_objects_do_not_count() {
    let longer = "name: acme\nformat: portolan/v1\nservers:\n  - {slug: b-b, name: b-b, status: \
                  published}\n  - slug: aaa\nprompts:\n  - {name: p, enabled: true, title: ' ', \
                  messages: [{role: user, content: {text: hi}}]}\n";
    let shorter = "{\"format\": \"portolan/v1\", \"name\": \"acme\", \"prompts\": [{\"name\": \
                   \"p\", \"messages\": [{\"role\": \"user\", \"content\": {\"text\": \"hi\"}}]}], \
                   \"servers\": [{\"slug\": \"aaa\"}, {\"slug\": \"b-b\"}]}";
    assert_eq!(canonical(read(longer)), canonical(read(shorter)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Rule: CONF-4
    #[test]
    fn a_written_bundle_is_read_again(bundle in bundle()) {
        let bundle = canonical(bundle);
        let text = yaml(&bundle).unwrap();
        let again = parse(&text);
        prop_assert!(again.is_ok(), "{}\n{}", again.unwrap_err(), text);
        prop_assert_eq!(canonical(again.unwrap().bundle), bundle);
    }
}
