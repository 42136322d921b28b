//! Lists, a page at a time, newest first.
//!
//! A page can be asked for by how many records come before it, or by the cursor that came with the
//! page before. The second costs the same at any depth, and skips nothing when records are added
//! meanwhile. A cursor names the last record of its page: when it was made, and its identifier.

use std::fmt;
use std::str::FromStr;

use sea_orm::sea_query::{Condition, Expr, ExprTrait, SimpleExpr};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select};

use super::error::StoreError;

/// Which page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    limit: u64,
    offset: u64,
    cursor: Option<Cursor>,
}

impl PageRequest {
    /// The first `limit` records, 1 to 200.
    pub fn first(limit: u64) -> Result<PageRequest, StoreError> {
        match limit {
            1..=200 => Ok(PageRequest {
                limit,
                offset: 0,
                cursor: None,
            }),
            _ => Err(StoreError::BadLimit(limit)),
        }
    }

    /// As many, but with `offset` records left out before them.
    pub fn skipping(self, offset: u64) -> PageRequest {
        PageRequest { offset, ..self }
    }

    /// As many, but after those of the page that `cursor` came with.
    pub fn after(self, cursor: Cursor) -> PageRequest {
        PageRequest {
            cursor: Some(cursor),
            ..self
        }
    }

    /// Of all rows those of the page, and one more.
    fn cut<E: EntityTrait>(&self, ordered: Select<E>) -> Select<E> {
        // An offset that is more than a database counts to is beyond every record.
        let offset = Ord::min(self.offset, i64::MAX as u64);
        ordered.limit(self.limit + 1).offset(offset)
    }
}

/// A page, and how to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// What is on it, newest first.
    pub items: Vec<T>,
    /// How many there are on all pages together.
    pub total: u64,
    /// What the next page is asked for with; none where this is the last.
    pub next: Option<Cursor>,
}

/// Where a page ended. Its text is for giving back, not for reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    pub(super) list: String,
    pub(super) at: i64,
    pub(super) id: String,
}

