//! Plans the storage: kind, engine and copy of the dataset, and checks that they work with the format.

use super::Builder;
use crate::catalog::{Ability, Member};
use crate::object_url::ObjectUrl;
use crate::plan::{Cache, StageMoment, StagePlan, StoragePlan};

/// The value of `reader.stage` for shared memory, and the folder of shared memory.
const SHARED_MEMORY: (&str, &str) = ("memory", "/dev/shm");

/// MLPerf Storage v3's storage of local files that are read with O_DIRECT.
const DIRECT_STORAGE: &str = "direct_fs";
/// Options of MLPerf Storage v3's client and the value with which it reads files with O_DIRECT.
const DIRECT_OPTIONS: [&str; 2] = ["storage_library", "uri_scheme"];
const DIRECT_VALUE: &str = "direct";

/// Lower rates in bytes per second are probably meant in another unit.
const THROTTLE_USUAL_MIN: f64 = 1000.0;

/// Hint for a build without stores of objects.
pub(super) const BUILD_WITH_OBJECTS: &str =
    "build it with `--features object`, or mount the bucket";

impl Builder<'_> {
    /// Returns the key of a setting that requires reading around the page cache, if there is one.
    pub(super) fn direct_setting(&self) -> Option<&'static str> {
        let options = &self.w.storage_storage_options;
        let is_direct = |(name, value): &(String, String)| {
            DIRECT_OPTIONS.contains(&name.as_str()) && value == DIRECT_VALUE
        };
        if self.w.reader_odirect {
            Some("reader.odirect")
        } else if self.w.storage_storage_type == DIRECT_STORAGE {
            Some("storage.storage_type")
        } else if self.w.storage_storage_library.as_deref() == Some(DIRECT_VALUE) {
            Some("storage.storage_library")
        } else {
            options.iter().any(is_direct).then_some("storage.storage_options")
        }
    }

    /// Returns the storage of the dataset.
    pub(super) fn storage(&mut self) -> StoragePlan {
        let kind = self.storage_kind();
        let member = self.catalog.storage(&kind);
        if member.is_none() {
            let is_left_out = ObjectUrl::in_storage(&kind, "bucket").is_some();
            let (message, hint) = if is_left_out {
                let message = format!("this build of feedrate has no storage `{kind}`");
                (message, BUILD_WITH_OBJECTS)
            } else {
                let message = format!("storage `{kind}` is not supported yet");
                (message, "use `local_fs` for a mounted file system of any kind")
            };
            self.error("storage.storage_type", message, hint);
        }
        let engine = member.and_then(|member| self.engine(member));
        self.check_page_cache(member, engine.as_deref());
        self.check_throttle();
        let engine_member = engine.as_deref().and_then(|name| self.catalog.engine(name));
        StoragePlan {
            has_no_device: member.is_some_and(|member| member.has(Ability::NoDevice)),
            passes_page_cache: engine_member
                .is_some_and(|engine| engine.has(Ability::BypassesPageCache)),
            engine,
            object: None,
            kind,
            throttle_bytes_per_second: self.w.storage_throttle_bytes_per_second,
            throttle_latency_s: self.w.storage_throttle_latency_seconds,
            throttle_concurrency: self.w.storage_throttle_concurrency,
            delay_s: self.w.storage_delay_seconds,
            open_delay_s: self.w.storage_delay_open_seconds,
            read_delay_s: self.w.storage_delay_read_seconds,
        }
    }

    /// Returns the copy of the dataset, if it is configured.
    pub(super) fn stage(&mut self, storage: &StoragePlan) -> Option<StagePlan> {
        const KEY: &str = "reader.stage";
        let Some(folder) = &self.w.reader_stage else {
            for key in ["reader.stage_when", "reader.stage_limit", "reader.stage_keep"] {
                self.warn_unused(key, "without `reader.stage` the dataset is not copied");
            }
            return None;
        };
        if !self.trains() {
            return None;
        }
        let kind = &storage.kind;
        if self.catalog.storage(kind).is_some_and(|storage| !storage.has(Ability::InFolder)) {
            let message = format!("storage `{kind}` has no files that can be copied");
            self.error(KEY, message, "leave it out");
        }
        if self.reads_through_mpi() {
            let message =
                "MPI-IO needs files that all machines share, but each machine has a separate copy";
            self.error(KEY, message.into(), "use another `reader.file_access`, or leave it out");
        }
        if folder.is_empty() {
            let hint = "give a folder, or `memory`";
            self.error(KEY, "the name of the folder is empty".into(), hint);
        }
        Some(StagePlan {
            folder: match SHARED_MEMORY {
                (name, memory) if folder == name => memory.into(),
                _ => folder.clone(),
            },
            when: StageMoment::Start,
            limit_bytes: self.w.reader_stage_limit,
            keep: self.w.reader_stage_keep,
        })
    }

    /// Warns of a rate without a unit that is too low to be meant.
    fn check_throttle(&mut self) {
        let rate = self.w.storage_throttle_bytes_per_second;
        if let Some(rate) = rate.filter(|rate| *rate < THROTTLE_USUAL_MIN) {
            let hint = format!("did you mean `{rate}MB/s`?");
            let message = format!("the storage delivers {rate} bytes per second");
            self.warning("storage.throttle.bytes_per_second", message, &hint);
        }
    }

    /// Refuses options for a page cache that does not exist or is not used.
    fn check_page_cache(&mut self, storage: Option<&Member>, engine: Option<&str>) {
        let (flag, verb) = match self.options.cache {
            Cache::AsIs => return,
            Cache::Cold => ("--cold", "empties"),
            Cache::Warm => ("--warm", "fills"),
        };
        let hint = format!("leave `{flag}` out");
        if let Some(storage) = storage.filter(|storage| !storage.has(Ability::PageCache)) {
            let message =
                format!("storage `{}` has no page cache, which `{flag}` {verb}", storage.name);
            self.error("storage.storage_type", message, &hint);
        }
        let engine = engine.and_then(|name| self.catalog.engine(name));
        if self.options.cache != Cache::Warm {
            return;
        }
        if let Some(engine) = engine.filter(|engine| engine.has(Ability::BypassesPageCache)) {
            let message =
                format!("engine `{}` bypasses the page cache, which `--warm` fills", engine.name);
            self.error("storage.engine", message, &hint);
        }
        if self.is_checkpoint_only() {
            let message = "the run reads no dataset, which `--warm` would read before".into();
            self.error("workflow.train", message, &hint);
        }
    }

    /// Returns the name of the storage: `null` for formats without files. Formats with files need a storage that keeps bytes.
    fn storage_kind(&mut self) -> String {
        let kind = match self.w.storage_storage_type.as_str() {
            "local_fs" | "parallel_fs" | DIRECT_STORAGE => "file",
            other => other,
        };
        let format = &self.w.dataset_format;
        let (Some(entry), Some(member)) = (self.catalog.format(format), self.catalog.storage(kind))
        else {
            return kind.into();
        };
        match (entry.member.has(Ability::NoFiles), member.has(Ability::KeepsBytes)) {
            (true, true) => {
                let key = "storage.storage_type";
                if self.w.is_given(key) {
                    let message =
                        format!("format `{format}` has no files, so `{kind}` is not used");
                    self.warning(key, message, "");
                }
                return "null".into();
            }
            (false, false) => {
                self.error(
                    "storage.storage_type",
                    format!("storage `{kind}` does not store data, which format `{format}` needs"),
                    "set `dataset.format=synthetic`, or use another storage",
                );
            }
            _ => {}
        }
        kind.into()
    }

    /// Returns the engine that reads files; `None` if the storage has no engines, or if the configured engine is refused.
    fn engine(&mut self, storage: &Member) -> Option<String> {
        let key = "storage.engine";
        let format = &self.w.dataset_format;
        let needs_mapping = self.format_has(Ability::Mapped);
        let direct = self.direct_setting();
        if !storage.has(Ability::Engines) {
            let storage = storage.name;
            self.refuse_engine_settings(
                &format!("storage `{storage}` has no engines"),
                &format!(
                    "format `{format}` needs memory-mapped files, which storage `{storage}` does not support"
                ),
            );
            return None;
        }
        if self.reads_through_mpi() {
            let reason = "with `reader.file_access=mpio` MPI reads files, without an engine";
            self.refuse_engine_settings(reason, reason);
            return None;
        }
        let name = self.w.storage_engine.clone().unwrap_or_else(|| self.default_engine().into());
        let Some(engine) = self.catalog.engine(&name) else {
            let names: Vec<&str> = self.catalog.engines.iter().map(|engine| engine.name).collect();
            let hint = format!(
                "available engines: {}; `libhdf5` needs a build with `--features libhdf5`",
                names.join(", ")
            );
            self.error(key, format!("there is no engine `{name}`"), &hint);
            return None;
        };
        if !self.trains() {
            return Some(name);
        }
        if let Some(direct) = direct.filter(|_| !engine.has(Ability::BypassesPageCache)) {
            self.error(
                direct,
                format!("engine `{name}` reads through the page cache"),
                &format!("set only one of `{direct}` and `storage.engine`"),
            );
        }
        if engine.has(Ability::ServesSamples) && !self.format_has(Ability::ServesSamples) {
            self.error(
                key,
                format!("engine `{name}` cannot read format `{format}`"),
                "leave it out: it is a library for another format",
            );
            return Some(name);
        }
        if needs_mapping && !engine.has(Ability::Mapped) {
            self.error(
                direct.unwrap_or(key),
                format!("format `{format}` needs memory-mapped files, which engine `{name}` does not support"),
                "leave the engine out, or use `dataset.format=indexed_binary`",
            );
        }
        Some(name)
    }

    /// Returns the first engine with the ability that the settings or the format need.
    fn default_engine(&self) -> &'static str {
        let needed = if self.direct_setting().is_some() {
            Some(Ability::BypassesPageCache)
        } else {
            self.format_has(Ability::Mapped).then_some(Ability::Mapped)
        };
        let mut engines = self.catalog.engines.iter();
        engines
            .find(|engine| needed.is_none_or(|ability| engine.has(ability)))
            .map_or("", |engine| engine.name)
    }

    /// Refuses engine settings and formats that need memory-mapped files, if no engine is used.
    fn refuse_engine_settings(&mut self, reason: &str, mapping_reason: &str) {
        let engine_setting = self.w.storage_engine.as_ref().map(|_| "storage.engine");
        for key in [engine_setting, self.direct_setting()].into_iter().flatten() {
            self.error(key, reason.into(), "leave it out");
        }
        if self.format_has(Ability::Mapped) {
            let hint = "use `dataset.format=indexed_binary`, which has the same files";
            self.error("dataset.format", mapping_reason.into(), hint);
        }
    }
}
