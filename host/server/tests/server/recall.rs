//! Measures how often the search finds the right one of 1,000 tools, and the bytes of a model's
//! context that it uses.
//!
//! The tools are those of 25 services with eight kinds of things each, and five actions on each
//! kind. Services share names of things and actions, so that one word does not identify a tool.
//! Each query paraphrases the description of its tool: with the service's name; without it and in
//! other forms; with other words for the action, in the plural and with one word of the service's
//! description.

use serde_json::{Value, json};
use toolcell::{Definition, Registry, Tool, ToolCall};
use toolcell_server::service::ManyTools;
use toolcell_server::{CallRequest, Principal, ServedTools, Service};

/// A service's name, its description, and its kinds of things, in the singular.
const SERVICES: [(&str, &str, [&str; 8]); 25] = [
    (
        "gitforge",
        "source code hosting",
        [
            "repository",
            "branch",
            "commit",
            "release",
            "pull request",
            "webhook",
            "label",
            "comment",
        ],
    ),
    (
        "tracko",
        "issue tracking",
        ["issue", "sprint", "epic", "milestone", "label", "comment", "board", "worklog"],
    ),
    (
        "deskly",
        "customer support",
        ["ticket", "macro", "customer", "comment", "article", "rating", "queue", "agent"],
    ),
    (
        "paynow",
        "card payments",
        ["charge", "refund", "customer", "card", "payout", "dispute", "subscription", "coupon"],
    ),
    (
        "ledgers",
        "bookkeeping",
        [
            "invoice",
            "expense",
            "account",
            "journal entry",
            "supplier",
            "tax rate",
            "budget",
            "receipt",
        ],
    ),
    (
        "mailer",
        "email",
        ["message", "draft", "folder", "filter", "attachment", "signature", "contact", "label"],
    ),
    (
        "chatter",
        "team chat",
        ["channel", "message", "reaction", "thread", "user", "emoji", "reminder", "file"],
    ),
    (
        "calendo",
        "scheduling",
        ["event", "calendar", "attendee", "room", "reminder", "holiday", "time slot", "invitation"],
    ),
    (
        "drivebox",
        "file storage",
        ["file", "folder", "shared link", "permission", "comment", "version", "shortcut", "quota"],
    ),
    (
        "wikipad",
        "team documentation",
        ["page", "space", "template", "comment", "attachment", "label", "restriction", "version"],
    ),
    (
        "shopify2",
        "online shop",
        [
            "product",
            "order",
            "customer",
            "discount",
            "collection",
            "shipment",
            "inventory level",
            "review",
        ],
    ),
    (
        "crmhub",
        "sales pipeline",
        ["lead", "deal", "contact", "company", "note", "task", "quote", "pipeline"],
    ),
    (
        "cloudvm",
        "virtual machines",
        ["instance", "image", "disk", "snapshot", "network", "firewall rule", "key pair", "region"],
    ),
    (
        "kubo",
        "container orchestration",
        ["pod", "deployment", "service", "secret", "config map", "namespace", "node", "job"],
    ),
    (
        "buildr",
        "continuous integration",
        ["pipeline", "job", "artifact", "runner", "variable", "cache", "schedule", "environment"],
    ),
    (
        "logsift",
        "log analytics",
        [
            "log query",
            "dashboard",
            "alert",
            "index",
            "saved search",
            "parser",
            "archive",
            "monitor",
        ],
    ),
    (
        "dnsly",
        "domain names",
        [
            "zone",
            "record",
            "domain",
            "certificate",
            "redirect",
            "transfer",
            "nameserver",
            "contact",
        ],
    ),
    (
        "hrbase",
        "human resources",
        [
            "employee",
            "leave request",
            "contract",
            "payslip",
            "department",
            "review",
            "candidate",
            "holiday",
        ],
    ),
    (
        "surveyo",
        "questionnaires",
        [
            "survey",
            "question",
            "response",
            "respondent",
            "report",
            "template",
            "collector",
            "theme",
        ],
    ),
    (
        "fleetgo",
        "vehicle fleet",
        [
            "vehicle",
            "driver",
            "trip",
            "fuel entry",
            "maintenance order",
            "geofence",
            "alert",
            "tyre",
        ],
    ),
    (
        "homeiq",
        "smart home",
        ["light", "thermostat", "scene", "sensor", "lock", "camera", "room", "automation"],
    ),
    (
        "medirec",
        "patient records",
        [
            "patient",
            "appointment",
            "prescription",
            "lab result",
            "diagnosis",
            "allergy",
            "referral",
            "vaccination",
        ],
    ),
    (
        "learnly",
        "online courses",
        ["course", "lesson", "quiz", "student", "enrolment", "grade", "certificate", "assignment"],
    ),
    (
        "tripwise",
        "travel booking",
        [
            "flight",
            "hotel",
            "booking",
            "passenger",
            "itinerary",
            "car rental",
            "visa",
            "loyalty card",
        ],
    ),
    (
        "adreach",
        "advertising",
        ["campaign", "ad", "audience", "keyword", "budget", "conversion", "creative", "report"],
    ),
];

/// An action's name, its words in the description, and its words in three queries. The third shares
/// no word with the description.
const ACTIONS: [(&str, &str, [&str; 3]); 5] = [
    ("create", "Creates a new", ["I need to create one more", "set up a new", "open a fresh"]),
    (
        "get",
        "Gets the details of one",
        ["show me the details of the", "get one", "look up a certain"],
    ),
    (
        "list",
        "Lists every",
        ["list all of the", "which are there? listing", "what do we have in the way of"],
    ),
    (
        "update",
        "Changes the fields of an existing",
        ["change fields of the", "updating an existing", "edit some"],
    ),
    ("delete", "Deletes a", ["please delete the", "remove by deleting the", "throw away some"]),
];

/// A tool's definition, and its queries.
fn tools() -> Vec<(Definition, [String; 3])> {
    let mut tools = Vec::new();
    for (service, domain, things) in SERVICES {
        for thing in things {
            for (action, told, asked) in ACTIONS {
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
                    "required": if action == "list" || action == "create" { json!([]) } else { json!(["id"]) },
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
    let registry = Registry::new();
    for (definition, _) in tools() {
        let tool = Tool::native(definition, async |_: Value| json!("done")).expect("a tool");
        registry.register(tool).expect("a name of its own");
    }
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
