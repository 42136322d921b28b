//! Copies a tree, for timing against other copiers: `copy_tree FROM TO`.

use std::path::Path;

use sandbox_workspace::progress::Silent;
use sandbox_workspace::transfer::copy_tree_recorded;
use sandbox_workspace::tree::Tree;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(from), Some(to)) = (arguments.next(), arguments.next()) else {
        return Err("usage: copy_tree FROM TO".into());
    };
    std::fs::create_dir(&to)?;
    let (from, to) = (Tree::open(Path::new(&from))?, Tree::open(Path::new(&to))?);
    copy_tree_recorded(&from, &to, &[], &mut Silent)?;
    Ok(())
}
