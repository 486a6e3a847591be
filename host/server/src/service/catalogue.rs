//! Lists the tools that a principal (the authenticated sender: a key or user of a tenant) sees, in
//! pages.
//!
//! HTTP and MCP call [`Service::tools`] with the cursor of the previous page, and [`Service::tool`]
//! for one name. A [`Page`] has tools sorted by name and the cursor of the next page. The cursor
//! contains the last name of its page, so the next page is right even after tools were added or
//! removed.
//!
//! Some tools decide by code of their own if they are visible. They are asked while a page is
//! filled, at most 32 at once, and not the whole list. The fuel (instruction units) for that is
//! charged to the tenant's quota, so a tenant without fuel is refused.

use std::ops::Bound;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::{StreamExt as _, stream};
use toolcell::{CallContext, Tool, names};

use super::served::View;
use crate::service::Service;
use crate::tenants::{principal::Principal, refused::RequestError};

/// Tools that are asked concurrently whether they are visible.
const ASKED_AT_ONCE: usize = 32;
/// The prefix of the text in a cursor: its format.
const FORM: &str = "1:";

/// One page of the tools that a principal sees.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Page {
    /// The tools, by name.
    pub tools: Vec<Tool>,
    /// The cursor of the next page. `None` on the last page.
    pub next: Option<String>,
}

impl Service {
    /// Returns a page of the tools that the principal sees, sorted by name. `cursor` is
    /// [`Page::next`] of the previous page.
    ///
    /// # Errors
    /// [`RequestError::NoAccess`], [`RequestError::InvalidCursor`]; [`RequestError::Quota`] if the
    /// tenant has no fuel left, because tools that decide their own visibility use fuel.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn tools(
        &self,
        principal: &Principal,
        cursor: Option<&str>,
    ) -> Result<Page, RequestError> {
        let view = self.asked_view(principal)?;
        let after = cursor.map(name_in).transpose()?;
        let (context, most) = (Arc::new(context(principal)), self.limits().page.max(1));
        let begin = after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let rest: Vec<Tool> = view.listed(begin).cloned().collect();
        let asked = stream::iter(rest)
            .map(move |tool| if_visible(Arc::clone(&view), tool, Arc::clone(&context)));
        let visible = asked.buffered(ASKED_AT_ONCE).filter_map(std::future::ready);
        // One more than the page, to know if there is a next one.
        let mut tools: Vec<Tool> = visible.take(most + 1).collect().await;
        let has_more = tools.len() > most;
        tools.truncate(most);
        let last = tools.last().filter(|_| has_more).map(|tool| &tool.definition().name);
        let next = last.map(|name| URL_SAFE_NO_PAD.encode(format!("{FORM}{name}")));
        Ok(Page { tools, next })
    }

    /// Returns the tool of this name, if the principal sees it.
    ///
    /// # Errors
    /// [`RequestError::NoAccess`], [`RequestError::UnknownTool`], [`RequestError::Quota`] as
    /// [`tools`](Self::tools).
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn tool(&self, principal: &Principal, name: &str) -> Result<Tool, RequestError> {
        let view = self.asked_view(principal)?;
        let context = context(principal);
        match view.tools.get(name) {
            Some(tool) if view.is_visible_tool(tool, &context).await => Ok(tool.clone()),
            Some(_) | None => Err(view.unknown_tool(name, &context).await),
        }
    }

    /// Returns the principal's view, if its tenant has the fuel to ask the tools. Refused even if
    /// there is no tool to ask, so that a refusal does not show one.
    fn asked_view(&self, principal: &Principal) -> Result<Arc<View>, RequestError> {
        let view = self.view(principal)?;
        let checked = view.account.check_fuel(&view.quota);
        checked.inspect_err(|refused| view.metrics.refused(refused.code()))?;
        Ok(view)
    }
}

impl View {
    /// Returns true if a tool is visible to the view's tenant, for a list.
    async fn is_visible_tool(&self, tool: &Tool, context: &CallContext) -> bool {
        self.executor.is_visible(tool, None, context).await == Some(true)
    }

    /// Returns the refusal for a name that the principal does not see, whether or not such a tool
    /// exists.
    pub(crate) async fn unknown_tool(&self, name: &str, context: &CallContext) -> RequestError {
        let others = self.tools.keys().map(String::as_str).filter(|other| *other != name);
        let near = names::nearest(name, others).and_then(|near| self.tools.get(near));
        let nearest = match near {
            Some(tool) if self.is_visible_tool(tool, context).await => {
                Some(tool.definition().name.clone())
            }
            Some(_) | None => None,
        };
        RequestError::UnknownTool { name: name.to_owned(), nearest }
    }
}

async fn if_visible(view: Arc<View>, tool: Tool, context: Arc<CallContext>) -> Option<Tool> {
    view.is_visible_tool(&tool, &context).await.then_some(tool)
}

/// Returns the context in which a principal lists tools.
fn context(principal: &Principal) -> CallContext {
    let mut context = CallContext::default();
    context.tenant = principal.tenant().map(str::to_owned);
    context
}

fn name_in(cursor: &str) -> Result<String, RequestError> {
    let text = URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let name = text.as_deref().and_then(|text| text.strip_prefix(FORM));
    name.filter(|name| !name.is_empty() && name.len() <= toolcell::Definition::MAX_NAME)
        .map(str::to_owned)
        .ok_or(RequestError::InvalidCursor)
}
