//! The storage of a plan: its kind, its engine, and whether the format can lie on it.

use super::Builder;
use crate::catalog::{Ability, Member};
use crate::plan::{Cache, StageMoment, StagePlan, StoragePlan};

/// Name of the memory that all processes of a machine share, and the folder that it is.
const SHARED_MEMORY: (&str, &str) = ("memory", "/dev/shm");

impl Builder<'_> {
    pub(super) fn storage(&mut self) -> StoragePlan {
        let kind = self.storage_kind();
        let member = self.catalog.storage(&kind);
        if member.is_none() {
            self.error(
                "storage.storage_type",
                format!("needs storage `{kind}`, which is not built yet"),
                "a mounted file system of any kind is `local_fs`",
            );
        }
        let engine = member.and_then(|member| self.engine(member));
        self.refuse_cache(member, engine.as_deref());
        let read_by = engine.as_deref().and_then(|name| self.catalog.engine(name));
        StoragePlan {
            passes_page_cache: read_by.is_some_and(|of| of.has(Ability::BypassesPageCache)),
            engine,
            kind,
            throttle_bytes_per_second: self.w.storage_throttle_bytes_per_second,
            throttle_latency_s: self.w.storage_throttle_latency_seconds,
            throttle_concurrency: self.w.storage_throttle_concurrency,
            delay_s: self.w.storage_delay_seconds,
            open_delay_s: self.w.storage_delay_open_seconds,
            read_delay_s: self.w.storage_delay_read_seconds,
        }
    }

    pub(super) fn stage(&mut self, storage: &StoragePlan) -> Option<StagePlan> {
        const KEY: &str = "reader.stage";
        let Some(folder) = &self.w.reader_stage else {
            for key in ["reader.stage_when", "reader.stage_limit", "reader.stage_keep"] {
                self.in_vain(key, "without `reader.stage` nothing is copied");
            }
            return None;
        };
        if !self.trains() {
            return None;
        }
        let kind = &storage.kind;
        if self.catalog.storage(kind).is_some_and(|storage| !storage.has(Ability::InFolder)) {
            let message = format!("storage `{kind}` has no folder of files that could be copied");
            self.error(KEY, message, "leave it out");
        }
        if self.reads_through_mpi() {
            let message =
                "MPI-IO reads one file for all machines, and each would have its own copy";
            self.error(KEY, message.into(), "use another `reader.file_access`, or leave it out");
        }
        if folder.is_empty() {
            let hint = "name a folder, or `memory`";
            self.error(KEY, "a folder without a name".into(), hint);
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

    /// A page cache that is not there, or takes no part.
    fn refuse_cache(&mut self, storage: Option<&Member>, engine: Option<&str>) {
        let (flag, does) = match self.options.cache {
            Cache::AsIs => return,
            Cache::Cold => ("--cold", "empties"),
            Cache::Warm => ("--warm", "fills"),
        };
        let hint = format!("leave `{flag}` out");
        if let Some(storage) = storage.filter(|storage| !storage.has(Ability::PageCache)) {
            let message =
                format!("storage `{}` has no page cache, `{flag}` {does} one", storage.name);
            self.error("storage.storage_type", message, &hint);
        }
        let engine = engine.and_then(|name| self.catalog.engine(name));
        if self.options.cache != Cache::Warm {
            return;
        }
        if let Some(engine) = engine.filter(|engine| engine.has(Ability::BypassesPageCache)) {
            let message =
                format!("engine `{}` reads past the page cache that `--warm` fills", engine.name);
            self.error("storage.engine", message, &hint);
        }
        if self.writes_checkpoints_alone() {
            let message = "no dataset is read that `--warm` could read before".into();
            self.error("workflow.train", message, &hint);
        }
    }

    /// Formats that have no files lie nowhere; those that have some need a storage that keeps bytes.
    fn storage_kind(&mut self) -> String {
        let kind = match self.w.storage_storage_type.as_str() {
            "local_fs" | "parallel_fs" => "file",
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
                    format!("storage `{kind}` keeps no bytes, format `{format}` needs them"),
                    "set `dataset.format=synthetic`, or choose a storage that keeps bytes",
                );
            }
            _ => {}
        }
        kind.into()
    }

    fn engine(&mut self, storage: &Member) -> Option<String> {
        let key = "storage.engine";
        let format = &self.w.dataset_format;
        let mapped = self.format_has(Ability::Mapped);
        let odirect = self.w.reader_odirect;
        if !storage.has(Ability::Engines) {
            let storage = storage.name;
            self.no_engines(
                &format!("storage `{storage}` has no engines"),
                &format!(
                    "format `{format}` is read through a memory map, storage `{storage}` has none"
                ),
            );
            return None;
        }
        if self.reads_through_mpi() {
            let reason = "with `reader.file_access=mpio` MPI reads, and no engine";
            self.no_engines(reason, reason);
            return None;
        }
        let name = self.w.storage_engine.clone().unwrap_or_else(|| self.own_engine().into());
        let Some(engine) = self.catalog.engine(&name) else {
            let names: Vec<&str> = self.catalog.engines.iter().map(|e| e.name).collect();
            let more = "`libhdf5` needs a build with `--features libhdf5`";
            let hint = format!("engines there are: {}; {more}", names.join(", "));
            self.error(key, format!("there is no engine `{name}`"), &hint);
            return None;
        };
        if !self.trains() {
            return Some(name);
        }
        if odirect && !engine.has(Ability::BypassesPageCache) {
            self.error(
                "reader.odirect",
                format!("engine `{name}` reads through the page cache"),
                "set one of `reader.odirect` and `storage.engine` only",
            );
        }
        if engine.has(Ability::ServesSamples) && !self.format_has(Ability::ServesSamples) {
            self.error(
                key,
                format!("engine `{name}` cannot read format `{format}`"),
                "it is a library of another format: leave it out",
            );
            return Some(name);
        }
        if mapped && !engine.has(Ability::Mapped) {
            self.error(
                if odirect { "reader.odirect" } else { key },
                format!("format `{format}` is read through a memory map, engine `{name}` has none"),
                "leave the engine out, or use `dataset.format=indexed_binary`",
            );
        }
        Some(name)
    }

    /// The engine that does what is asked for and needed; else the first of the family.
    fn own_engine(&self) -> &'static str {
        let needed = if self.w.reader_odirect {
            Some(Ability::BypassesPageCache)
        } else {
            self.format_has(Ability::Mapped).then_some(Ability::Mapped)
        };
        let mut engines = self.catalog.engines.iter();
        engines
            .find(|engine| needed.is_none_or(|ability| engine.has(ability)))
            .map_or("", |engine| engine.name)
    }

    /// The storage, or MPI, reads in one way only: refuses what asked for another.
    fn no_engines(&mut self, reason: &str, reason_unmapped: &str) {
        for (key, is_asked) in [
            ("storage.engine", self.w.storage_engine.is_some()),
            ("reader.odirect", self.w.reader_odirect),
        ] {
            if is_asked {
                self.error(key, reason.into(), "leave it out");
            }
        }
        if self.format_has(Ability::Mapped) {
            let hint = "use `dataset.format=indexed_binary`, whose files are the same";
            self.error("dataset.format", reason_unmapped.into(), hint);
        }
    }
}
