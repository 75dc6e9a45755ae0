//! The values of this process that workloads may refer to: environment variables, the time, and the working folder.

use crate::request::{NOW, Request};
use crate::result_folder;
use feedrate_spec::refusal::refuse;
use feedrate_spec::workload::Surroundings;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// The environment variables and the working folder of this process, and a time.
pub struct ProcessSurroundings {
    time: Option<Zoned>,
}

impl ProcessSurroundings {
    /// Uses the current time.
    pub fn now() -> Self {
        ProcessSurroundings { time: Some(result_folder::now()) }
    }

    /// Uses the time of a request, by default the current time.
    ///
    /// # Errors
    /// Refuses a time that no calendar has.
    pub fn for_request(request: &Request) -> anyhow::Result<Self> {
        let Some(seconds) = request.now_s else { return Ok(Self::now()) };
        let Ok(time) = Timestamp::from_second(seconds) else {
            return refuse(
                format!("`{NOW}={seconds}` is outside of the years -9999 to 9999"),
                "give seconds since 1970, as `date +%s` prints them",
            );
        };
        Ok(ProcessSurroundings { time: Some(time.to_zoned(TimeZone::system())) })
    }

    /// Leaves times as their formats, so that processes that read a workload at different times read the same values.
    pub fn at_no_time() -> Self {
        ProcessSurroundings { time: None }
    }
}

/// Returns the current time in seconds since 1970, for [`Request::now_s`].
pub fn now_s() -> i64 {
    result_folder::now().timestamp().as_second()
}

impl Surroundings for ProcessSurroundings {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn time(&self, format: &str) -> Option<String> {
        let Some(time) = &self.time else { return Some(format.to_string()) };
        jiff::fmt::strtime::format(format, time).ok()
    }

    fn hydra(&self, key: &str) -> Option<String> {
        match key {
            "job.name" => Some("dlio_benchmark".into()),
            "runtime.cwd" => Some(std::env::current_dir().ok()?.display().to_string()),
            _ => None,
        }
    }
}
