//! Progress bars for long work, on a terminal only.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sandbox_workspace::progress::{Phase, Progress};

/// Work shorter than this shows nothing: a bar that flashes by is noise.
const PATIENCE: Duration = Duration::from_millis(400);

/// Draws a bar per phase on stderr, once the phase has taken a while.
#[derive(Debug, Default)]
pub(crate) struct Bar {
    phase: Option<Begun>,
}

#[derive(Debug)]
struct Begun {
    at: Instant,
    word: &'static str,
    total: Option<u64>,
    done: u64,
    bar: Option<ProgressBar>,
}

impl Progress for Bar {
    fn begin(&mut self, phase: Phase, total: Option<u64>) {
        self.finish();
        if io::stderr().is_terminal() {
            let (at, word) = (Instant::now(), word(phase));
            self.phase = Some(Begun {
                at,
                word,
                total,
                done: 0,
                bar: None,
            });
        }
    }

    fn advance(&mut self, items: u64) {
        let Some(begun) = &mut self.phase else { return };
        begun.done += items;
        match &begun.bar {
            Some(bar) => bar.set_position(begun.done),
            None if begun.at.elapsed() > PATIENCE => begun.bar = Some(begun.draw()),
            None => {}
        }
    }

    fn finish(&mut self) {
        if let Some(bar) = self.phase.take().and_then(|begun| begun.bar) {
            bar.finish_and_clear();
        }
    }
}

impl Begun {
    fn draw(&self) -> ProgressBar {
        let template = match self.total {
            Some(_) => "{msg} [{bar:30}] {pos}/{len} {eta}",
            None => "{msg} {spinner} {pos}",
        };
        let style = ProgressStyle::with_template(template)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> ");
        let bar = ProgressBar::with_draw_target(self.total, ProgressDrawTarget::stderr());
        bar.set_style(style);
        bar.set_message(self.word);
        bar.set_position(self.done);
        bar
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.finish();
    }
}

fn word(phase: Phase) -> &'static str {
    match phase {
        Phase::Copying => "Copying",
        Phase::Comparing => "Comparing",
        Phase::Staging => "Staging",
        Phase::Applying => "Applying",
        Phase::Deleting => "Deleting",
    }
}
