//! A fixture for tests of this crate and of other crates: writes folders as DLIO leaves them, including its formulas, its wrong step count and its NaN.
#![expect(missing_docs, clippy::unwrap_used, reason = "a fixture of tests")]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// A DLIO run to write.
pub struct Fake {
    pub ranks: u32,
    pub epochs: u32,
    pub files: u64,
    pub batch: u64,
    pub threads: u32,
    pub record_length: u64,
    pub stdev: u64,
    pub format: &'static str,
    pub compute_s: f64,
    /// Load time of a rank in a step.
    pub load_s: fn(u32, u64) -> f64,
    /// Factor of all load times.
    pub slower: f64,
    /// Ratio of the actual to the configured compute time.
    pub overshoot: f64,
    /// Factor by which reported throughputs are wrong.
    pub rate_factor: f64,
    /// Whether to imitate DLIO of MLPerf Storage 1.0, which reports the configured compute time, counts all steps in throughputs, and writes block times to
    /// one file.
    pub is_older: bool,
    /// Start in seconds after midnight.
    pub start_s: f64,
    pub generate: bool,
    pub train: bool,
    pub hostname: &'static str,
    /// Overrides without `++workload.`.
    pub overrides: Vec<&'static str>,
}

impl Default for Fake {
    /// Returns a run of six steps of 7 samples on 4 ranks, with a slow first step.
    fn default() -> Self {
        Fake {
            ranks: 4,
            epochs: 2,
            files: 168,
            batch: 7,
            threads: 4,
            record_length: 100_000_000,
            stdev: 0,
            format: "npz",
            compute_s: 0.3,
            load_s: |rank, step| if step == 0 { 4.0 + 0.1 * f64::from(rank) } else { 0.01 },
            slower: 1.0,
            overshoot: 1.0,
            rate_factor: 1.0,
            is_older: false,
            start_s: 36_000.0,
            generate: false,
            train: true,
            hostname: "node1",
            overrides: Vec::new(),
        }
    }
}

impl Fake {
    /// Writes the run to `root/name`.
    pub fn write(&self, root: &Path, name: &str) -> PathBuf {
        let folder = root.join(name);
        fs::create_dir_all(folder.join(".hydra")).unwrap();
        let put = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        put(".hydra/config.yaml", &self.config());
        put(".hydra/overrides.yaml", &self.overrides());
        let mut rates = vec![0.0; self.epochs as usize];
        let mut aus = rates.clone();
        for rank in 0..self.ranks {
            let (output, stats) = self.rank_files(rank, &mut rates, &mut aus);
            put(&format!("{rank}_output.json"), &output);
            if self.is_older && rank == 0 {
                put("per_epoch_stats.json", &stats);
            } else if !self.is_older {
                put(&format!("{rank}_per_epoch_stats.json"), &stats);
            }
        }
        put("summary.json", &self.summary(&rates, &aus));
        put("dlio.log", &self.log(&folder));
        folder
    }

    /// Writes the run as submitters to MLPerf Storage publish it: without files of steps, with rank 0's block times, and with another name of Hydra's
    /// folder.
    pub fn publish(&self, root: &Path, name: &str) -> PathBuf {
        let run = self.write(root, name);
        let hydra = if self.is_older { "configs" } else { "dlio_config" };
        fs::rename(run.join(".hydra"), run.join(hydra)).unwrap();
        for rank in 0..self.ranks {
            fs::remove_file(run.join(format!("{rank}_output.json"))).unwrap();
            if 0 < rank && !self.is_older {
                fs::remove_file(run.join(format!("{rank}_per_epoch_stats.json"))).unwrap();
            }
        }
        run
    }

    pub fn steps(&self) -> u64 {
        if self.train { self.files / self.batch / u64::from(self.ranks) } else { 0 }
    }

    fn load(&self, rank: u32, step: u64) -> f64 {
        (self.load_s)(rank, step) * self.slower
    }

    /// Duration of a step, in which ranks wait for the slowest.
    fn step_s(&self, step: u64) -> f64 {
        let loads = (0..self.ranks).map(|rank| self.load(rank, step));
        loads.fold(0.0, f64::max) + self.actual_compute_s()
    }

    fn actual_compute_s(&self) -> f64 {
        self.compute_s * self.overshoot
    }

    fn reported_compute_s(&self) -> f64 {
        if self.is_older { self.compute_s } else { self.actual_compute_s() }
    }

    fn epoch_s(&self) -> f64 {
        (0..self.steps()).map(|step| self.step_s(step)).sum()
    }

    fn epoch_start_s(&self, epoch: u32) -> f64 {
        self.start_s + 1.0 + f64::from(epoch) * (self.epoch_s() + 0.5)
    }

