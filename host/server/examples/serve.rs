//! Serves one tool over HTTP and MCP on this machine, to every local program.
//!
//! Run it with `cargo run --example serve`, then:
//! `curl http://ADDRESS/v1/calls --json '{"name": "now"}'`

use std::error::Error;
use std::io::Write as _;

use serde_json::{Value, json};
use toolcell::{Definition, Registry, Tool};
use toolcell_server::mcp::{self, McpOptions};
use toolcell_server::{Authenticator, HttpServer, ListenOptions, ServedTools, Service};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let registry = Registry::new();
    registry
        .register(Tool::native(Definition::new("now", "Tells the time.")?, async |_: Value| {
            json!("noon")
        })?)?;
    let service = Service::builder(ServedTools::new(&registry)).build()?;
    let routes = mcp::routes(service.clone(), McpOptions::default());
    let options = ListenOptions { protected: routes, ..ListenOptions::default() };
    let server = HttpServer::bind(service, Authenticator::open(), options).await?;
    writeln!(std::io::stdout(), "listening at http://{}", server.address())?;
    server.serve(std::future::pending()).await;
    Ok(())
}
