//! What the configuration file says.
//!
//! A key that is not ours is an error naming file, line and key: a typo that silently did nothing would
//! be worse.

use std::io;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::error::SettingError;
use super::raw::{Origin, Raw, secret_in};
use super::setting::{Kind, SETTINGS, Setting};

/// Reads the file at `path`, which must be there.
pub(super) fn read(path: &Path) -> Result<Raw, SettingError> {
    let text = std::fs::read_to_string(path).map_err(|source| unread(path, source))?;
    let mut reading = Reading {
        path,
        text: &text,
        raw: Raw::default(),
    };
    let table = DeTable::parse(&text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        reading.wrong(at, error.message().replace('\n', " "))
    })?;
    reading.table("", table.get_ref())?;
    Ok(reading.raw)
}

fn unread(path: &Path, source: io::Error) -> SettingError {
    SettingError::Read {
        path: path.to_owned(),
        source,
    }
}

struct Reading<'a> {
    path: &'a Path,
    text: &'a str,
    raw: Raw,
}

impl Reading<'_> {
    fn table(&mut self, prefix: &str, table: &DeTable<'_>) -> Result<(), SettingError> {
        for (key, value) in table {
            let name = match prefix {
                "" => key.get_ref().to_string(),
                prefix => format!("{prefix}.{}", key.get_ref()),
            };
            match value.get_ref() {
                DeValue::Table(below) if is_table(&name) => self.table(&name, below)?,
                _ => self.setting(&name, key, value)?,
            }
        }
        Ok(())
    }

    fn setting(
        &mut self,
        name: &str,
        key: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), SettingError> {
        let at = key.span().start;
        let is_it = |setting: &&Setting| setting.name == name || setting.is_file_name(name);
        let Some(setting) = SETTINGS.iter().find(is_it) else {
            return Err(self.wrong(at, unknown(name)));
        };
        let texts = texts(setting, value.get_ref());
        let texts = texts.map_err(|problem| self.wrong(at, format!("{name}: {problem}")))?;
        if self.raw.get(setting.which).is_some() {
            let both = (setting.name.to_owned(), format!("{}_file", setting.name));
            return Err(SettingError::Twice(both.0, both.1));
        }
        let origin = Origin::File(self.path.to_owned(), self.line(at));
        let texts = match setting.kind {
            Kind::Secret if setting.is_file_name(name) => vec![self.secret(setting, at, &texts)?],
            Kind::Secret => {
                self.raw.secrets_in = Some(self.path.to_owned());
                texts
            }
            Kind::One | Kind::Many => texts,
        };
        self.raw.give(setting.which, texts, origin);
        Ok(())
    }

    fn secret(
        &self,
        setting: &'static Setting,
        at: usize,
        texts: &[String],
    ) -> Result<String, SettingError> {
        let path = PathBuf::from(texts.first().cloned().unwrap_or_default());
        secret_in(&path).map_err(|source| SettingError::SecretFile {
            name: setting.name,
            origin: Origin::File(self.path.to_owned(), self.line(at)),
            path,
            source,
        })
    }

    fn wrong(&self, at: usize, message: String) -> SettingError {
        SettingError::Parse {
            path: self.path.to_owned(),
            line: self.line(at),
            message,
        }
    }

    fn line(&self, at: usize) -> usize {
        let before = self.text.get(..at).unwrap_or_default();
        1 + before.matches('\n').count()
    }
}

/// Are there settings below this name?
fn is_table(name: &str) -> bool {
    let mut tables = SETTINGS
        .iter()
        .filter_map(|setting| setting.name.split_once('.'));
    tables.any(|(table, _)| table == name)
}

/// Names what could have been meant: the settings of that table, or of the top.
fn unknown(name: &str) -> String {
    let table = |name: &'_ str| name.rsplit_once('.').map(|(table, _)| table.to_owned());
    let beside = SETTINGS
        .iter()
        .filter(|setting| table(setting.name) == table(name));
    let beside: Vec<String> = beside
        .map(|setting| format!("`{}`", setting.name))
        .collect();
    match beside.is_empty() {
        true => format!("unknown key `{name}`"),
        false => format!(
            "unknown key `{name}`, expected one of {}",
            beside.join(", ")
        ),
    }
}

/// A value as it would be written on the command line.
fn texts(setting: &Setting, value: &DeValue<'_>) -> Result<Vec<String>, String> {
    match (setting.kind, value) {
        (Kind::Many, DeValue::Array(items)) => {
            let items = items.iter().map(|item| text(item.get_ref()));
            items.collect()
        }
        (_, value) => Ok(vec![text(value)?]),
    }
}

fn text(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
        DeValue::Boolean(is_on) => Ok(if *is_on { "on" } else { "off" }.to_owned()),
        other => Err(format!(
            "a text or a number belongs here, not a value of type {}",
            other.type_str()
        )),
    }
}
