//! Tests of the server: its HTTP API, MCP, and the search among many tools.

mod http;
mod many;
mod mcp;
mod recall;
mod trees;
