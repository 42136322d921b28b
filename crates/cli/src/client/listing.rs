//! Lists that come in pages.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::connection::Client;
use super::error::ClientError;
use super::request::Request;
use crate::quoting::quoted;
use crate::report::plain;

/// Which part of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
pub(crate) struct Paging {
    /// How many, 1 to 200 [50]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) limit: Option<u64>,

    /// How many to leave out first
    #[arg(long, value_name = "NUMBER", conflicts_with = "cursor")]
    pub(crate) offset: Option<u32>,

    /// Where the page before this one ended, as it said
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,

    /// All of them, page after page
    #[arg(long, short)]
    pub(crate) all: bool,
}

/// A list, or a part of it, as the server tells it.
#[derive(Debug)]
pub(crate) struct Listing {
    field: &'static str,
    /// What else the answer says.
    beside: BTreeMap<String, Box<RawValue>>,
    items: Vec<Box<RawValue>>,
    next: Option<String>,
    server: String,
}

/// Asks for a page, or for all of them. The items are in `field` of each answer.
pub(crate) fn listing(
    client: &Client,
    request: &Request,
    field: &'static str,
    paging: &Paging,
) -> Result<Listing, ClientError> {
    let request = request
        .clone()
        .query("limit", paging.limit.or(paging.all.then_some(200)))
        .query("offset", paging.offset);
    let mut listing = page(client, &request, field, paging.cursor.as_deref())?;
    while paging.all
        && let Some(cursor) = listing.next.take()
    {
        let mut request = request.clone();
        request.query.retain(|(name, _)| *name != "offset");
        let more = page(client, &request, field, Some(&cursor))?;
        listing.items.extend(more.items);
        listing.next = more.next;
        listing.beside = more.beside;
    }
    Ok(listing)
}

fn page(
    client: &Client,
    request: &Request,
    field: &'static str,
    cursor: Option<&str>,
) -> Result<Listing, ClientError> {
    let answer = client.send(&request.clone().query("cursor", cursor))?;
    let mut beside: BTreeMap<String, Box<RawValue>> = answer.read()?;
    let part = |value: Option<&Box<RawValue>>| {
        value.map_or_else(|| "null".to_owned(), |value| value.get().to_owned())
    };
    let items = part(beside.remove(field).as_ref());
    let next = part(beside.get("next_cursor"));
    Ok(Listing {
        field,
        items: answer.understand(items.as_bytes())?,
        next: answer.understand(next.as_bytes())?,
        beside,
        server: client.server(),
    })
}

impl Listing {
    /// The items, understood.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<Vec<T>, ClientError> {
        let items = self.items.iter();
        let items: Result<_, _> = items.map(|item| serde_json::from_str(item.get())).collect();
        items.map_err(|source| ClientError::Unreadable {
            server: self.server.clone(),
            source,
        })
    }

    /// How the rest is asked for, where there is one. A cursor may be a file's name, which code chose: it is
    /// written so that it can be pasted, whatever is in it and even if it starts with a dash.
    pub(crate) fn rest(&self) -> Option<String> {
        let cursor = self.next.as_ref()?;
        let total = self.beside.get("total");
        let of = total.map_or_else(String::new, |total| format!(" of {}", plain(total.get())));
        Some(format!(
            "{}{of} shown; --all shows the rest, --cursor={} the next page",
            self.items.len(),
            quoted(cursor)
        ))
    }

    /// The whole as one JSON object, each item as the server wrote it.
    pub(crate) fn into_json(self) -> Result<Vec<u8>, ClientError> {
        let unreadable = |source| ClientError::Unreadable {
            server: self.server.clone(),
            source,
        };
        let mut whole = self.beside;
        let items = serde_json::value::to_raw_value(&self.items).map_err(unreadable)?;
        whole.insert(self.field.to_owned(), items);
        serde_json::to_vec(&whole).map_err(unreadable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(next: Option<&str>) -> Listing {
        Listing {
            field: "files",
            beside: BTreeMap::new(),
            items: Vec::new(),
            next: next.map(str::to_owned),
            server: String::new(),
        }
    }

    #[test]
    fn the_rest_can_be_pasted_and_does_nothing_to_a_terminal() {
        let rest = |next| listing(Some(next)).rest().unwrap();
        assert_eq!(
            rest("sess_0123"),
            "0 shown; --all shows the rest, --cursor=sess_0123 the next page"
        );
        for (cursor, told) in [
            ("-rf", "--cursor=-rf the"),
            ("a; reboot", "--cursor='a; reboot' the"),
            ("\u{1b}]0;x\u{7}", "--cursor=$'\\x1b]0;x\\x07' the"),
        ] {
            let rest = rest(cursor);
            assert!(rest.contains(told), "{rest:?}");
            assert!(!rest.chars().any(char::is_control), "{rest:?}");
        }
        assert_eq!(listing(None).rest(), None);
    }
}
