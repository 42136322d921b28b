//! A file of 100 MB into a workspace and out of it, against `cp` of it and sending it over loopback.
//!
//! The peer does one after the other what the control plane does at once: a copy of the file on the same
//! filesystem, and its bytes through a TCP connection on loopback to somebody who drops them. The three
//! take turns. What the server and everything it started had in memory at most, beyond what they had
//! before, is told beside it: it must not be the file.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::processes::Process;
use crate::report::Row;
use crate::server::Server;
use crate::stage::{Filesystem, Stage, StageError};
use crate::timing::{Attempt, interleave};

const ROUNDS: usize = 9;
const SIZE: u64 = 100 << 20;

/// How much is sent at once.
const PIECE: usize = 256 << 10;

/// KiB that the server may have more: what is on its way, and no more.
const FLAT: u64 = 16 << 10;

/// Measures.
pub fn rows(stage: &mut Stage) -> Result<Vec<Row>, StageError> {
    let place = stage.place(Filesystem::Host, "transfer")?;
    let stage = &*stage;
    let server = Server::start(stage, &place.dir.join("server"), None, &[])?;
    let mut client = server.client()?;
    let session = client.session("never")?;
    let (file, twin) = (place.dir.join("file"), place.dir.join("twin"));
    plant(&file)?;

    let processes = Peaks::begin(&server)?;
    let peer: Attempt<'_> = Box::new(|_| {
        stage.settle();
        let copied = stage.timed(stage.command("cp", &place.dir).args([&file, &twin]))?;
        let sent = send(&file).map_err(StageError::io(&file))?;
        std::fs::remove_file(&twin).map_err(StageError::io(&twin))?;
        Ok(copied + sent)
    });
    let mut uploader = server.client()?;
    let upload: Attempt<'_> = Box::new(|round| {
        let content = File::open(&file).map_err(StageError::io(&file))?;
        stage.settle();
        let begun = Instant::now();
        uploader.upload(&session, &format!("file{round}"), content, SIZE)?;
        Ok(begun.elapsed())
    });
    let mut downloader = server.client()?;
    let download: Attempt<'_> = Box::new(|round| {
        stage.settle();
        let name = format!("file{round}");
        let begun = Instant::now();
        let length = downloader.download(&session, &name)?;
        let took = begun.elapsed();
        downloader.delete_file(&session, &name)?;
        match length == SIZE {
            true => Ok(took),
            false => Err(StageError::Output {
                command: format!("download of {SIZE} bytes"),
                output: format!("{length} bytes"),
            }),
        }
    });
    let medians = interleave(ROUNDS, vec![peer, upload, download])?;
    let [peer, upload, download] = medians[..] else {
        unreachable!("a median for each attempt")
    };
    let grown = processes.grown()?;
    client.end(&session)?;
    let peer = ("cp, then loopback", peer);
    Ok(vec![
        Row::ratio("upload of 100 MB", upload, peer, 1.5),
        Row::ratio("download of 100 MB", download, peer, 1.5),
        Row::memory("what the server took for it", grown, None, FLAT),
    ])
}

/// Bytes of which no filesystem makes fewer.
fn plant(path: &Path) -> Result<(), StageError> {
    let plant = || -> io::Result<()> {
        let random = File::open("/dev/urandom")?;
        io::copy(&mut random.take(SIZE), &mut File::create(path)?)?;
        Ok(())
    };
    plant().map_err(StageError::io(path))
}

/// How long it takes to send a file to somebody who drops it and says when it was all.
fn send(path: &Path) -> io::Result<Duration> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut ours = TcpStream::connect(listener.local_addr()?)?;
    let (mut theirs, _) = listener.accept()?;
    std::thread::scope(|scope| {
        let receiver = scope.spawn(move || -> io::Result<()> {
            let mut piece = vec![0; PIECE];
            let mut left = SIZE;
            while left > 0 {
                match theirs.read(&mut piece)? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    read => left = left.saturating_sub(read as u64),
                }
            }
            theirs.write_all(b"x")
        });
        let begun = Instant::now();
        let mut file = File::open(path)?;
        let mut piece = vec![0; PIECE];
        loop {
            match file.read(&mut piece)? {
                0 => break,
                read => ours.write_all(&piece[..read])?,
            }
        }
        ours.read_exact(&mut [0])?;
        let took = begun.elapsed();
        receiver.join().unwrap_or(Ok(()))?;
        Ok(took)
    })
}

/// The most that the server and its helpers have in memory, from now on.
struct Peaks(Vec<(Process, u64)>);

impl Peaks {
    fn begin(server: &Server) -> Result<Peaks, StageError> {
        let mut peaks = Vec::new();
        for process in server.process().tree() {
            let unknown = |source| StageError::Io {
                path: format!("/proc/{}", process.0).into(),
                source,
            };
            process.reset_peak().map_err(unknown)?;
            peaks.push((process, process.peak().unwrap_or(0)));
        }
        Ok(Peaks(peaks))
    }

    /// KiB that they had more at most, all together.
    fn grown(&self) -> Result<u64, StageError> {
        let grown = self.0.iter().map(|(process, before)| {
            let now = process.peak().unwrap_or(0);
            now.saturating_sub(*before)
        });
        Ok(grown.sum())
    }
}
