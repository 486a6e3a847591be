//! Tests that one tenant or one call cannot take all connections or name lookups.

use futures_util::future::join_all;

use super::*;
use crate::tenant::state::TenantState;

fn budget_of(tenant: Option<&str>) -> Budget {
    Budget::of(&TenantState::of(tenant))
}

async fn opened(
    egress: &Egress,
    server: &Server,
    budget: &Budget,
) -> Option<Result<http::Response<Body>, SendError>> {
    let outgoing = get(&server.url("/"));
    let admitted = admit(&local(server), budget, outgoing.method, &outgoing.target).unwrap();
    let open = egress.open(admitted, budget, outgoing, Secrets::default(), Instant::now() + AMPLE);
    tokio::time::timeout(4 * SHORT, open).await.ok()
}

/// Returns the connections that calls with these budgets get if none is released. A budget may be
/// listed several times.
async fn open_connections(
    egress: &Egress,
    server: &Server,
    budgets: Vec<Budget>,
) -> Vec<http::Response<Body>> {
    let opened = join_all(budgets.iter().map(|budget| opened(egress, server, budget))).await;
    opened.into_iter().flatten().map(Result::unwrap).collect()
}

#[tokio::test]
async fn tenant_gets_a_quarter_of_connections_a_call_eight() {
    let server = Server::responding("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf").await;
    let egress = Egress::new().with_connections(16);
    let open = |budgets| open_connections(&egress, &server, budgets);
    let of_a = open((0..10).map(|_| budget_of(Some("a"))).collect()).await;
    assert_eq!(of_a.len(), 4, "a quarter");
    assert_eq!(open(vec![budget_of(Some("b"))]).await.len(), 1, "another tenant goes on");
    let of_one = open(vec![budget_of(None); 12]).await;
    assert_eq!(of_one.len(), 8, "one call");
    assert_eq!(open(vec![budget_of(None)]).await.len(), 1, "another call goes on");
    drop((of_a, of_one));
    let all = egress.connections.all.acquire_many(16);
    assert!(tokio::time::timeout(AMPLE, all).await.unwrap().is_ok());
}

/// Never answers for one name, and counts the lookups of it.
#[derive(Clone, Default)]
struct StallingResolver(Arc<Mutex<usize>>);

impl Resolver for StallingResolver {
    fn resolve(&self, host: &str, _port: u16) -> ResolveFuture {
        if host.starts_with("slow") {
            *self.0.lock() += 1;
            return Box::pin(std::future::pending());
        }
        Box::pin(std::future::ready(Ok(vec!["127.0.0.1".parse().unwrap()])))
    }
}

#[tokio::test]
async fn slow_dns_delays_only_its_own_tenant() {
    let server = Server::responding("HTTP/1.1 204 No Content\r\n\r\n").await;
    let fast = server.url("/").replace("127.0.0.1", "fast.example");
    let rule: HttpRule = fast.parse().unwrap();
    let loopback = "127.0.0.0/8".parse().unwrap();
    let rights = rights([rule.with_private([loopback]), "http://slow.example".parse().unwrap()]);
    let resolver = StallingResolver::default();
    let egress = Egress::new().with_resolver(resolver.clone());
    let asked = |budget: Budget, url: &str, time: Duration| {
        let (egress, rights, outgoing) = (&egress, &rights, get(url));
        async move {
            let deadline = Instant::now() + time;
            kind(&egress.send(rights, &budget, outgoing, Secrets::default(), deadline).await)
        }
    };
    let slow = |budget| asked(budget, "http://slow.example/", SHORT);
    let one = budget_of(Some("b"));
    assert_eq!(join_all((0..6).map(|_| slow(one.clone()))).await, ["timeout"; 6]);
    assert_eq!(*resolver.0.lock(), 4, "one call, also after it has given up on them");
    assert_eq!(join_all((0..20).map(|_| slow(budget_of(Some("a"))))).await, ["timeout"; 20]);
    assert_eq!(*resolver.0.lock(), 4 + 8, "one tenant");
    assert_eq!(asked(budget_of(Some("a")), &fast, SHORT).await, "timeout");
    assert_eq!(asked(budget_of(Some("b")), &fast, AMPLE).await, "response");
    assert_eq!(asked(budget_of(None), &fast, AMPLE).await, "response");
}
