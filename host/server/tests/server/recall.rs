//! Measures how often the search finds the right one of 1,000 tools, and the bytes of a model's
//! context that it uses.
//!
//! The tools are those of 25 services with eight kinds of things each, and five actions on each
//! kind. Services share names of things and actions, so that one word does not identify a tool.
//! Each query paraphrases the description of its tool: with the service's name; without it and in
//! other forms; with other words for the action, in the plural and with one word of the service's
//! description.

use serde_json::{Value, json};
use toolcell::{Definition, Tool, ToolCall};
use toolcell_server::service::ManyTools;
use toolcell_server::{CallRequest, Principal, ServedTools, Service};
use toolcell_test_guests::rows;

use crate::setup::registry;

/// A tool's definition, and its queries.
fn tools() -> Vec<(Definition, [String; 3])> {
    let actions = rows::<(&str, &str, Vec<&str>)>("server/recall", "actions");
    let (mut tools, services) =
        (Vec::new(), rows::<(&str, &str, Vec<&str>)>("server/recall", "services"));
    for (service, domain, things) in &services {
        for thing in things {
            for (action, told, asked) in &actions {
                let name = format!("{service}_{action}_{}", thing.replace(' ', "_"));
                let description = format!("{told} {thing} in {service}, the {domain} service.");
                let id = format!("The id of the {thing}");
                let parameters = json!({
                    "type": "object",
                    "properties": {
                        "id": {"type": "string", "description": id},
                        "page": {"type": "integer", "minimum": 1, "description": "The page of a long answer"},
                        "fields": {"type": "array", "items": {"type": "string"}, "description": "The fields to return"},
                    },
                    "required": if ["list", "create"].contains(action) { json!([]) } else { json!(["id"]) },
                });
                let definition =
                    Definition::new(name, description).expect("a name").with_parameters(parameters);
                let word = domain.split(' ').next().unwrap_or(domain);
                let queries = [
                    format!("{} {thing} in {service}", asked[0]),
                    format!("{} {thing} {domain}", asked[1]),
                    format!("{} {thing}s ({word})", asked[2]),
                ];
                tools.push((definition, queries));
            }
        }
    }
    tools
}

fn service(many: ManyTools) -> Service {
    let done = async |_: Value| json!("done");
    let tools = tools().into_iter();
    let registry = registry(tools.map(|(definition, _)| Tool::native(definition, done).unwrap()));
    Service::builder(ServedTools::new(&registry).with_many_tools(many)).build().expect("a service")
}

async fn found(service: &Service, query: &str) -> Value {
    let call = ToolCall::new("1", "tools_search", json!({"query": query}).to_string());
    let answer =
        service.call(&Principal::local(), CallRequest::new(call)).await.expect("the call is made");
    answer.completion.result.value().expect("an answer").to_value()
}

/// Returns the bytes of the whole list of tools as JSON.
async fn bytes(service: &Service) -> usize {
    let (mut bytes, mut cursor) = (0, None);
    loop {
        let page = service.tools(&Principal::local(), cursor.as_deref()).await.expect("a page");
        bytes +=
            page.tools.iter().map(|tool| json!(tool.definition()).to_string().len()).sum::<usize>();
        cursor = page.next;
        if cursor.is_none() {
            return bytes;
        }
    }
}

#[tokio::test]
async fn right_tool_of_a_thousand_is_among_five_results() {
    let service = service(ManyTools::default());
    let mut right = [0; 3];
    for (definition, queries) in &tools() {
        for (query, right) in queries.iter().zip(&mut right) {
            let answer = found(&service, query).await;
            let results = answer["tools"].as_array().expect("results");
            assert!(results.len() <= 5, "{answer}");
            *right +=
                usize::from(results.iter().any(|tool| tool["name"] == definition.name.as_str()));
        }
    }
    assert!(right.iter().all(|right| *right >= 950), "found {right:?} of 1,000 each");
    println!("recall at 5: {right:?} of 1,000 queries each");
}

#[tokio::test]
async fn search_takes_a_fiftieth_of_the_full_lists_bytes() {
    let whole = bytes(&service(ManyTools { threshold: usize::MAX, ..ManyTools::default() })).await;
    let service = service(ManyTools::default());
    let facade = bytes(&service).await;
    let searches =
        [found(&service, "refund a card payment").await, found(&service, "restart the pod").await];
    let searched = searches.iter().map(|answer| answer.to_string().len()).sum::<usize>();
    println!("whole list {whole} bytes, three tools {facade}, two searches {searched}");
    assert!((facade + searched) * 50 <= whole, "{facade} + {searched} of {whole}");
}