    /// Returns the contents of a rank's files, and adds its throughput and utilisation of each epoch to the sums.
    fn rank_files(&self, rank: u32, rates: &mut [f64], aus: &mut [f64]) -> (String, String) {
        let mut output = format!("{{\"hostname\": \"{}\"", self.hostname);
        let mut stats = String::from("{");
        let steps = self.steps();
        for epoch in 0..self.epochs {
            let load: Vec<f64> = (0..steps).map(|step| self.load(rank, step)).collect();
            let proc: Vec<f64> = load.iter().map(|load| load + self.actual_compute_s()).collect();
            let compute = vec![self.reported_compute_s(); load.len()];
            let start_s = self.epoch_start_s(epoch);
            let end_s = start_s + self.epoch_s();
            let window_s = self.epoch_s() - proc.first().unwrap_or(&0.0);
            let rate = self.rate_factor
                * if self.is_older {
                    steps as f64 / self.epoch_s() * self.batch as f64
                } else {
                    (steps as f64 - 2.0) / window_s * self.batch as f64
                };
            let au = compute.iter().skip(1).sum::<f64>() / window_s * 100.0;
            if steps > 0 {
                rates[epoch as usize] += rate;
                aus[epoch as usize] += au / f64::from(self.ranks);
            }
            let trained = format!(
                r#""load": {{"block1": {load:?}}}, "proc": {{"block1": {proc:?}}}, "throughput": {{"block1": {rate:?}}}, "au": {{"block1": {au:?}}}, "compute": {{"block1": {compute:?}}}"#
            );
            let blocks = if steps > 0 { trained } else { r#""load": {}, "proc": {}"#.into() };
            let number = epoch + 1;
            let _ = write!(output, ", \"{number}\": {{{blocks}, \"end\": \"x\"}}");
            let start = stamp(start_s);
            let end = stamp(end_s);
            let comma = if epoch == 0 { "" } else { "," };
            let _ = write!(
                stats,
                r#"{comma}"{number}": {{"start": "{start}", "block1": {{"start": "{start}", "end": "{end}", "duration": "{:.2}"}}, "end": "{end}", "duration": "1.00"}}"#,
                end_s - start_s
            );
        }
        (output + "}", stats + "}")
    }

    fn summary(&self, rates: &[f64], aus: &[f64]) -> String {
        let mean = |list: &[f64]| list.iter().sum::<f64>() / list.len() as f64;
        let mib = mean(rates) * self.record_length as f64 / f64::from(1 << 20);
        let training = format!(
            r#", "train_au_percentage": {aus:?}, "train_au_mean_percentage": {:?}, "train_au_meet_expectation": "fail", "train_throughput_samples_per_second": {rates:?}, "train_throughput_mean_samples_per_second": {:?}, "train_io_mean_MB_per_second": {mib:?}"#,
            mean(aus),
            mean(rates)
        );
        format!(
            r#"{{"start": "{}", "num_accelerators": {}, "num_hosts": 1, "hostname": "{}", "metric": {{"save_checkpoint_io_mean_GB_per_second": NaN{}}}, "num_files_train": {}, "num_samples_per_file": 1, "host_memory_GB": [100.0], "host_cpu_count": [72], "host_processor_name": "aarch64", "epochs": {}, "end": "{}"}}"#,
            stamp(self.start_s),
            self.ranks,
            self.hostname,
            if self.steps() > 0 { training.as_str() } else { "" },
            self.files,
            if self.steps() > 0 { self.epochs } else { 0 },
            stamp(self.start_s + 2.0 + f64::from(self.epochs) * (self.epoch_s() + 0.5)),
        )
        .replace("inf", "Infinity")
    }

    fn config(&self) -> String {
        format!(
            "workload:\n  model: {{name: fake, model_size: 499153191}}\n  framework: pytorch\n  workflow: {{generate_data: {}, train: {}, checkpoint: false}}\n  dataset:\n    data_folder: data/fake/\n    format: {}\n    num_files_train: {}\n    record_length_bytes: {}\n    record_length_bytes_stdev: {}\n  reader: {{data_loader: pytorch, batch_size: {}, read_threads: {}}}\n  train: {{epochs: {}, computation_time: {}}}\n",
            self.generate,
            self.train,
            self.format,
            self.files,
            self.record_length,
            self.stdev,
            self.batch,
            self.threads,
            self.epochs,
            self.compute_s,
        )
    }

    fn overrides(&self) -> String {
        let mut text = format!(
            "- workload=fake\n- ++workload.workflow.generate_data={}\n- ++workload.workflow.train={}\n",
            if self.generate { "True" } else { "False" },
            if self.train { "True" } else { "False" },
        );
        for setting in &self.overrides {
            let _ = writeln!(text, "- ++workload.{setting}");
        }
        text
    }

    fn log(&self, folder: &Path) -> String {
        let at = stamp(self.start_s);
        let generation = if self.generate {
            format!("[OUTPUT] {at} Starting data generation\n[OUTPUT] {at} Generation done\n")
        } else {
            String::new()
        };
        let steps = self.steps();
        let mut epochs = String::new();
        if self.train {
            epochs = format!(
                "[OUTPUT] {at} Max steps per epoch: {steps} = 1 * {} / {} / {} (samples per file)\n",
                self.files, self.batch, self.ranks
            );
        }
        for epoch in 0..if self.train { self.epochs } else { 0 } {
            let start_s = self.epoch_start_s(epoch);
            let from = stamp(start_s);
            let to = stamp(start_s + self.epoch_s());
            let number = epoch + 1;
            let _ = write!(
                epochs,
                "[OUTPUT] {from} Starting epoch {number}: {steps} steps expected\n[OUTPUT] {from} Starting block 1\n[OUTPUT] {to} Ending block 1 - {steps} steps completed in 1.00 s\n[OUTPUT] {to} Ending epoch {number} - {steps} steps completed in 1.00 s\n"
            );
        }
        format!(
            "[OUTPUT] {at} Running DLIO [Training] with {} process(es)\n{generation}{epochs}[OUTPUT] {at} Saved outputs in /scratch/job/hydra_log/fake/{}\n",
            self.ranks,
            folder.file_name().unwrap().to_string_lossy()
        )
    }
}

/// Formats a time on a fixed day, given in seconds after midnight.
fn stamp(seconds: f64) -> String {
    let micros = (seconds * 1e6).round() as u64;
    let s = micros / 1_000_000;
    let micro = micros % 1_000_000;
    format!("2025-11-30T{:02}:{:02}:{:02}.{micro:06}", s / 3600, s / 60 % 60, s % 60)
}
