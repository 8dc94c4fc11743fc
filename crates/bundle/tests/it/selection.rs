//! Selections of objects (CONF-16).

use portolan_bundle::{
    changes::ObjectKind,
    parse,
    selection::{Selection, keys},
};

fn selection(texts: &[&str]) -> Result<Selection, String> {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    Selection::read(&texts).map_err(|fault| format!("{}: {fault}", fault.index))
}

/// Rule: CONF-16
#[test]
fn a_selector_names_objects_of_one_kind() {
    let cases = [
        ("servers/sales", "sales", true),
        ("servers/sales", "sales-2", false),
        ("servers/sales*", "sales-2", true),
        ("servers/*", "", true),
        ("servers/*-2", "sales-2", true),
        ("servers/s*l*s", "sales", true),
        ("servers/s*s*s", "sales", false),
        ("servers/a*a", "a", false),
        ("servers/**", "anything", true),
        ("sources/sales", "sales", false),
    ];
    for (text, key, expected) in cases {
        let selection = selection(&[text]).expect("a selector");
        let key = (ObjectKind::Server, key.to_owned());
        assert_eq!(selection.has(&key), expected, "{text} {key:?}");
    }
    let uri = (ObjectKind::Resource, "notes://a/b".to_owned());
    let both = selection(&["servers/x", "resources/notes://*"]).expect("two selectors");
    assert!(both.has(&uri) && Selection::default().has(&uri));
}

/// Rule: CONF-16
#[test]
fn an_unknown_selector_is_refused_with_the_nearest_key() {
    let text = "format: portolan/v1\nname: a\nservers: [{slug: sales}, {slug: support}]\n";
    let bundle = parse(text).expect("a file").bundle;
    let known = keys([&bundle]);
    let refusal = |texts: &[&str]| {
        let selection = selection(texts).expect("selectors");
        let fault = selection.check(known.iter()).expect_err("no object");
        format!("{}: {fault}", fault.index)
    };
    assert_eq!(
        refusal(&["servers/sales", "servers/salse"]),
        "1: \"servers/salse\" is neither in the file nor in the workspace, did you mean \
         \"servers/sales\""
    );
    assert_eq!(
        refusal(&["sources/*"]),
        "0: \"sources/*\" is neither in the file nor in the workspace"
    );
    assert_eq!(
        selection(&["server/sales"]).expect_err("no kind"),
        "0: \"server/sales\" has no known kind, did you mean \"servers/sales\""
    );
    let whole = selection(&["sales"]).expect_err("no selector");
    assert!(whole.contains("write kind/key"), "{whole}");
    let some = selection(&["servers/sa*"]).expect("a selector").of(&bundle);
    let slugs: Vec<_> = some.servers.iter().map(|one| one.slug.as_str()).collect();
    assert_eq!((slugs, some.name.as_str()), (vec!["sales"], "a"));
}
