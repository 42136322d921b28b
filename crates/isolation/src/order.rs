//! What a sandbox that was made ahead is to run, as it is sent to it.
//!
//! Plain bytes, because it is read by a process that is about to become somebody else's program: each
//! text with its length before it, the command's words, then the environment, then the directory.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// The longest an order can be: two texts as long as Linux takes them, and what is around.
pub const MOST: usize = 288 << 10;

/// A command for a sandbox that waits for one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Order {
    /// The program, looked up in `PATH`, and its arguments.
    pub command: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory.
    pub cwd: PathBuf,
    /// Where a descriptor beside the three usual ones is told by number: a variable's name.
    pub extra: Option<OsString>,
}

impl Order {
    /// The order as bytes.
    pub(crate) fn encode(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let count = |number: usize| -> io::Result<Vec<u8>> {
            let number = u32::try_from(number).map_err(|_| too_long())?;
            Ok(number.to_le_bytes().to_vec())
        };
        bytes.extend(count(self.command.len())?);
        bytes.extend(count(self.env.len())?);
        let pairs = self.env.iter().flat_map(|(name, value)| [name, value]);
        let rest = [self.cwd.as_os_str().to_owned()];
        let extra = self.extra.clone().unwrap_or_default();
        let texts = self
            .command
            .iter()
            .chain(pairs)
            .chain(&rest)
            .chain([&extra]);
        for text in texts {
            bytes.extend(count(text.len())?);
            bytes.extend(text.as_bytes());
        }
        if bytes.len() > MOST {
            return Err(too_long());
        }
        Ok(bytes)
    }

    /// The order that `bytes` are; none where they are not one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Order> {
        let mut rest = bytes;
        let (words, variables) = (number(&mut rest)?, number(&mut rest)?);
        let command = (0..words).map(|_| text(&mut rest)).collect::<Option<_>>()?;
        let pair = |_| Some((text(&mut rest)?, text(&mut rest)?));
        let env = (0..variables).map(pair).collect::<Option<_>>()?;
        let cwd = PathBuf::from(text(&mut rest)?);
        let extra = Some(text(&mut rest)?).filter(|name| !name.is_empty());
        rest.is_empty().then_some(Order {
            command,
            env,
            cwd,
            extra,
        })
    }
}

fn too_long() -> io::Error {
    io::Error::from(rustix::io::Errno::TOOBIG)
}

fn number(rest: &mut &[u8]) -> Option<usize> {
    let (number, after) = rest.split_first_chunk::<4>()?;
    *rest = after;
    usize::try_from(u32::from_le_bytes(*number)).ok()
}

fn text(rest: &mut &[u8]) -> Option<OsString> {
    let length = number(rest)?;
    let (text, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(OsString::from_vec(text.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_text() -> impl Strategy<Value = OsString> {
        prop::collection::vec(1u8.., 0..20).prop_map(OsString::from_vec)
    }

    proptest! {
        #[test]
        fn what_is_sent_is_read(
            command in prop::collection::vec(any_text(), 0..5),
            env in prop::collection::vec((any_text(), any_text()), 0..5),
            cwd in any_text(),
            extra in prop::option::of("[A-Z]{1,9}"),
        ) {
            let extra = extra.map(OsString::from);
            let order = Order { command, env, cwd: cwd.into(), extra };
            let bytes = order.encode().unwrap();
            prop_assert_eq!(Order::decode(&bytes), Some(order));
        }

        #[test]
        fn nothing_else_is_taken_for_an_order(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Some(order) = Order::decode(&bytes) {
                prop_assert_eq!(order.encode().unwrap(), bytes);
            }
        }
    }

    #[test]
    fn one_that_does_not_fit_is_refused() {
        let order = Order {
            command: vec!["x".repeat(MOST).into()],
            ..Order::default()
        };
        assert!(order.encode().is_err());
    }
}
