//! What the kernel tells of processes.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::timing::pause;

/// A process, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process(pub u32);

/// What some processes take together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weight {
    /// Proportional set size, in KiB: what they have for themselves, and their share of what they share.
    pub memory: u64,
    /// Threads.
    pub tasks: u64,
}

impl Process {
    /// What it is called.
    pub fn name(self) -> Option<String> {
        let name = fs::read_to_string(self.directory().join("comm")).ok()?;
        Some(name.trim_end().to_owned())
    }

    /// Those that it started.
    pub fn children(self) -> Vec<Process> {
        let Ok(tasks) = fs::read_dir(self.directory().join("task")) else {
            return Vec::new();
        };
        let children = tasks.flatten().filter_map(|task| {
            let children = fs::read_to_string(task.path().join("children")).ok()?;
            let numbers = children.split_whitespace();
            Some(
                numbers
                    .flat_map(str::parse)
                    .map(Process)
                    .collect::<Vec<_>>(),
            )
        });
        children.flatten().collect()
    }

    /// It, and everything below it.
    pub fn tree(self) -> Vec<Process> {
        let mut found = vec![self];
        let mut next = 0;
        while let Some(process) = found.get(next) {
            found.extend(process.children());
            next += 1;
        }
        found
    }

    /// Is it the first of its PID namespace? Then that is a sandbox.
    pub fn is_first(self) -> bool {
        self.status("NSpid:")
            .is_some_and(|numbers| numbers.split_whitespace().last() == Some("1"))
    }

    /// KiB that were ever in memory at once, since it was [reset](Process::reset_peak).
    pub fn peak(self) -> Option<u64> {
        kib(&self.status("VmHWM:")?)
    }

    /// From now on its peak is what it has now.
    pub fn reset_peak(self) -> std::io::Result<()> {
        fs::write(self.directory().join("clear_refs"), "5")
    }

    /// What it takes; nothing when it has ended.
    pub fn weight(self) -> Weight {
        let rollup = fs::read_to_string(self.directory().join("smaps_rollup")).unwrap_or_default();
        let size = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
        let tasks = self.status("Threads:").and_then(|text| text.parse().ok());
        Weight {
            memory: size.and_then(kib).unwrap_or(0),
            tasks: tasks.unwrap_or(0),
        }
    }

    fn status(self, field: &str) -> Option<String> {
        let status = fs::read_to_string(self.directory().join("status")).ok()?;
        let value = status.lines().find_map(|line| line.strip_prefix(field))?;
        Some(value.trim().to_owned())
    }

    fn directory(self) -> PathBuf {
        PathBuf::from(format!("/proc/{}", self.0))
    }
}

impl Weight {
    /// What all of them take together.
    pub fn of(processes: impl IntoIterator<Item = Process>) -> Weight {
        let weights = processes.into_iter().map(Process::weight);
        weights.fold(Weight::default(), |sum, weight| Weight {
            memory: sum.memory + weight.memory,
            tasks: sum.tasks + weight.tasks,
        })
    }
}

/// KiB of memory that programs could still get.
pub fn available() -> u64 {
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    line.and_then(kib).unwrap_or(0)
}

/// Which part of this machine's processors is busy, for so long from now on.
pub fn busy(span: Duration) -> f64 {
    let begin = processor_times();
    pause(span);
    let end = processor_times();
    let spent = |time: fn((u64, u64)) -> u64| time(end).saturating_sub(time(begin)) as f64;
    let all = spent(|(busy, idle)| busy + idle);
    spent(|(busy, _)| busy) / all.max(1.0)
}

/// How long they were busy and idle since the machine started, together.
fn processor_times() -> (u64, u64) {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let times: Vec<u64> = line.split_whitespace().flat_map(str::parse).collect();
    // User, nice, system, idle, waiting for disks, interrupts.
    let idle: u64 = times.iter().skip(3).take(2).sum();
    (times.iter().take(8).sum::<u64>() - idle, idle)
}

fn kib(text: &str) -> Option<u64> {
    text.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_somebodys_child_and_takes_something() {
        let own = Process(std::process::id());
        let parent = Process(std::os::unix::process::parent_id());
        assert!(parent.children().contains(&own));
        assert!(parent.tree().contains(&own));
        let weight = own.weight();
        assert!(weight.memory > 0 && weight.tasks > 0, "{weight:?}");
        assert!(own.peak().unwrap() > 0 && available() > 0);
    }
}
