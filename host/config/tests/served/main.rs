//! Serving a configuration's approved components, before and after a reload.

mod place;
mod under_load;
mod versions;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use futures_util::StreamExt as _;
use toolcell::grants::{DirectoryQuota, Injection};
use toolcell::{CallResult, Limits, Refusal};
use toolcell_config::approval::Unapproved;
use toolcell_config::{
    Configuration, Error, LoadedTools, Lock, Reason, ReloadChanges, Reloader, Serving,
};
use toolcell_test_guests::asker;

use place::{Place, TWO, called, description, names, problems, rebuilt, refused, tool};

#[tokio::test]
async fn unservable_component_does_not_stop_the_others() {
    use Reason::{
        Changed, DigestMismatch, MissingFile, NotApproved, NotLoadable, Rebuilt, UnknownTool,
        Unsigned,
    };
    use Serving::{Approved, Current, Nothing};
    let granted = "[components.one.grants]\nenvironment = { A = \"B\" }\n";
    let typo = format!("{TWO}[components.one.tools.typo]\n");
    let digest = format!("one.wasm\"\ndigest = \"sha256:{}\"", "0".repeat(64));
    let digest = TWO.replacen("one.wasm\"", &digest, 1);
    let publisher = "[publishers.p]\nkeys = []\n[components.one]\npublisher = \"p\"";
    let publisher = TWO.replacen("[components.one]", publisher, 1);
    let other_code = rebuilt(&tool("one", "The first."));
    // Grants, a file with its content after the approval, and the problem.
    for (grants, file, content, reason, serving) in [
        ("", "three.wasm", Some(Vec::new()), NotApproved, Nothing),
        ("", "one.wasm", Some(tool("one", "Other.")), Changed, Approved),
        ("", "one.wasm", Some(other_code.clone()), Rebuilt, Current),
        (granted, "one.wasm", Some(other_code), Changed, Approved),
        ("", "one.wasm", Some(b"no component".to_vec()), NotLoadable, Approved),
        ("", "one.wasm", None, MissingFile, Approved),
        ("", "toolcell.toml", Some(typo.into_bytes()), UnknownTool, Nothing),
        ("", "toolcell.toml", Some(digest.into_bytes()), DigestMismatch, Nothing),
        ("", "toolcell.toml", Some(publisher.into_bytes()), Unsigned, Nothing),
    ] {
        let place = Place::new(&format!("{TWO}{grants}"));
        place.approve(if reason == NotApproved { &["two"] } else { &["one", "two"] }).await;
        match content {
            Some(content) => place.write(file, content),
            None => fs::remove_file(place.path().join("project").join(file)).expect("no error"),
        }
        let loaded = place.load().await;
        assert_eq!(problems(&loaded), [("one", reason, serving)], "{:?}", loaded.problems());
        let problem = &loaded.problems()[0];
        assert!(!problem.hint().is_empty() && !problem.reason.code().is_empty(), "{problem}");
        assert!(problem.file.ends_with("toolcell.toml") && problem.line > 0, "{problem}");
        let expected: &[&str] = if serving == Nothing { &["two"] } else { &["one", "two"] };
        assert_eq!(names(&loaded), expected, "{problem}");
        assert_eq!(refused(&loaded, "two", None).await, None);
        if serving == Approved {
            assert_eq!(description(&loaded, "one"), "The first.");
        }
    }
    // A secret without a value is a problem of the tools that may use it.
    let secret = "[components.asks]\npath = \"asks.wasm\"\n[components.asks.grants]\nsecrets = { token = { destination = \
                  \"https://a.example\" }, key = {} }\nreveal = [\"key\"]\nhttp = [\"https://a.example\"]\n";
    let place = Place::new(&format!("{TWO}{secret}"));
    place.write("asks.wasm", asker(&[]));
    place.approve(&["asks", "one", "two"]).await;
    let loaded = place.load().await;
    let unset = ("asks", Reason::UnsetSecret, Current);
    assert_eq!(problems(&loaded), [unset, unset]);
    let problem = &loaded.problems()[0].error.problems()[0];
    assert!(problem.file.ends_with("toolcell.toml") && problem.line == 8, "{problem}");
    let refused = called(&loaded, "asks", None).await;
    let CallResult::Refusal(Refusal::UnsetSecret(names)) = &refused else { panic!("{refused:?}") };
    assert_eq!(names.join(" "), "key token");
    place.write("toolcell.toml", format!("{TWO}[components.asks]\npath = \"asks.wasm\"\n"));
    let loaded = place.load().await;
    assert_eq!(problems(&loaded), [("asks", Reason::NotGranted, Nothing)]);
    let hint = loaded.problems()[0].hint();
    assert!(hint.contains("[components.asks.grants]"), "{hint}");
}

#[tokio::test]
async fn tools_with_the_same_name_are_not_served() {
    let place = Place::new(TWO);
    for (name, other) in [("one", "both offer a tool"), ("0ne", "looks like")] {
        place.write("two.wasm", tool(name, "The second."));
        place.approve(&["one", "two"]).await;
        let loaded = place.load().await;
        assert!(names(&loaded).is_empty());
        let same = |component| (component, Reason::DuplicateTool, Serving::Nothing);
        assert_eq!(problems(&loaded), [same("one"), same("two")]);
        assert!(loaded.problems()[0].to_string().contains(other), "{}", loaded.problems()[0]);
    }
}

