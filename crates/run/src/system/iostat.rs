//! Writes statistics of the machine for every second, in the format of `iostat -mdxtcy -o JSON`. It reads `/proc` on a separate thread.
//! Training never waits for it.

use crate::new_file::NewFile;
use rustix::system::uname;
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_secs(1);
/// Columns after a disk's name (Documentation/admin-guide/iostats.rst); older kernels have fewer.
const COLUMNS: usize = 17;
/// Sectors of `/proc/diskstats` in iostat's MB.
const SECTORS_PER_MB: f64 = 2048.0;

/// A file in iostat's format that is being written.
pub struct Iostat {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
    new_file: NewFile,
}

impl Iostat {
    /// Starts to write `file` for `devices`, or for all disks if there are none. `stamp` formats the local time as iostat does.
    ///
    /// # Errors
    /// The file exists already or cannot be created.
    pub fn start(file: &Path, devices: &[String], stamp: fn() -> String) -> io::Result<Self> {
        let new_file = NewFile::create(file)?;
        let stop = Arc::new(AtomicBool::new(false));
        let writer = IostatWriter {
            output: BufWriter::new(new_file.output.try_clone()?),
            devices: devices.iter().map(|name| name.trim_start_matches("/dev/").into()).collect(),
            stamp,
            stop: Arc::clone(&stop),
        };
        let builder = std::thread::Builder::new().name("iostat".into());
        let thread = Some(builder.spawn(move || writer.run())?);
        Ok(Iostat { stop, thread, new_file })
    }

    /// Completes the file and renames it to its final name.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.join()?;
        self.new_file.persist()
    }

    fn join(&mut self) -> io::Result<()> {
        self.stop.store(true, Release);
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.thread().unpark();
        thread.join().unwrap_or_else(|_| Err(io::Error::other("its thread panicked")))
    }
}

impl Drop for Iostat {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

#[derive(Serialize)]
struct HostDescription<'a> {
    nodename: Cow<'a, str>,
    sysname: Cow<'a, str>,
    release: Cow<'a, str>,
    machine: Cow<'a, str>,
    #[serde(rename = "number-of-cpus")]
    cpus: usize,
    date: Option<&'a str>,
}

#[derive(Serialize)]
struct Statistics<'a> {
    timestamp: &'a str,
    #[serde(rename = "avg-cpu")]
    cpu: CpuPercent,
    disk: Vec<Map<String, Value>>,
}

#[derive(Serialize)]
struct CpuPercent {
    user: f64,
    nice: f64,
    system: f64,
    iowait: f64,
    steal: f64,
    idle: f64,
}

struct IostatWriter {
    output: BufWriter<File>,
    /// Names without `/dev/`.
    devices: Vec<String>,
    stamp: fn() -> String,
    stop: Arc<AtomicBool>,
}

impl IostatWriter {
    fn run(mut self) -> io::Result<()> {
        let stamp = (self.stamp)();
        let uname = uname();
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let description = HostDescription {
            nodename: uname.nodename().to_string_lossy(),
            sysname: uname.sysname().to_string_lossy(),
            release: uname.release().to_string_lossy(),
            machine: uname.machine().to_string_lossy(),
            cpus,
            date: stamp.split(' ').next(),
        };
        let host = serde_json::to_string(&description)?;
        let unclosed_host = host.trim_end_matches('}');
        write!(self.output, "{{\"sysstat\": {{\"hosts\": [{unclosed_host}, \"statistics\": [")?;
        let mut before = self.counters()?;
        let mut interval_start = Instant::now();
        let mut separator = "\n";
        loop {
            let is_last = self.stop.load(Acquire);
            let waited = interval_start.elapsed();
            if waited < INTERVAL && !is_last {
                std::thread::park_timeout(INTERVAL - waited);
                continue;
            }
            // A final partial interval is dropped unless it is the only one: the kernel counts milliseconds, so its rates would be
            // imprecise.
            if INTERVAL <= waited || separator == "\n" {
                let after = self.counters()?;
                let elapsed = std::mem::replace(&mut interval_start, Instant::now()).elapsed();
                let stamp = (self.stamp)();
                let row = statistics(&before, &after, elapsed.as_secs_f64(), &stamp);
                write!(self.output, "{separator}{}", serde_json::to_string(&row)?)?;
                before = after;
                separator = ",\n";
            }
            if is_last {
                self.output.write_all(b"\n]}]}}\n")?;
                return self
                    .output
                    .into_inner()
                    .map_err(io::IntoInnerError::into_error)?
                    .sync_all();
            }
        }
    }

