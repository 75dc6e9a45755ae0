//! The storage of a plan: its kind, its engine, and whether the format can lie on it.

use super::Builder;
use crate::catalog::{Ability, Member};
use crate::plan::{Cache, StoragePlan};

/// Engine that reads files where no other is asked for.
const ENGINE: &str = "psync";

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
        StoragePlan {
            engine,
            kind,
            throttle_bytes_per_second: self.w.storage_throttle_bytes_per_second,
            throttle_latency_s: self.w.storage_throttle_latency_seconds,
            delay_s: self.w.storage_delay_seconds,
        }
    }

    /// A page cache that is not there, or takes no part.
    fn refuse_cache(&mut self, storage: Option<&Member>, engine: Option<&str>) {
        let (flag, does) = match self.request.cache {
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
        if self.request.cache != Cache::Warm {
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
        let format = self.catalog.format(&self.w.dataset_format);
        let mapped = format.is_some_and(|format| format.member.has(Ability::Mapped));
        let odirect = self.w.reader_odirect;
        let asked = match (self.w.storage_engine.clone(), odirect, mapped) {
            (Some(asked), ..) => Some(asked),
            (None, true, _) => Some("direct".into()),
            (None, false, true) => Some("mmap".into()),
            (None, false, false) => None,
        };
        if !storage.has(Ability::Engines) {
            self.no_engines(storage, mapped);
            return None;
        }
        if self.reads_through_mpi() {
            self.no_engine_but_mpi(mapped);
            return None;
        }
        let name = asked.unwrap_or_else(|| ENGINE.into());
        let Some(engine) = self.catalog.engine(&name) else {
            let names: Vec<&str> = self.catalog.engines.iter().map(|e| e.name).collect();
            self.error(
                key,
                format!("there is no engine `{name}`"),
                &format!("engines there are: {}{}", names.join(", "), built_with(&name)),
            );
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
        let has_library = format.is_some_and(|format| format.member.has(Ability::ServesSamples));
        if engine.has(Ability::ServesSamples) && !has_library {
            self.error(
                key,
                format!("engine `{name}` cannot read format `{}`", self.w.dataset_format),
                "it is a library of another format: leave it out",
            );
            return Some(name);
        }
        if mapped && !engine.has(Ability::Mapped) {
            self.error(
                if odirect { "reader.odirect" } else { key },
                format!(
                    "format `{}` is read through a memory map, engine `{name}` has none",
                    self.w.dataset_format
                ),
                "leave the engine out, or use `dataset.format=indexed_binary`",
            );
        }
        Some(name)
    }

    /// The storage reads in one way only: what asked for another.
    fn no_engines(&mut self, storage: &Member, mapped: bool) {
        let storage = storage.name;
        for (key, asked) in [
            ("storage.engine", self.w.storage_engine.is_some()),
            ("reader.odirect", self.w.reader_odirect),
        ] {
            if asked {
                self.error(key, format!("storage `{storage}` has no engines"), "leave it out");
            }
        }
        if mapped {
            self.error(
                "dataset.format",
                format!(
                    "format `{}` is read through a memory map, storage `{storage}` has none",
                    self.w.dataset_format
                ),
                "use `dataset.format=indexed_binary`, whose files are the same",
            );
        }
    }
}

/// Addition to the hint about an engine that not every build has.
fn built_with(name: &str) -> &'static str {
    match name {
        "libhdf5" => "; that one needs a build with `--features libhdf5`",
        _ => "",
    }
}
