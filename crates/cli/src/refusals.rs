//! The connections a sandbox was refused, kept over its runs in `ROOT/NAME/refused.json`.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::FlockOperation;
use sandbox_isolation::network::Refused;
use sandbox_workspace::Sandbox;

const FILE: &str = "refused.json";

/// The most that are kept; the oldest stay, new ones beyond are counted in this run's report only.
const MOST: usize = 1000;

/// Everything refused so far.
pub(crate) fn read(sandbox: &Sandbox) -> Vec<Refused> {
    let text = std::fs::read(sandbox.dir.join(FILE)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Adds what one run was refused.
pub(crate) fn add(sandbox: &Sandbox, refused: &[Refused]) -> io::Result<()> {
    if refused.is_empty() {
        return Ok(());
    }
    let mut options = File::options();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600);
    let mut file = options.open(sandbox.dir.join(FILE))?;
    // Two runs may end at once.
    rustix::io::retry_on_intr(|| rustix::fs::flock(&file, FlockOperation::LockExclusive))?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    let mut known: Vec<Refused> = serde_json::from_slice(&text).unwrap_or_default();
    merge(&mut known, refused);
    let text = serde_json::to_vec(&known)?;
    file.rewind()?;
    file.write_all(&text)?;
    file.set_len(text.len() as u64)
}

fn merge(known: &mut Vec<Refused>, new: &[Refused]) {
    for refused in new {
        let same = known
            .iter()
            .position(|old| old.target == refused.target && old.reason == refused.reason);
        match same {
            Some(at) => known[at].count = known[at].count.saturating_add(refused.count),
            None if known.len() < MOST => known.push(refused.clone()),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(target: &str, count: u32) -> Refused {
        Refused {
            target: target.into(),
            reason: "not allowed".into(),
            count,
        }
    }

    #[test]
    fn refusals_of_one_target_add_up() {
        let mut known = vec![refused("a:1", 1)];
        merge(&mut known, &[refused("b:1", 2), refused("a:1", 3)]);
        assert_eq!(known, [refused("a:1", 4), refused("b:1", 2)]);
    }

    #[test]
    fn the_record_is_bounded() {
        let mut known = Vec::new();
        let many: Vec<_> = (0..2 * MOST).map(|n| refused(&n.to_string(), 1)).collect();
        merge(&mut known, &many);
        assert_eq!(known.len(), MOST);
    }
}
