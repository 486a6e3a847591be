//! Tests of tenants: their tools, rights, quotas and shares of the server.

mod guests;
mod hidden;
mod tenant_shares;
mod tenants;