#[tokio::test]
async fn limits_and_tenants_come_from_the_configuration() {
    let place = Place::approved(&format!(
        "{TWO}[components.two.limits]\ntimeout = \"2m\"\n[components.two.tools.two]\nlimits = {{ fuel = 1000000 }}\n\
         [tenants.acme]\nlimits = {{ arguments = 1 }}\n[tenants.other]\n[tenants.apart]\nisolation = \"process\"\n"
    ))
    .await;
    let loaded = place.load().await;
    let limits = |tool: &str| loaded.registry().get(tool).expect("no error").limits();
    assert_eq!(limits("one").timeout, Limits::default().timeout);
    assert_eq!(limits("two").timeout, Duration::from_secs(120));
    assert_eq!((limits("one").fuel, limits("two").fuel), (Limits::default().fuel, 1_000_000));
    assert_eq!(loaded.tenants().keys().collect::<Vec<_>>(), ["acme", "apart", "other"]);
    for (tenant, refusal) in [
        (Some("other"), None),
        (Some("acme"), Some("invalid_arguments")),
        (Some("unknown"), Some("unknown_tenant")),
        (None, Some("no_tenant")),
        // Calls that need a process of their own are not made in this one.
        (Some("apart"), Some("not_visible")),
    ] {
        assert_eq!(refused(&loaded, "one", tenant).await, refusal, "{tenant:?}");
    }
    assert_eq!(problems(&loaded), [("", Reason::NeedsProcess, Serving::Nothing)]);
    place.write("toolcell.toml", format!("[host]\nisolation = \"process\"\n{TWO}"));
    assert!(names(&place.load().await).is_empty());
}

#[test]
fn grants_come_from_the_configuration() {
    let place = Place::new(&format!(
        "{TWO}[components.one.grants]\nscratch = {{ max_bytes = \"1KiB\", max_files = 2 }}\nsecrets = {{ \
         b = {{ destination = \"https://a.example\", injection = {{ basic = \"x\" }} }}, \
         q = {{ destination = \"https://a.example\", injection = {{ query = \"x\" }} }} }}\n"
    ));
    let configuration = place.read();
    let grants = &configuration.components["one"].grants;
    assert_eq!(grants.scratch, Some(DirectoryQuota { bytes: 1024, files: 2 }));
    assert_eq!(grants.secrets["b"].injection, Injection::Basic { user: "x".to_owned() });
    assert_eq!(grants.secrets["q"].injection, Injection::Query { name: "x".to_owned() });
}

#[tokio::test]
async fn tenant_calls_only_offered_tools() {
    let tenants = "[tenants.acme]\ntools = [\"one\", \"tow\"]\n[tenants.other]\n";
    let place = Place::approved(&format!("{TWO}{tenants}")).await;
    let loaded = place.load().await;
    assert_eq!(refused(&loaded, "one", Some("acme")).await, None);
    assert_eq!(refused(&loaded, "two", Some("acme")).await, Some("not_visible"));
    assert_eq!(refused(&loaded, "two", Some("other")).await, None);
    let rules = ["one", "tow"].map(|rule| rule.parse().expect("a rule"));
    assert_eq!(loaded.tenants()["acme"].tenant.tools.as_deref(), Some(&rules[..]));
    let problem = &loaded.problems()[0];
    let found = (problem.tenant.as_deref(), problem.reason);
    assert_eq!(found, (Some("acme"), Reason::UnknownTool), "{problem}");
    assert!(problem.hint().contains("did you mean `two`?"), "{problem}");
}

#[tokio::test]
async fn unchanged_components_are_not_reloaded() {
    let place = Place::approved(TWO).await;
    let reloader = place.reloader().await;
    let before = reloader.loaded();
    assert_eq!(reloader.reload().await.expect("no error"), ReloadChanges::default());
    place.write("two.wasm", tool("two", "The other second."));
    place.approve(&["two"]).await;
    place.write("toolcell.toml", format!("{TWO}[components.one.limits]\nfuel = 1000000\n"));
    let reloaded = reloader.reload().await.expect("no error");
    assert_eq!(reloaded.replaced.iter().collect::<Vec<_>>(), ["two"]);
    assert!(reloaded.definitions_changed);
    assert!(reloaded.added.is_empty() && reloaded.removed.is_empty());
    let after = reloader.loaded();
    // There is no cache: a component that is loaded again is compiled again, which never takes
    // exactly the same time in nanoseconds.
    let compiled = |loaded: &LoadedTools, name: &str| {
        loaded.component(name).expect("no error").compile_time().expect("no error")
    };
    assert_eq!(compiled(&before, "one"), compiled(&after, "one"));
    assert_ne!(compiled(&before, "two"), compiled(&after, "two"));
    assert_eq!(after.registry().get("one").expect("no error").limits().fuel, 1_000_000);
    // A caller that holds the earlier version still uses it.
    assert_eq!(description(&before, "two"), "The second.");
    assert_eq!(description(&after, "two"), "The other second.");
    assert_eq!(refused(&before, "two", None).await, None);
    place.write(
        "toolcell.toml",
        "[components.one]\npath = \"one.wasm\"\n[components.one.grants]\nscratch = true\n",
    );
    let reloaded = reloader.reload().await.expect("no error");
    // Other grants are other rights.
    assert_eq!(reloaded.replaced.iter().collect::<Vec<_>>(), ["one"]);
    assert_eq!(reloaded.removed.iter().collect::<Vec<_>>(), ["two"]);
}

