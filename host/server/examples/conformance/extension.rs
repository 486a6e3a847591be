//! The parts of the suite beside the service's tools: prompts, resources, completion, the
//! protocol's log, and sampling.
#![expect(deprecated, reason = "the suite tests the log and sampling too")]

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use toolcell::{Definition, Registry, Tool};
use toolcell_server::mcp::rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities,
    CompleteRequestParams, CompleteResult, ContentBlock, CreateMessageRequest,
    CreateMessageRequestParams, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    LoggingLevel, LoggingMessageNotification, LoggingMessageNotificationParam,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ServerCapabilities, Tool as ListedTool,
};
use toolcell_server::mcp::{AnswerFuture, ExtensionRequest, McpExtension};
use toolcell_server::{Principal, ServedTools, Service};

use crate::inputs;

/// The signature of a PNG file, in base64.
const PNG_TEXT: &str = "iVBORw0KGgo=";

/// Tools that need the protocol itself.
const TOOLS: [&str; 10] = [
    "test_trigger_tool_change",
    "test_tool_with_logging",
    "test_sampling",
    "test_missing_capability",
    "test_logging_tool",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_capabilities",
];

/// The suite's fixture.
pub(crate) struct Fixture {
    pub(crate) service: Service,
    pub(crate) registry: Registry,
}

impl Fixture {
    /// Removes the tool of this name if it exists, otherwise adds it.
    fn toggle(&self, name: &str) -> Result<(), Box<dyn std::error::Error>> {
        if self.registry.unregister(name).is_none() {
            let definition = Definition::new(name, "Comes and goes.")?;
            self.registry.register(Tool::native(definition, async |_: Value| json!("here"))?)?;
        }
        self.service.replace(ServedTools::new(&self.registry));
        Ok(())
    }
}

fn answered<T: DeserializeOwned + Send + 'static, R: From<T> + Send + 'static>(
    value: Value,
) -> AnswerFuture<'static, R> {
    let answer = serde_json::from_value::<T>(value).map(R::from);
    Box::pin(
        async move { answer.map_err(|error| ErrorData::internal_error(error.to_string(), None)) },
    )
}

fn resource(uri: &str, text: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": uri, "mimeType": "text/plain", "text": text}})
}

fn image() -> Value {
    json!({"type": "image", "mimeType": "image/png", "data": PNG_TEXT})
}

/// Logs three lines.
async fn logs(asked: ExtensionRequest) -> Result<CallToolResponse, ErrorData> {
    for line in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        let params = LoggingMessageNotificationParam::new(LoggingLevel::Info, line.into());
        asked.client.notify(LoggingMessageNotification::new(params).into());
    }
    Ok(CallToolResult::success(vec![ContentBlock::text("logged")]).into())
}

/// Sends a sampling request to the client's model.
async fn samples(
    request: CallToolRequestParams,
    asked: ExtensionRequest,
) -> Result<CallToolResponse, ErrorData> {
    let prompt = request
        .arguments
        .and_then(|arguments| arguments.get("prompt").cloned())
        .unwrap_or_default();
    let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
    let params = serde_json::from_value(json!({"messages": [message], "maxTokens": 100}));
    let params: CreateMessageRequestParams =
        params.map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
    let sampled = asked.client.ask(CreateMessageRequest::new(params).into()).await?;
    let text = json!(sampled)["content"]["text"].as_str().unwrap_or_default().to_owned();
    Ok(CallToolResult::success(vec![ContentBlock::text(format!("LLM response: {text}"))]).into())
}

impl McpExtension for Fixture {
    fn capabilities(&self, capabilities: &mut ServerCapabilities) {
        let offered = json!({"prompts": {}, "completions": {}, "resources": {"subscribe": true}});
        let offered: ServerCapabilities = serde_json::from_value(offered).unwrap_or_default();
        capabilities.prompts = offered.prompts;
        capabilities.completions = offered.completions;
        capabilities.resources = offered.resources;
    }

    fn tools(&self, _: &Principal) -> Vec<ListedTool> {
        let schema = serde_json::Map::from_iter([("type".to_owned(), json!("object"))]);
        TOOLS
            .map(|name| ListedTool::new(name, format!("The fixture {name}."), schema.clone()))
            .into()
    }

