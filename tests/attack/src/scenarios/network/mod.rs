//! Requests to forbidden addresses: every address that is not on the public internet, in every
//! spelling and through every way.

mod addresses;
mod listener;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolcell::grants::{HttpRule, Method, Target};
use toolcell::http::{Egress, ResolveFuture, Resolver};
use toolcell::runtime::Placement;
use toolcell::{CallOptions, Component, Engine, Executor, Grants, Limits, ToolCall};
use toolcell_test_guests::bytes;
use toolcell_tests::server::{Server, response};
use toolcell_tests::{load_with, wait};

use super::Scenario;
use crate::fixture::Fixture;
use crate::rng::SeededRng;
use crate::tally::{Fault, Tally, wrong};
use addresses::{all, disguised, spellings};
use listener::Forbidden;

/// Takes the place of a public address, which no request reaches from here: a loopback address that
/// a rule names.
const ALLOWED: Ipv4Addr = Ipv4Addr::new(127, 77, 7, 7);
/// The name that resolves to another address the second time.
const REBOUND: &str = "rebound.example";
/// Ways to reach a forbidden address.
const ROUTES: [Route; 5] =
    [Route::Direct, Route::Redirect, Route::Rebinding, Route::AbsoluteForm, Route::Userinfo];

#[derive(Debug, Clone, Copy)]
enum Route {
    Direct,
    Redirect,
    Rebinding,
    AbsoluteForm,
    Userinfo,
}

/// Resolves the rebound name to the allowed address first, and to the forbidden ones afterwards.
#[derive(Clone, Default)]
struct Rebinding(Arc<std::sync::Mutex<Vec<IpAddr>>>, Arc<AtomicUsize>);

impl Resolver for Rebinding {
    fn resolve(&self, host: &str, _: u16) -> ResolveFuture {
        let first = self.1.fetch_add(1, Ordering::Relaxed) == 0 && host == REBOUND;
        let answer =
            if first { vec![ALLOWED.into()] } else { self.0.lock().expect("no panic").clone() };
        Box::pin(async move { Ok(answer) })
    }
}

pub(crate) struct Network {
    seed: u64,
    engine: Engine,
    resolver: Rebinding,
    forbidden: Forbidden,
    allowed: Server,
}

impl Network {
    pub(crate) fn new(stage: &Fixture) -> Self {
        let resolver = Rebinding::default();
        let egress = Egress::new().with_resolver(resolver.clone());
        // A path `/to/<hex>` redirects to the address in it.
        let answer = |request: &str| {
            let path = request.split(' ').nth(1).unwrap_or_default();
            let Some(place) = path.strip_prefix("/to/") else {
                return response("200 OK", "allowed");
            };
            response(&format!("302 Found\r\nlocation: http://{}/", decode_hex(place)), "")
        };
        let engine = stage.engine(Placement::Cells).egress(egress).build().expect("an engine");
        let (forbidden, allowed) = (Forbidden::start(), Server::start(ALLOWED, answer));
        Self { seed: stage.seed, engine, resolver, forbidden, allowed }
    }

    /// Loads a tool with grants for all of these URLs, although no tool may reach them.
    fn granted(&self, name: &str, urls: &[String]) -> Component {
        let rule = |method, url: &str| Some(HttpRule::smallest(method, &Target::parse(url).ok()?));
        let mut grants = Grants::default();
        for method in [Method::Get, Method::Post] {
            grants.http.extend(urls.iter().filter_map(|url| rule(method, url)));
            for url in [
                self.allowed.url("/"),
                format!("http://{REBOUND}:{}/", self.allowed.address.port()),
            ] {
                let network = format!("{ALLOWED}/32").parse().expect("a network");
                let rule: HttpRule = format!("{} {url}", method.as_str()).parse().expect("a rule");
                grants.http.push(rule.with_private([network]));
            }
        }
        load_with(&self.engine, bytes(name), grants).expect("the tool")
    }