#[tokio::test]
async fn invalid_file_changes_nothing_and_says_why() {
    let place = Place::approved(TWO).await;
    let lock = place.file("toolcell.lock");
    let reloader = place.reloader().await;
    let before = reloader.loaded();
    for (file, content, line) in [
        ("toolcell.toml", "[components.one]\npath = \"one.wasm\"\ngarnts = 1\n", 3),
        ("toolcell.toml", "[components.one\n", 1),
        ("toolcell.lock", "version = 2\n", 1),
    ] {
        let good = place.file(file);
        place.write(file, content);
        let error = reloader.reload().await.unwrap_err();
        assert!(matches!(&error, Error::Invalid { .. }), "{error:?}");
        assert_eq!(error.problems()[0].line, line, "{error}");
        assert!(!error.hint().is_empty());
        assert!(std::sync::Arc::ptr_eq(&before, &reloader.loaded()), "{error}");
        place.write(file, good);
    }
    assert_eq!(place.file("toolcell.lock"), lock);
    assert_eq!(reloader.reload().await.expect("no error"), ReloadChanges::default());
}

/// Waits for the event itself.
#[tokio::test]
async fn file_change_is_noticed() {
    let place = Place::new(&format!(
        "{TWO}[components.one.grants]\nsecrets = {{ token = {{ destination = \"https://a.example\", source = {{ file = \"token\" }} }} }}\n\
         http = [\"https://a.example\"]\n"
    ));
    place.write("token", "a-value-of-a-token");
    fs::set_permissions(place.path().join("project/token"), fs::Permissions::from_mode(0o600))
        .expect("no error");
    place.approve(&["one", "two"]).await;
    let reloader = place.reloader().await;
    let mut changes = std::pin::pin!(reloader.changes(Duration::from_millis(5)));
    place.write("toolcell.toml", "[components.one\n");
    assert!(matches!(changes.next().await, Some(Err(Error::Invalid { .. }))));
    place.write("toolcell.toml", TWO);
    let reloaded = changes.next().await.expect("no error").expect("no error");
    assert_eq!(reloaded.replaced.iter().collect::<Vec<_>>(), ["one"]);
    place.write("two.wasm", rebuilt(&tool("two", "The second.")));
    let reloaded = changes.next().await.expect("no error").expect("no error");
    assert!(reloaded.replaced.contains("two") && !reloaded.definitions_changed, "{reloaded:?}");
    let issuer = "[issuer]\nurl = \"https://login.example\"\naudience = \"https://tools.example\"\nkeys = \"keys.json\"\n";
    place.write("toolcell.toml", format!("{TWO}{issuer}"));
    assert!(matches!(changes.next().await, Some(Err(Error::Invalid { .. }))), "no file of keys");
    // The configuration that is served does not name the file.
    place.write("keys.json", "{}");
    changes.next().await.expect("no error").expect("no error");
    assert!(reloader.loaded().issuer().is_some());
}

#[tokio::test]
async fn found_configuration_is_used_only_as_approved() {
    let place = Place::new(TWO);
    let options = || place.options().with_current_dir(place.path().join("project"));
    let find = || Configuration::find(options()).expect("no error");
    let engines = place.engines();
    let loaded = find().load(&engines).await.expect("no error");
    // One problem, for the file.
    assert_eq!(problems(&loaded), [("", Reason::ConfigurationNotApproved, Serving::Nothing)]);
    let problem = &loaded.problems()[0];
    let told = "you have not approved this configuration in its present form";
    assert!(problem.to_string().ends_with(told), "{problem}");
    let hint = "run `toolcell approve`: it shows the configuration and asks for your approval";
    assert_eq!(problem.hint(), hint);
    let configuration = find();
    let one = configuration.review(&engines, "one").await.expect("no error");
    let lock = Lock::beside(&configuration).expect("no error");
    configuration.approve(&lock, &[("one".to_owned(), one)], &[]).expect("no error");
    let reloader = Reloader::start(find(), place.engines()).await.expect("no error");
    assert_eq!(names(&reloader.loaded()), ["one"]);
    place.write("toolcell.toml", format!("{TWO}[components.one.grants]\nscratch = true\n"));
    let error = reloader.reload().await.unwrap_err();
    assert!(
        matches!(error, Error::NotApproved { what: Unapproved::Configuration, .. }),
        "{error:?}"
    );
    assert_eq!(names(&reloader.loaded()), ["one"]);
}