    fn counters(&self) -> io::Result<IostatCounters> {
        let stat = fs::read_to_string("/proc/stat")?;
        let diskstats = fs::read_to_string("/proc/diskstats")?;
        Ok(IostatCounters::parse(&stat, &diskstats, |name| {
            if self.devices.is_empty() {
                Path::new("/sys/block").join(name.replace('/', "!")).exists()
            } else {
                self.devices.iter().any(|device| device == name)
            }
        }))
    }
}

/// Counters of the machine at one time.
struct IostatCounters {
    /// Ticks of all cores: user, nice, system, idle, iowait, irq, softirq, steal.
    cpu: [f64; 8],
    disks: Vec<(String, [f64; COLUMNS])>,
}

impl IostatCounters {
    /// Parses the counters of the CPU and of the disks that `is_included` selects. Disks that were never used are left out.
    fn parse(stat: &str, diskstats: &str, is_included: impl Fn(&str) -> bool) -> Self {
        let cpu = numbers(stat.lines().next().unwrap_or_default().split_whitespace().skip(1));
        let disks = diskstats.lines().filter_map(|line| {
            let mut words = line.split_whitespace().skip(2);
            let name = words.next().filter(|name| is_included(name))?;
            let counters = numbers(words);
            counters.iter().any(|count| *count > 0.0).then(|| (name.to_string(), counters))
        });
        IostatCounters { cpu, disks: disks.collect() }
    }
}

/// Parses up to `N` numbers; missing ones are 0.
fn numbers<'w, const N: usize>(words: impl Iterator<Item = &'w str>) -> [f64; N] {
    let mut all = [0.0; N];
    for (slot, word) in all.iter_mut().zip(words) {
        *slot = word.parse().unwrap_or(0.0);
    }
    all
}

/// Returns one entry of iostat's `statistics`.
fn statistics<'a>(
    before: &IostatCounters,
    after: &IostatCounters,
    seconds: f64,
    stamp: &'a str,
) -> Statistics<'a> {
    let ticks = increments(&before.cpu, &after.cpu);
    let total_ticks = ticks.iter().sum();
    let [user, nice, system, idle, iowait, irq, softirq, steal] =
        ticks.map(|ticks| round_to_hundredths(100.0 * ratio(ticks, total_ticks)));
    let disks = after.disks.iter().map(|(name, now)| {
        let then = before.disks.iter().find(|(earlier, _)| earlier == name);
        disk(name, increments(then.map_or(&[0.0; COLUMNS], |(_, then)| then), now), seconds)
    });
    let system = round_to_hundredths(system + irq + softirq);
    let cpu = CpuPercent { user, nice, system, iowait, steal, idle };
    Statistics { timestamp: stamp, cpu, disk: disks.collect() }
}