    fn call_tool(
        &self,
        request: CallToolRequestParams,
        asked: ExtensionRequest,
    ) -> AnswerFuture<'_, CallToolResponse> {
        let can = asked.client.capabilities();
        let next = inputs::next(
            &request.name,
            request.request_state.as_deref(),
            request.input_responses.as_ref(),
            &can,
        );
        if let Some(next) = next {
            let answer = next.map(|next| match next {
                Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]).into(),
                Err(required) => CallToolResponse::InputRequired(required),
            });
            return Box::pin(async move { answer });
        }
        let content = match request.name.as_ref() {
            "test_tool_with_logging" => return Box::pin(logs(asked)),
            "test_sampling" => return Box::pin(samples(request, asked)),
            "test_missing_capability" if json!(can).get("sampling").is_none() => {
                let wanted = json!({"sampling": {}});
                let wanted: ClientCapabilities = serde_json::from_value(wanted).unwrap_or_default();
                let error = ErrorData::missing_required_client_capability(wanted);
                return Box::pin(async move { Err(error) });
            }
            "test_trigger_tool_change" => {
                let changed = self
                    .toggle("test_changing_tool")
                    .map_or_else(|error| error.to_string(), |()| "changed".into());
                json!([{"type": "text", "text": changed}])
            }
            _ => json!([{"type": "text", "text": "done"}]),
        };
        answered::<CallToolResult, _>(json!({"content": content}))
    }

    fn list_prompts(
        &self,
        _: PaginatedRequestParams,
        _: ExtensionRequest,
    ) -> AnswerFuture<'_, ListPromptsResult> {
        let named = |name: &str, arguments: &[&str]| {
            let arguments = arguments
                .iter()
                .map(|name| json!({"name": name, "description": "text", "required": true}));
            json!({"name": name, "description": "A fixture.", "arguments": arguments.collect::<Vec<_>>()})
        };
        answered::<ListPromptsResult, _>(json!({"prompts": [
            named("test_simple_prompt", &[]),
            named("test_prompt_with_arguments", &["arg1", "arg2"]),
            named("test_prompt_with_embedded_resource", &["resourceUri"]),
            named("test_prompt_with_image", &[]),
            named("test_input_required_result_prompt", &[]),
        ]}))
    }

    fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        asked: ExtensionRequest,
    ) -> AnswerFuture<'_, GetPromptResponse> {
        let can = asked.client.capabilities();
        let state = request.request_state.as_deref();
        match inputs::next(&request.name, state, request.input_responses.as_ref(), &can) {
            Some(Ok(Err(required))) => {
                return Box::pin(async move { Ok(GetPromptResponse::InputRequired(required)) });
            }
            Some(Err(error)) => return Box::pin(async move { Err(error) }),
            Some(Ok(Ok(text))) => {
                let message = json!({"role": "user", "content": {"type": "text", "text": text}});
                return answered::<GetPromptResult, _>(json!({"messages": [message]}));
            }
            None => {}
        }
        let arguments = request.arguments.unwrap_or_default();
        let argument =
            |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let text = |text: &str| json!({"type": "text", "text": text});
        let contents = match request.name.as_str() {
            "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
            "test_prompt_with_arguments" => {
                vec![text(&format!(
                    "Prompt with arguments: arg1='{}', arg2='{}'",
                    argument("arg1"),
                    argument("arg2")
                ))]
            }
            "test_prompt_with_embedded_resource" => vec![
                resource(&argument("resourceUri"), "Embedded resource content for testing."),
                text("Please process the embedded resource above."),
            ],
            "test_prompt_with_image" => vec![image(), text("Please analyze the image above.")],
            _ => {
                return Box::pin(async {
                    Err(ErrorData::invalid_params("there is no such prompt", None))
                });
            }
        };
        let messages: Vec<_> = contents
            .into_iter()
            .map(|content| json!({"role": "user", "content": content}))
            .collect();
        answered::<GetPromptResult, _>(json!({"messages": messages}))
    }

    fn complete(
        &self,
        _: CompleteRequestParams,
        _: ExtensionRequest,
    ) -> AnswerFuture<'_, CompleteResult> {
        let completion =
            json!({"values": ["paris", "park", "party"], "total": 3, "hasMore": false});
        answered::<CompleteResult, _>(json!({"completion": completion}))
    }

    fn list_resources(
        &self,
        _: PaginatedRequestParams,
        _: ExtensionRequest,
    ) -> AnswerFuture<'_, ListResourcesResult> {
        answered::<ListResourcesResult, _>(json!({"resources": [
            {"uri": "test://static-text", "name": "text", "description": "A text.", "mimeType": "text/plain"},
            {"uri": "test://static-binary", "name": "image", "description": "An image.", "mimeType": "image/png"},
            {"uri": "test://watched-resource", "name": "watched", "description": "A text.", "mimeType": "text/plain"},
        ]}))
    }

    fn list_resource_templates(
        &self,
        _: PaginatedRequestParams,
        _: ExtensionRequest,
    ) -> AnswerFuture<'_, ListResourceTemplatesResult> {
        answered::<ListResourceTemplatesResult, _>(json!({"resourceTemplates": [
            {"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"},
        ]}))
    }

    fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: ExtensionRequest,
    ) -> AnswerFuture<'_, ReadResourceResponse> {
        let uri = request.uri;
        let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let content = match (uri.as_str(), id) {
            ("test://static-text" | "test://watched-resource", _) => json!({
                "uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource.",
            }),
            ("test://static-binary", _) => {
                json!({"uri": uri, "mimeType": "image/png", "blob": PNG_TEXT})
            }
            (_, Some(id)) => {
                let data =
                    json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                json!({"uri": uri, "mimeType": "application/json", "text": data.to_string()})
            }
            _ => {
                let error = ErrorData::resource_not_found(
                    "there is no such resource",
                    Some(json!({"uri": uri})),
                );
                return Box::pin(async move { Err(error) });
            }
        };
        answered::<ReadResourceResult, _>(json!({"contents": [content]}))
    }

    fn subscribe(&self, _: String, _: ExtensionRequest) -> AnswerFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn unsubscribe(&self, _: String, _: ExtensionRequest) -> AnswerFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}
