//! Whether new packs put other contents under the ids of objects that the source has.
//!
//! Git looks for an object in its packs first, finds it by what a pack's index claims, and does not verify
//! what it reads. So a new pack with the id of a standing object replaces it. What a fetch completes its
//! pack with (`index-pack --fix-thin`) is such an object, too, but stored whole: then its id is computed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use sandbox_model::{EntryKind, RelPath};

use super::config::parse;
use super::named::{listed, read};
use crate::side::Side;
use crate::tree::Tree;

/// The largest index that is read of a new pack: some nine million objects.
const LARGEST_INDEX: u64 = 256 << 20;
/// The most bytes that are hashed to verify objects.
const MOST_HASHED: u64 = 256 << 20;
/// The most other places that a repository takes objects from.
const MOST_ALTERNATES: usize = 100;

/// Could a pack that `after` has, and the source has not, replace an object of the repository at `dir`?
pub(super) fn replaces_objects(source: &Tree, after: &dyn Side, dir: &RelPath) -> io::Result<bool> {
    let packs = dir.join(b"objects").join(b"pack");
    let is_directory = |found: sandbox_model::Fingerprint| found.entry.kind == EntryKind::Directory;
    if !after.stat(&packs)?.is_some_and(is_directory) {
        return Ok(false);
    }
    let mut new = BTreeSet::new();
    for name in after.list(&packs)? {
        let stem = name.strip_suffix(b".idx").or(name.strip_suffix(b".pack"));
        if let Some(stem) = stem
            && !stands(source, &packs, stem)?
        {
            new.insert(stem.to_vec());
        }
    }
    if new.is_empty() {
        return Ok(false);
    }
    let repository = dir.under(source.path());
    let format = Format::of(&repository);
    let standing = Standing::of(&repository.join("objects"));
    let mut budget = MOST_HASHED;
    for stem in new {
        let file = |ending: &[u8]| after.open(&packs.join(&[&stem, ending].concat()));
        let (Ok(index), Ok(pack)) = (file(b".idx"), file(b".pack")) else {
            return Ok(true);
        };
        let Some(index) = Index::read(index, format)? else {
            return Ok(true);
        };
        if !index.is_of(&pack)? {
            return Ok(true);
        }
        let Some(known) = standing.among(&index) else {
            return Ok(true);
        };
        for at in known {
            if !index.holds_genuine(at, &pack, &mut budget) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Has the source the pack of that name, or its index?
pub(super) fn stands(source: &Tree, packs: &RelPath, stem: &[u8]) -> io::Result<bool> {
    for ending in [&b".idx"[..], b".pack"] {
        if source
            .stat(&packs.join(&[stem, ending].concat()))?
            .is_some()
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How object ids are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Sha1,
    Sha256,
}

impl Format {
    fn of(repository: &Path) -> Format {
        let settings = parse(&read(&repository.join("config")).unwrap_or_default());
        let is_sha256 = settings.iter().any(|setting| {
            setting.section == b"extensions"
                && setting.key == b"objectformat"
                && setting.value.eq_ignore_ascii_case(b"sha256")
        });
        match is_sha256 {
            true => Format::Sha256,
            false => Format::Sha1,
        }
    }

    const fn length(self) -> usize {
        match self {
            Format::Sha1 => 20,
            Format::Sha256 => 32,
        }
    }
}

/// The index of a pack. The ids are sorted, so each is there once.
struct Index {
    format: Format,
    bytes: Vec<u8>,
    layout: Layout,
}

#[derive(Clone, Copy)]
struct Layout {
    version: u32,
    count: usize,
}

/// The beginning of an index of version 2; the first version begins with the table.
const MAGIC: [u8; 8] = *b"\xfftOc\0\0\0\x02";
const TABLE: usize = 256 * 4;

impl Index {
    /// `None` if it is not one, or too large.
    fn read(file: File, format: Format) -> io::Result<Option<Index>> {
        let mut bytes = Vec::new();
        file.take(LARGEST_INDEX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST_INDEX {
            return Ok(None);
        }
        let Some(layout) = Layout::of(&bytes) else {
            return Ok(None);
        };
        let index = Index {
            format,
            bytes,
            layout,
        };
        Ok(index.is_whole().then_some(index))
    }

    fn is_whole(&self) -> bool {
        let (length, count) = (self.format.length(), self.layout.count);
        let (fixed, each) = match self.layout.version {
            1 => (TABLE + 2 * length, 4 + length),
            _ => (MAGIC.len() + TABLE + 2 * length, length + 8),
        };
        let rest = count
            .checked_mul(each)
            .and_then(|entries| self.bytes.len().checked_sub(fixed)?.checked_sub(entries));
        // Offsets of large packs have a table of their own.
        let fits = match (rest, self.layout.version) {
            (Some(0), _) => true,
            (Some(rest), 2) => rest % 8 == 0 && rest / 8 <= count,
            _ => false,
        };
        fits && self.is_sorted()
    }

    fn is_sorted(&self) -> bool {
        let start = self.layout.table_start();
        let table = &self.bytes[start..start + TABLE];
        let mut counts = [0_u32; 256];
        for at in 0..self.layout.count {
            if at > 0 && self.id(at - 1) >= self.id(at) {
                return false;
            }
            counts[usize::from(self.id(at)[0])] += 1;
        }
        let mut total = 0;
        counts
            .iter()
            .zip(table.chunks_exact(4))
            .all(|(count, sum)| {
                total += count;
                sum == total.to_be_bytes()
            })
    }

    fn id(&self, at: usize) -> &[u8] {
        let length = self.format.length();
        let start = self.layout.table_start() + TABLE;
        let start = match self.layout.version {
            1 => start + at * (4 + length) + 4,
            _ => start + at * length,
        };
        &self.bytes[start..start + length]
    }

    /// Where the object begins in the pack.
    fn offset(&self, at: usize) -> Option<u64> {
        let (length, count) = (self.format.length(), self.layout.count);
        let start = self.layout.table_start() + TABLE;
        if self.layout.version == 1 {
            return Some(number(&self.bytes, start + at * (4 + length))?.into());
        }
        let offsets = start + count * (length + 4);
        let offset = number(&self.bytes, offsets + at * 4)?;
        if offset < 1 << 31 {
            return Some(offset.into());
        }
        let large = offsets + count * 4 + (offset & !(1 << 31)) as usize * 8;
        let (high, low) = (number(&self.bytes, large)?, number(&self.bytes, large + 4)?);
        // Behind the table are two digests.
        (large + 8 + 2 * length <= self.bytes.len())
            .then_some(u64::from(high) << 32 | u64::from(low))
    }

    /// Is it of this pack?
    fn is_of(&self, pack: &File) -> io::Result<bool> {
        let length = self.format.length();
        let size = pack.metadata()?.len();
        let mut head = [0; 12];
        let mut digest = vec![0; length];
        let Some(end) = size.checked_sub(length as u64) else {
            return Ok(false);
        };
        if pack.read_exact_at(&mut head, 0).is_err()
            || pack.read_exact_at(&mut digest, end).is_err()
        {
            return Ok(false);
        }
        let wanted = self.bytes.len() - 2 * length..self.bytes.len() - length;
        Ok(head.starts_with(b"PACK")
            && number(&head, 8).map(|count| count as usize) == Some(self.layout.count)
            && digest == self.bytes[wanted])
    }

    /// Has the pack the object that its index claims at `at`, and stored whole?
    fn holds_genuine(&self, at: usize, pack: &File, budget: &mut u64) -> bool {
        let computed = self
            .offset(at)
            .and_then(|offset| computed_id(self.format, pack, offset, budget));
        computed.is_some_and(|id| id == self.id(at))
    }

    /// Where `id` is.
    fn find(&self, id: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.layout.count);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.id(middle).cmp(id) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(middle),
            }
        }
        None
    }
}

impl Layout {
    fn of(head: &[u8]) -> Option<Layout> {
        let version = match head.starts_with(&MAGIC) {
            true => 2,
            false => 1,
        };
        // Of neither version, and of one that git does not know.
        if version == 1 && head.starts_with(&MAGIC[..4]) {
            return None;
        }
        let layout = Layout { version, count: 0 };
        let count = number(head, layout.table_start() + TABLE - 4)?;
        Some(Layout {
            count: usize::try_from(count).ok()?,
            ..layout
        })
    }

    const fn table_start(self) -> usize {
        match self.version {
            1 => 0,
            _ => MAGIC.len(),
        }
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

/// The id of the object at `offset` of `pack`; `None` if it is not stored whole, or not within the budget.
fn computed_id(format: Format, pack: &File, offset: u64, budget: &mut u64) -> Option<Vec<u8>> {
    let mut file = pack.try_clone().ok()?;
    file.seek(SeekFrom::Start(offset)).ok()?;
    let mut file = BufReader::new(file);
    let mut next = || -> Option<u8> {
        let mut byte = [0];
        file.read_exact(&mut byte).ok()?;
        Some(byte[0])
    };
    let first = next()?;
    let kind = match first >> 4 & 7 {
        1 => "commit",
        2 => "tree",
        3 => "blob",
        4 => "tag",
        _ => return None,
    };
    let mut size = u64::from(first & 15);
    let (mut shift, mut more) = (4, first & 0x80 != 0);
    while more {
        let byte = next()?;
        size |= u64::from(byte & 0x7f).checked_shl(shift)?;
        (shift, more) = (shift + 7, byte & 0x80 != 0);
    }
    *budget = budget.checked_sub(size)?;
    let head = format!("{kind} {size}\0");
    let contents = flate2::bufread::ZlibDecoder::new(file).take(size.checked_add(1)?);
    match format {
        Format::Sha1 => digest::<sha1::Sha1>(head.as_bytes(), contents, size),
        Format::Sha256 => digest::<sha2::Sha256>(head.as_bytes(), contents, size),
    }
}

fn digest<D: sha1::Digest>(head: &[u8], mut contents: impl Read, size: u64) -> Option<Vec<u8>> {
    let mut hasher = D::new();
    hasher.update(head);
    let mut buffer = vec![0; 64 << 10];
    let mut total = 0;
    loop {
        match contents.read(&mut buffer).ok()? {
            0 => break,
            count => {
                hasher.update(&buffer[..count]);
                total += count as u64;
            }
        }
    }
    (total == size).then(|| hasher.finalize().to_vec())
}

/// Where the objects of the source are: its own and those of its alternates.
struct Standing {
    stores: Vec<PathBuf>,
}

impl Standing {
    fn of(objects: &Path) -> Standing {
        let mut stores = vec![objects.to_owned()];
        let mut at = 0;
        while at < stores.len() && stores.len() < MOST_ALTERNATES {
            let text = read(&stores[at].join("info/alternates")).unwrap_or_default();
            for line in text.split(|byte| *byte == b'\n') {
                let line = line.trim_ascii_end();
                let store = stores[at].join(OsStr::from_bytes(line));
                if !line.is_empty() && !line.starts_with(b"#") && !stores.contains(&store) {
                    stores.push(store);
                }
            }
            at += 1;
        }
        Standing { stores }
    }

    /// Which objects of a new pack are there already; `None` if that cannot be found out.
    fn among(&self, index: &Index) -> Option<BTreeSet<usize>> {
        let mut known = BTreeSet::new();
        for store in &self.stores {
            for file in listed(&store.join("pack")) {
                if file.extension() == Some(OsStr::new("idx")) {
                    known.extend(packed(&file, index)?);
                }
            }
            for dir in listed(store) {
                let first = dir.file_name().and_then(|name| byte(name.as_bytes()));
                if first.is_some_and(|first| index.has_any(first)) {
                    known.extend(loose(&dir, index));
                }
            }
        }
        Some(known)
    }
}

impl Index {
    /// Begins an id with this byte?
    fn has_any(&self, first: u8) -> bool {
        let start = self.layout.table_start();
        let sum = |at: usize| number(&self.bytes, start + at * 4);
        let before = match first {
            0 => Some(0),
            first => sum(usize::from(first) - 1),
        };
        before != sum(usize::from(first))
    }
}

/// Which objects of `index` the standing index at `file` has, too. Both are sorted.
fn packed(file: &Path, index: &Index) -> Option<Vec<usize>> {
    let length = index.format.length();
    let mut file = BufReader::with_capacity(1 << 20, File::open(file).ok()?);
    let mut head = vec![0; MAGIC.len() + TABLE];
    file.read_exact(&mut head).ok()?;
    let layout = Layout::of(&head)?;
    let skipped = match layout.version {
        1 => 4,
        _ => 0,
    };
    file.seek(SeekFrom::Start((layout.table_start() + TABLE) as u64))
        .ok()?;
    let mut known = Vec::new();
    let mut at = 0;
    let mut entry = vec![0; skipped + length];
    for _ in 0..layout.count {
        file.read_exact(&mut entry).ok()?;
        let id = &entry[skipped..];
        while at < index.layout.count && index.id(at) < id {
            at += 1;
        }
        if at == index.layout.count {
            break;
        }
        if index.id(at) == id {
            known.push(at);
        }
    }
    Some(known)
}

/// Which objects of `index` stand by themselves in `dir`.
fn loose(dir: &Path, index: &Index) -> Vec<usize> {
    let first = dir.file_name().map(OsStr::as_bytes).unwrap_or_default();
    let found = listed(dir).into_iter().filter_map(|file| {
        let name = [first, file.file_name()?.as_bytes()].concat();
        let id: Option<Vec<u8>> = name.chunks(2).map(byte).collect();
        index.find(&id?)
    });
    found.collect()
}

/// The byte that two hexadecimal digits stand for.
fn byte(digits: &[u8]) -> Option<u8> {
    match digits {
        [high, low] => {
            let digit = |digit: &u8| char::from(*digit).to_digit(16);
            u8::try_from(digit(high)? << 4 | digit(low)?).ok()
        }
        _ => None,
    }
}