/// Of the text. Another way to write it down gets another mark, and old cursors a clean refusal.
const MARK: &str = "c1";

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = format!("{}\n{}\n{}", self.list, self.at, self.id);
        let sum = sum(inner.as_bytes());
        f.write_str(MARK)?;
        for byte in inner.bytes().chain(sum.to_be_bytes()) {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl FromStr for Cursor {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Cursor, StoreError> {
        parse(text).ok_or(StoreError::BadCursor)
    }
}

fn parse(text: &str) -> Option<Cursor> {
    const MOST: usize = 4096;
    let digits = text.strip_prefix(MARK)?.as_bytes();
    if digits.len() > MOST || digits.iter().any(u8::is_ascii_uppercase) {
        return None;
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let whole = digits.len().is_multiple_of(2);
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    let bytes = bytes.filter(|_| whole)?;
    let (inner, given) = bytes.split_last_chunk::<4>()?;
    if sum(inner) != u32::from_be_bytes(*given) {
        return None;
    }
    let inner = std::str::from_utf8(inner).ok()?;
    // No identifier has one, and not every database can be asked for it.
    if inner.contains('\0') {
        return None;
    }
    let (list, rest) = inner.split_once('\n')?;
    let (at, id) = rest.split_once('\n')?;
    Some(Cursor {
        list: list.to_owned(),
        at: at.parse().ok()?,
        id: id.to_owned(),
    })
}

/// FNV-1a: tells a typing error from a cursor. Whoever forges one gets another page of what they
/// may read anyhow.
pub(super) fn sum(bytes: &[u8]) -> u32 {
    let mix = |sum: u32, byte: &u8| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    bytes.iter().fold(0x811c_9dc5, mix)
}

/// How a list is ordered, and what its cursors are called.
pub(super) struct Order<C> {
    pub list: &'static str,
    pub at: C,
    pub id: C,
}

/// How a list's identifiers look as values.
pub(super) trait CursorId: fmt::Display + Sized {
    fn value(text: &str) -> Option<SimpleExpr>;
}

impl CursorId for String {
    fn value(text: &str) -> Option<SimpleExpr> {
        Some(Expr::value(text))
    }
}

impl CursorId for i64 {
    fn value(text: &str) -> Option<SimpleExpr> {
        text.parse::<i64>().ok().map(Expr::value)
    }
}

/// How a list is ordered whose records have no age: by name. Its cursors tell no time.
pub(super) struct ByName<C> {
    pub list: &'static str,
    pub name: C,
}

impl<C: ColumnTrait> ByName<C> {
    /// The rows of a page, and one more, by which it is known whether there is another page.
    pub(super) fn page<E: EntityTrait<Column = C>>(
        &self,
        select: Select<E>,
        request: &PageRequest,
    ) -> Result<Select<E>, StoreError> {
        let select = match &request.cursor {
            Some(cursor) if cursor.list != self.list => return Err(StoreError::BadCursor),
            Some(cursor) => select.filter(self.name.gt(cursor.id.as_str())),
            None => select,
        };
        Ok(request.cut(select.order_by_asc(self.name)))
    }

    /// Makes a page of the rows; `name` tells where each stands in the order.
    pub(super) fn assemble<R, T>(
        &self,
        rows: Vec<R>,
        total: u64,
        request: &PageRequest,
        name: impl Fn(&R) -> String,
        read: impl FnMut(R) -> Result<T, StoreError>,
    ) -> Result<Page<T>, StoreError> {
        assemble(self.list, rows, total, request, |row| (0, name(row)), read)
    }
}

impl<C: ColumnTrait> Order<C> {
    /// The rows of a page, and one more, by which it is known whether there is another page.
    pub(super) fn page<E: EntityTrait<Column = C>, I: CursorId>(
        &self,
        select: Select<E>,
        request: &PageRequest,
    ) -> Result<Select<E>, StoreError> {
        let select = match &request.cursor {
            Some(cursor) => select.filter(self.beyond::<I>(cursor)?),
            None => select,
        };
        let ordered = select.order_by_desc(self.at).order_by_desc(self.id);
        Ok(request.cut(ordered))
    }

    /// Written so that all three databases walk an index: MySQL does not do so for a comparison of
    /// pairs.
    fn beyond<I: CursorId>(&self, cursor: &Cursor) -> Result<Condition, StoreError> {
        if cursor.list != self.list {
            return Err(StoreError::BadCursor);
        }
        let id = I::value(&cursor.id).ok_or(StoreError::BadCursor)?;
        let before = Condition::any()
            .add(self.at.lt(cursor.at))
            .add(Expr::col(self.id.as_column_ref()).lt(id));
        Ok(Condition::all().add(self.at.lte(cursor.at)).add(before))
    }

    /// Makes a page of the rows; `key` tells where each stands in the order.
    pub(super) fn assemble<R, T, I: CursorId>(
        &self,
        rows: Vec<R>,
        total: u64,
        request: &PageRequest,
        key: impl Fn(&R) -> (i64, I),
        read: impl FnMut(R) -> Result<T, StoreError>,
    ) -> Result<Page<T>, StoreError> {
        assemble(self.list, rows, total, request, key, read)
    }
}

fn assemble<R, T, I: CursorId>(
    list: &str,
    mut rows: Vec<R>,
    total: u64,
    request: &PageRequest,
    key: impl Fn(&R) -> (i64, I),
    read: impl FnMut(R) -> Result<T, StoreError>,
) -> Result<Page<T>, StoreError> {
    let limit = usize::try_from(request.limit).unwrap_or(usize::MAX);
    let more = rows.len() > limit;
    rows.truncate(limit);
    let last = rows.last().filter(|_| more).map(key);
    let next = last.map(|(at, id)| Cursor {
        list: list.to_owned(),
        at,
        id: id.to_string(),
    });
    let items: Result<Vec<T>, StoreError> = rows.into_iter().map(read).collect();
    Ok(Page {
        items: items?,
        total,
        next,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cursor() -> Cursor {
        Cursor {
            list: "sessions".to_owned(),
            at: 1_754_000_000_123_456,
            id: "sess_abcdefghijklmnop".to_owned(),
        }
    }

    proptest! {
        #[test]
        fn a_cursor_reads_as_it_is_written(at: i64, id in "[^\\x00]{0,64}") {
            let cursor = Cursor { at, id, ..cursor() };
            prop_assert_eq!(cursor.to_string().parse::<Cursor>().unwrap(), cursor);
        }

        #[test]
        fn any_other_text_is_refused(text in ".{0,80}") {
            prop_assert!(matches!(text.parse::<Cursor>(), Err(StoreError::BadCursor)));
        }

        #[test]
        fn a_changed_digit_is_noticed(place in 2usize..80, digit in "[0-9a-f]") {
            let text = cursor().to_string();
            let mut changed = text.clone();
            let place = place.min(text.len() - 1);
            changed.replace_range(place..=place, &digit);
            prop_assert!(changed == text || changed.parse::<Cursor>().is_err());
        }
    }

    #[test]
    fn a_cursor_that_no_database_takes_is_refused() {
        let id = "sess_\0".to_owned();
        let forged = Cursor { id, ..cursor() }.to_string();
        assert!(matches!(
            forged.parse::<Cursor>(),
            Err(StoreError::BadCursor)
        ));
    }

    #[test]
    fn a_page_has_1_to_200_records() {
        for limit in [0, 201, u64::MAX] {
            let error = PageRequest::first(limit).unwrap_err().to_string();
            assert_eq!(error, format!("limit {limit} is not between 1 and 200"));
        }
        assert!(PageRequest::first(1).is_ok() && PageRequest::first(200).is_ok());
    }
}
