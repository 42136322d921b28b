//! What the environment says.

use std::ffi::OsString;
use std::path::PathBuf;

use super::error::SettingError;
use super::raw::{Origin, Raw, secret_in};
use super::setting::{Kind, SETTINGS, Setting};

/// Reads every variable of the table, and the files that `NAME_FILE` names.
pub(super) fn read(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Raw, SettingError> {
    let mut raw = Raw::default();
    for setting in SETTINGS {
        for name in setting.variables {
            let plain = match variable(name) {
                Some(value) => Some(text(name, value)?),
                None => None,
            };
            let in_file = match setting.kind {
                Kind::Secret => secret(setting, name, variable)?,
                _ => None,
            };
            let (value, origin) = match (plain, in_file) {
                (Some(_), Some((_, from))) => {
                    return Err(SettingError::Twice((*name).to_owned(), from));
                }
                (Some(value), None) => (value, (*name).to_owned()),
                (None, Some((value, from))) => (value, from),
                (None, None) => continue,
            };
            let texts = match setting.kind {
                Kind::Many => split(&value),
                _ => vec![value],
            };
            raw.give(setting.which, texts, Origin::Environment(origin));
            break;
        }
    }
    Ok(raw)
}

/// The secret in the file that `NAME_FILE` names, and that variable's name.
fn secret(
    setting: &'static Setting,
    name: &str,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Option<(String, String)>, SettingError> {
    let from = format!("{name}_FILE");
    let Some(path) = variable(&from).map(PathBuf::from) else {
        return Ok(None);
    };
    match secret_in(&path) {
        Ok(secret) => Ok(Some((secret, from))),
        Err(source) => Err(SettingError::SecretFile {
            name: setting.name,
            origin: Origin::Environment(from),
            path,
            source,
        }),
    }
}

pub(super) fn text(name: &str, value: OsString) -> Result<String, SettingError> {
    let text = value.into_string();
    text.map_err(|_| SettingError::NotText(name.to_owned()))
}

fn split(list: &str) -> Vec<String> {
    let items = list.split(',').map(str::trim);
    let named = items.filter(|item| !item.is_empty());
    named.map(str::to_owned).collect()
}
