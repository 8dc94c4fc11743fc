//! Tasks in the spelling of each era (`docs/revisions.md`, section 15, section 16;
//! MCP-X-55…MCP-X-57).

use portolan_protocol::ask::AskMethod;
use portolan_protocol::input_required::InputRequest;
use portolan_protocol::jsonrpc::Params;
use portolan_protocol::method::Method;
use portolan_protocol::task::{self, Detail, Status, Task, TaskParams, related};
use portolan_protocol::translate::Violation;
use portolan_protocol::{Raw, RequestId, Revision};
use serde_json::{Value, json};

use crate::schema::conforms;
use crate::{identity, tree};

const R4: Revision = Revision::V2025_11_25;
const R5: Revision = Revision::V2026_07_28;

fn raw(value: &Value) -> Raw {
    Raw::of(value).unwrap()
}

fn example() -> Task {
    Task {
        id: "t1".to_owned(),
        status: Status::Working,
        message: Some("On it".to_owned()),
        created_at: "2026-11-21T00:00:00Z".to_owned(),
        updated_at: "2026-11-21T00:00:01Z".to_owned(),
        ttl_ms: Some(3_600_000),
        poll_interval_ms: Some(1000),
    }
}

#[test]
fn tk_3_and_tx_3_the_same_task_is_wrapped_in_one_era_and_flat_in_the_other() {
    let core = tree(&example().created(R4, &identity()));
    conforms(R4, "CreateTaskResult", &core);
    assert_eq!(
        (
            core["task"]["ttl"].clone(),
            core["task"]["pollInterval"].clone()
        ),
        (json!(3_600_000), json!(1000))
    );
    let flat = tree(&example().created(R5, &identity()));
    assert_eq!(flat["resultType"], "task", "MCP-TX-3");
    assert_eq!(
        (flat["ttlMs"].clone(), flat["pollIntervalMs"].clone()),
        (json!(3_600_000), json!(1000))
    );
    for (value, revision) in [(core, R4), (flat, R5)] {
        let value = raw(&value);
        assert!(Task::is(&value, revision));
        assert_eq!(Task::read(&value), Ok(example()), "MCP-X-55: both are read");
    }
    let mut endless = example();
    endless.ttl_ms = None;
    let told = tree(&endless.created(R4, &identity()));
    assert_eq!(told["task"]["ttl"], Value::Null, "never left out");
    assert_eq!(
        Task::read(&raw(&json!({"taskId": "x"}))),
        Err(Violation::Task)
    );
}

#[test]
fn tk_6_tx_6_and_tx_13_what_a_look_and_a_notice_tell() {
    let request = InputRequest {
        method: AskMethod::ListRoots,
        params: Raw::empty_object(),
    };
    let asks = Detail::Requests(vec![("k".to_owned(), request)]);
    let core = tree(&example().got(&asks, R4, &identity()));
    conforms(R4, "GetTaskResult", &core);
    assert!(core.get("inputRequests").is_none());
    let modern = tree(&example().got(&asks, R5, &identity()));
    assert_eq!(modern["resultType"], "complete", "MCP-TX-6: the MUST wins");
    assert_eq!(modern["inputRequests"]["k"]["method"], "roots/list");
    let done = Detail::Result(raw(&json!({"content": []})));
    let notice = tree(&example().notice(&done, R5, Some(&RequestId::from(7))));
    assert_eq!(notice["method"], "notifications/tasks");
    assert_eq!(notice["params"]["result"], json!({"content": []}));
    assert_eq!(
        notice["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        7
    );
    let notice = tree(&example().notice(&done, R4, None));
    assert_eq!(notice["method"], "notifications/tasks/status");
    // Its params are a task and a notification's; closed, the two definitions exclude each other.
    conforms(R4, "Task", &notice["params"]);
    assert!(notice["params"].get("_meta").is_none(), "MCP-TK-12");
}

#[test]
fn tk_5_a_task_that_ended_stays_as_it_is() {
    for from in Status::ALL {
        for to in Status::ALL {
            let legal = match from {
                Status::Working | Status::InputRequired => from != to,
                Status::Completed | Status::Failed | Status::Cancelled => false,
            };
            assert_eq!(from.may_become(to), legal, "{from:?} {to:?}");
        }
        assert_eq!(Status::from_name(from.as_str()), Some(from));
    }
}

#[test]
fn tk_8_tx_7_x_56_and_x_57_a_tool_that_failed_is_failed_in_one_era_and_completed_in_the_other() {
    assert_eq!(Status::Completed.shaped(R4, true), Status::Failed);
    assert_eq!(Status::Failed.shaped(R5, true), Status::Completed);
    assert_eq!(Status::Completed.shaped(R4, false), Status::Completed);
    assert_eq!(
        Status::Failed.shaped(R5, false),
        Status::Failed,
        "a JSON-RPC error"
    );
}

#[test]
fn tk_7_and_tk_12_the_result_says_which_task_it_is_of() {
    let result = raw(&json!({"content": [], "_meta": {"a.b/c": 1}}));
    let seen = tree(related(&result, "t1").as_bytes());
    let meta = json!({"a.b/c": 1, "io.modelcontextprotocol/related-task": {"taskId": "t1"}});
    assert_eq!(seen, json!({"content": [], "_meta": meta}));
    assert_eq!(
        tree(related(&raw(&seen), "t1").as_bytes()),
        seen,
        "once is enough"
    );
}

#[test]
fn tk_9_the_list() {
    let list = tree(&task::listed(
        &[example(), example()],
        Some("c"),
        &identity(),
    ));
    conforms(R4, "ListTasksResult", &list);
    assert_eq!(list["nextCursor"], "c");
}

#[test]
fn tx_8_and_mr_12_parameters_of_the_methods() {
    let read = |method, params: Value| TaskParams::read(method, &Params::from(raw(&params)));
    assert_eq!(
        read(Method::TasksGet, json!({"taskId": "t"})).unwrap().id,
        "t"
    );
    let update = read(
        Method::TasksUpdate,
        json!({"taskId": "t", "inputResponses": {"k": {"roots": []}}}),
    );
    assert_eq!(update.unwrap().responses[0].0, "k");
    for bad in [
        json!({}),
        json!({"taskId": 1}),
        json!({"taskId": "t"}),
        json!({"taskId": "t", "inputResponses": {"k": null}}),
    ] {
        assert!(read(Method::TasksUpdate, bad.clone()).is_err(), "{bad}");
    }
    assert_eq!(task::wished_ttl(&raw(&json!({"ttl": 5}))), Some(5));
    assert_eq!(task::wished_ttl(&raw(&json!({"ttl": "soon"}))), None);
}