fn disk(name: &str, columns: [f64; COLUMNS], seconds: f64) -> Map<String, Value> {
    let [
        reads,
        rmerged,
        rsectors,
        rms,
        writes,
        wmerged,
        wsectors,
        wms,
        _,
        busy_ms,
        queued_ms,
        rest @ ..,
    ] = columns;
    let [discards, dmerged, dsectors, dms, flushes, fms] = rest;
    let mut row = Map::new();
    row.insert("disk_device".into(), name.into());
    for (key, value) in [
        ("r/s", reads / seconds),
        ("w/s", writes / seconds),
        ("d/s", discards / seconds),
        ("f/s", flushes / seconds),
        ("rMB/s", rsectors / SECTORS_PER_MB / seconds),
        ("wMB/s", wsectors / SECTORS_PER_MB / seconds),
        ("dMB/s", dsectors / SECTORS_PER_MB / seconds),
        ("rrqm/s", rmerged / seconds),
        ("wrqm/s", wmerged / seconds),
        ("drqm/s", dmerged / seconds),
        ("rrqm", 100.0 * ratio(rmerged, rmerged + reads)),
        ("wrqm", 100.0 * ratio(wmerged, wmerged + writes)),
        ("drqm", 100.0 * ratio(dmerged, dmerged + discards)),
        ("r_await", ratio(rms, reads)),
        ("w_await", ratio(wms, writes)),
        ("d_await", ratio(dms, discards)),
        ("f_await", ratio(fms, flushes)),
        ("rareq-sz", ratio(rsectors / 2.0, reads)),
        ("wareq-sz", ratio(wsectors / 2.0, writes)),
        ("dareq-sz", ratio(dsectors / 2.0, discards)),
        ("aqu-sz", queued_ms / 1000.0 / seconds),
        ("util", busy_ms / 10.0 / seconds),
    ] {
        row.insert(key.into(), round_to_hundredths(value).into());
    }
    row
}

fn increments<const N: usize>(before: &[f64; N], after: &[f64; N]) -> [f64; N] {
    // A counter that was reset counts as unchanged.
    std::array::from_fn(|i| (after[i] - before[i]).max(0.0))
}

/// Returns the ratio, or 0 if `total` is 0, as in iostat.
fn ratio(value: f64, total: f64) -> f64 {
    if total > 0.0 { value / total } else { 0.0 }
}

fn round_to_hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers were computed by hand for 2 s with 10 reads of 64 KiB in 30 ms and 20 writes of 4 KiB in 10 ms.
    #[test]
    fn statistics_are_computed_as_in_iostat() {
        let before = IostatCounters::parse(
            "cpu  100 0 50 800 10 0 0 0 0 0\ncpu0 1",
            "   8       0 sda 5 0 40 9 1 0 8 2 0 4 11 0 0 0 0 0 0\n   8 1 sda1 5 0 40 9\n   7 0 loop0 0 0 0 0",
            |name| name != "sda1",
        );
        let after = IostatCounters::parse(
            "cpu  140 20 60 900 30 5 5 0 0 0\n",
            "   8       0 sda 15 10 1320 39 21 0 168 12 0 204 51 0 0 0 0 4 8\n",
            |_| true,
        );
        assert_eq!(before.disks.len(), 1, "neither the partition nor the unused disk");
        let entry = statistics(&before, &after, 2.0, "11/22/26 19:00:00");
        let row = serde_json::to_value(entry).unwrap();
        assert_eq!(
            row["avg-cpu"],
            serde_json::json!({ "user": 20.0, "nice": 10.0, "system": 10.0, "iowait": 10.0, "steal": 0.0, "idle": 50.0 })
        );
        let disk = &row["disk"][0];
        for (key, expected) in [
            ("r/s", 5.0),
            ("w/s", 10.0),
            ("f/s", 2.0),
            ("rMB/s", 0.31),
            ("wMB/s", 0.04),
            ("rrqm/s", 5.0),
            ("rrqm", 50.0),
            ("r_await", 3.0),
            ("w_await", 0.5),
            ("f_await", 2.0),
            ("rareq-sz", 64.0),
            ("wareq-sz", 4.0),
            ("aqu-sz", 0.02),
            ("util", 10.0),
        ] {
            assert_eq!(disk[key], expected, "{key}");
        }
        assert_eq!(disk["disk_device"], "sda");
    }

    #[test]
    fn a_file_is_complete_or_does_not_exist() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("iostat.json");
        let stamp = || "11/22/26 19:00:00".to_string();
        drop(Iostat::start(&file, &[], stamp).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        Iostat::start(&file, &[], stamp).unwrap().finish().unwrap();
        let written: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let host = &written["sysstat"]["hosts"][0];
        assert_eq!(host["date"], "11/22/26");
        assert!(host["statistics"][0]["avg-cpu"]["idle"].is_number(), "{written}");
        assert!(Iostat::start(&file, &[], stamp).is_err(), "an existing file is not overwritten");
    }
}