    /// The requests of one case, in order: the tool, its arguments, and whether it may succeed.
    fn requests(
        &self,
        way: Route,
        spelt: &str,
        forbidden: &str,
    ) -> Vec<(&'static str, Value, bool)> {
        let (direct, own) =
            (format!("http://{spelt}:{}/", self.forbidden.port), self.allowed.address);
        let rebound = format!("http://{REBOUND}:{}/", own.port());
        let fetch = |url: &str, may| ("fetch", json!({"url": url}), may);
        let post = |path: String| {
            ("caller", json!({"authority": own.to_string(), "path": path, "body": "x"}), true)
        };
        match way {
            Route::Direct => vec![fetch(&direct, false)],
            Route::Redirect => {
                let place = format!("{spelt}:{}", self.forbidden.port);
                let place: String = place.bytes().map(|byte| format!("{byte:02x}")).collect();
                vec![fetch(&self.allowed.url(&format!("/to/{place}")), true), fetch(&direct, false)]
            }
            Route::Rebinding => {
                vec![fetch(&rebound, true), fetch(&rebound, false), fetch(&rebound, false)]
            }
            // The allowed server may answer what is sent to it; no request may be routed by it to
            // another server.
            Route::AbsoluteForm => {
                vec![post(direct), post(format!("//{spelt}:{}/", self.forbidden.port))]
            }
            Route::Userinfo => vec![
                fetch(&format!("http://{own}@{spelt}:{}/", self.forbidden.port), false),
                fetch(&format!("http://user:{own}@{forbidden}:{}/", self.forbidden.port), false),
                fetch(&format!("http://{spelt}:{}#@{own}/", self.forbidden.port), false),
                fetch(&format!("http://{spelt}:{}\\@{own}/", self.forbidden.port), false),
            ],
        }
    }
}

fn decode_hex(text: &str) -> String {
    let pairs = text.as_bytes().chunks(2).filter_map(|pair| std::str::from_utf8(pair).ok());
    let bytes: Vec<u8> = pairs.filter_map(|pair| u8::from_str_radix(pair, 16).ok()).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn result_of(component: &Component, arguments: &Value) -> String {
    let tool = component.tools()[0].clone();
    let call = ToolCall::with_value("1", tool.definition().name.as_str(), arguments);
    let limits = Limits { timeout: Duration::from_secs(5), ..Limits::default() };
    let executor = Executor::new().with_limits(limits);
    let result =
        wait(async move { executor.call(&tool, call, CallOptions::default()).await }).result;
    serde_json::to_string(&result).expect("a result is JSON")
}

impl Scenario for Network {
    fn cases(&self) -> Option<u64> {
        Some((all().count() * ROUTES.len()) as u64)
    }

    /// Tries one address in one way, in several of its spellings.
    fn attempt(&mut self, case: u64, tally: &mut Tally) {
        let mut dice = SeededRng::of(self.seed, "network", case);
        let way = ROUTES[case as usize % ROUTES.len()];
        let address = all().nth(case as usize / ROUTES.len()).expect("an address of the table");
        let mut spelt = spellings(address);
        let port = self.forbidden.port;
        let urls: Vec<_> = spelt.iter().map(|spelt| format!("http://{spelt}:{port}/")).collect();
        // Keeps six at least; a random part of the rest is dropped.
        while spelt.len() > 6 && !dice.one_in(3) {
            spelt.remove(dice.index(spelt.len()));
        }
        let tools =
            [("fetch", self.granted("fetch", &urls)), ("caller", self.granted("caller", &urls))];
        for (index, spelt) in spelt.iter().enumerate() {
            *self.resolver.0.lock().expect("no panic") = disguised(address, index);
            self.resolver.1.store(0, Ordering::Relaxed);
            let mut judgement = Ok(());
            for (name, arguments, may) in self.requests(way, spelt, &spellings(address)[0]) {
                let tool = &tools.iter().find(|(known, _)| *known == name).expect("a tool").1;
                let result = result_of(tool, &arguments);
                let arrived = self.allowed.taken().concat();
                let is_plain = |line: &str| line.split(' ').nth(1).is_some_and(is_origin_form);
                let stays = arrived.lines().next().is_none_or(is_plain);
                let detail = || {
                    format!("{address} as {spelt}: {arguments} gave {result}; arrived {arrived}")
                };
                if self.forbidden.is_new() || (!may && result.starts_with(r#"{"ok""#)) {
                    judgement = Err((Fault::Connection, format!("{way:?}"), detail()));
                } else if result.contains("tool_error")
                    || result.contains("cannot be reached")
                    || result.contains("in time")
                {
                    let what = format!("{way:?}: a connection was tried");
                    judgement = Err((Fault::Connection, what, detail()));
                } else if !stays {
                    judgement = Err(wrong(format!("{way:?}: not in origin form"), detail()));
                }
            }
            tally.record_result(judgement);
        }
    }

    fn close(&mut self, tally: &mut Tally) {
        if self.forbidden.is_new() {
            let detail = "a connection came when all was over".to_owned();
            tally.record_result(Err((Fault::Connection, "after all".to_owned(), detail)));
        }
    }
}

fn is_origin_form(target: &str) -> bool {
    target.starts_with('/')
}
