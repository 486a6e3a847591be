//! `toolcell tenant`: adds, lists and revokes the API keys of tenants.
//!
//! A tenant is a customer whose calls are kept apart; a server with tenants accepts a request only
//! with a key of one of them, or with a token of the configured issuer. [`tenant`] runs the
//! subcommand on the key store of the configuration, which is in the user's state directory. `add`
//! appends the section `[tenants.NAME]` to the configuration if it is missing, then makes a key;
//! `key` makes a further one for a tenant that the configuration names. A key is printed once and
//! only its digest is stored. `serve` opens the same store with [`store`].

use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};

use anyhow::anyhow;
use serde_json::json;
use toolcell_server::auth::{ApiKeyStore, KeyInfo, KeyStoreError, NewKey};

use crate::args::{TenantArgs, TenantCommand};
use crate::config::{self, Config, SecretSelection};
use crate::host::Cli;
use crate::print::{ExitStatus, Failure, Printer, Result, table};

/// Returns the store of the configuration's keys.
pub(crate) fn store(config: &Config) -> Result<ApiKeyStore> {
    if config.file.is_none() {
        return Err(without_file(config));
    }
    ApiKeyStore::of_configuration(config).map_err(failed)?.ok_or_else(|| {
        let message = "no place for API keys: neither `XDG_STATE_HOME` nor `HOME` is set";
        Failure::file(anyhow!(message), "name a directory with `--state-dir DIR`")
    })
}

fn without_file(config: &Config) -> Failure {
    config.missing("run `toolcell init` to make one, or name one with `--config FILE`").into()
}

/// Returns the failure of a store that cannot be used.
pub(crate) fn failed(error: KeyStoreError) -> Failure {
    let hint = error.hint();
    Failure::file(error, hint)
}

pub(crate) fn tenant(cli: &Cli, args: &TenantArgs) -> Result<ExitStatus> {
    let printer = &cli.printer;
    let config = cli.config(SecretSelection::None)?;
    let store = store(&config)?;
    let (name, is_new, json) = match &args.command {
        TenantCommand::Add { name, json } => {
            let is_new = add(printer, &config, name)?;
            if !is_new && !json {
                printer.note(format!(
                    "the tenant `{name}` is there already: this is a further key for it"
                ));
            }
            (name, is_new, *json)
        }
        TenantCommand::AddKey { name, json } => {
            if !config.tenants.contains_key(name) {
                let file = config.file.as_deref().unwrap_or(config::NAME);
                let add = config.hint.command("tenant", &["add"], &[name]);
                let unknown = config::unknown_tenant(file, config.tenants.keys(), name);
                return Err(unknown.with_hint(format!("{add} adds it")));
            }
            (name, false, *json)
        }
        TenantCommand::RevokeKey { id, json } => {
            return revoke(printer, &config, &store, id, *json);
        }
        TenantCommand::List { json } => return list(printer, &config, &store, *json),
    };
    let NewKey { id, key, .. } = store.add(name).map_err(failed)?;
    let key = key.expose();
    if json {
        printer.json(&json!({ "tenant": name, "added": is_new, "id": id, "key": key }))?;
    } else {
        printer.note(format!("this is the only time that the key {id} is shown"));
        printer.text(key)?;
    }
    Ok(ExitStatus::Ok)
}

/// Adds the tenant's section to the configuration if it is missing. Returns true if it was added.
fn add(printer: &Printer, config: &Config, name: &str) -> Result<bool> {
    if config.tenants.contains_key(name) {
        return Ok(false);
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) {
        let message = format!("`{}` is not a valid name of a tenant", name.escape_debug());
        return Err(Failure::usage(message, "use 1 to 64 of the characters A-Z a-z 0-9 _ -"));
    }
    let (Some(path), Some(file)) = (&config.path, &config.file) else {
        return Err(without_file(config));
    };
    let unwritable = |error| {
        Failure::file(error, format!("add the line `[tenants.{name}]` to the configuration"))
            .about(format_args!("cannot write `{file}`"))
    };
    let mut written = OpenOptions::new().read(true).append(true).open(path).map_err(unwritable)?;
    // Another `add` waits here, unless the file system has no locks.
    let _ = written.lock();
    let mut text = String::new();
    written.read_to_string(&mut text).map_err(unwritable)?;
    let table = toml::from_str::<toml::Table>(&text).unwrap_or_default();
    if table.get("tenants").is_some_and(|tenants| tenants.get(name).is_some()) {
        return Ok(false);
    }
    let separator = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let section = format!("{separator}\n[tenants.{name}]\n");
    if let Err(error) = toml::from_str::<toml::Table>(&format!("{text}{section}")) {
        return Err(Failure::file(error, format!("add the tenant `{name}` to `tenants` yourself"))
            .about(path.display()));
    }
    if let Err(error) = written.write_all(section.as_bytes()) {
        // Half of a section would make the whole configuration invalid.
        let _ = written.set_len(text.len() as u64);
        return Err(unwritable(error));
    }
    printer.note(format!("added `[tenants.{name}]` to `{file}`"));
    if config.found.is_some() {
        let approve = config.hint.command("approve", &[], &[]);
        printer.hint(format!("{approve} approves the file as it is now"));
    }
    Ok(true)
}

fn revoke(
    printer: &Printer,
    config: &Config,
    store: &ApiKeyStore,
    id: &str,
    json: bool,
) -> Result<ExitStatus> {
    if !store.revoke(id).map_err(failed)? {
        let message = format!("there is no key `{}`", id.escape_debug());
        let list = config.hint.command("tenant", &["list"], &[]);
        return Err(Failure::usage(message, format!("{list} shows them")));
    }
    if json {
        printer.json(&json!({ "id": id }))?;
    } else {
        printer.note(format!("the key {id} is refused from now on"));
    }
    Ok(ExitStatus::Ok)
}

fn list(printer: &Printer, config: &Config, store: &ApiKeyStore, json: bool) -> Result<ExitStatus> {
    let keys = store.list().map_err(failed)?;
    if json {
        let tenants: Vec<_> = config.tenants.keys().collect();
        let form =
            |key: &KeyInfo| json!({ "id": key.id, "tenant": key.tenant, "created": key.created });
        let keys: Vec<_> = keys.iter().map(form).collect();
        printer.json(&json!({ "tenants": tenants, "keys": keys }))?;
        return Ok(ExitStatus::Ok);
    }
    let row =
        |tenant: &str, id: &str, remark: &str| [tenant, id, remark].map(str::to_owned).to_vec();
    let of_key = |key: &KeyInfo| {
        let is_named = config.tenants.contains_key(&key.tenant);
        let remark =
            if is_named { "" } else { "not in the configuration: its requests are refused" };
        row(&key.tenant, &key.id, remark)
    };
    let mut rows: Vec<_> = keys.iter().map(of_key).collect();
    let without = config.tenants.keys().filter(|name| keys.iter().all(|key| key.tenant != **name));
    rows.extend(without.map(|name| row(name, "no key", "")));
    rows.sort();
    if rows.is_empty() {
        printer.note("there are no tenants and no keys");
        let add = config.hint.command("tenant", &["add"], &["NAME"]);
        printer.hint(format!("{add} adds a tenant and makes a key"));
    } else {
        printer.text(&table::columns(0, usize::MAX, &rows))?;
    }
    Ok(ExitStatus::Ok)
}
