//! A storage in memory that loses power: what was not synced is gone then, contents and names alike.

use super::files::FileSystem;
use super::output::OutputFile;
use feedrate_data::storage::NameKind;
use feedrate_spec::part::create_part;
use feedrate_spec::plan::WriteInterface;
use std::collections::BTreeMap;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Names that outlive a loss of power.
#[derive(Clone, Copy, Debug)]
pub(super) enum Names {
    /// As they were when their folder was synced.
    Synced,
    /// As they were last.
    All,
    /// Each by chance, as one or the other.
    ByChance(u64),
}

#[derive(Default)]
pub(super) struct FragileFiles {
    state: Arc<Mutex<State>>,
}

type Directory = BTreeMap<PathBuf, usize>;

#[derive(Default)]
struct State {
    /// Content, and what of it is synced.
    files: Vec<(Vec<u8>, Vec<u8>)>,
    names: Directory,
    synced_names: Directory,
    left: Option<u64>,
}

impl State {
    fn operate(&mut self) -> io::Result<()> {
        match &mut self.left {
            Some(0) => return Err(io::Error::other("no power")),
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(())
    }

    fn find(&self, path: &Path) -> io::Result<usize> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

struct Open {
    state: Arc<Mutex<State>>,
    file: usize,
}

impl FragileFiles {
    /// Every operation fails after `operations` more.
    pub(super) fn fail_after(&self, operations: u64) {
        self.state.lock().unwrap().left = Some(operations);
    }

    /// The files that are found when power is back.
    pub(super) fn after_power_failure(&self, names: Names) -> FragileFiles {
        let state = self.state.lock().unwrap();
        let files = state.files.iter().map(|(_, synced)| (synced.clone(), synced.clone()));
        let paths = state.names.keys().chain(state.synced_names.keys());
        let kept = paths.enumerate().filter_map(|(i, path)| {
            let last = match names {
                Names::Synced => false,
                Names::All => true,
                Names::ByChance(seed) => {
                    let chance = crc32fast::hash(format!("{seed} {i}").as_bytes());
                    chance.is_multiple_of(2)
                }
            };
            let from = if last { &state.names } else { &state.synced_names };
            from.get(path).map(|&file| (path.clone(), file))
        });
        let left = State { files: files.collect(), names: kept.collect(), ..State::default() };
        FragileFiles { state: Arc::new(Mutex::new(left)) }
    }
}

impl FileSystem for FragileFiles {
    fn create_folder(&self, _: &Path) -> io::Result<Vec<PathBuf>> {
        self.state.lock().unwrap().operate()?;
        Ok(Vec::new())
    }

    fn free_bytes(&self, _: &Path) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    fn create_part(
        &self,
        path: &Path,
        _: u64,
        _: WriteInterface,
    ) -> io::Result<(PathBuf, Box<dyn OutputFile>)> {
        let mut state = self.state.lock().unwrap();
        state.operate()?;
        let file = state.files.len();
        let name = path.file_name().unwrap().to_str().unwrap();
        let part = create_part(name, 7, |name| {
            let part = path.with_file_name(name);
            let is_taken = state.names.contains_key(&part);
            if is_taken { Err(io::ErrorKind::AlreadyExists.into()) } else { Ok(part) }
        })?;
        state.files.push((Vec::new(), Vec::new()));
        state.names.insert(part.clone(), file);
        Ok((part, Box::new(Open { state: self.state.clone(), file })))
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let state = self.state.lock().unwrap();
        let inside = state.names.keys().filter_map(|path| path.strip_prefix(folder).ok());
        let names = inside.filter_map(|path| Some(path.iter().next()?.to_str()?.to_string()));
        Ok(names.collect())
    }

    fn open(&self, path: &Path) -> io::Result<(Box<dyn Read>, u64)> {
        let state = self.state.lock().unwrap();
        let file = state.find(path)?;
        let content = state.files[file].0.clone();
        let bytes = content.len() as u64;
        Ok((Box::new(Cursor::new(content)), bytes))
    }

    fn kind(&self, path: &Path) -> io::Result<Option<NameKind>> {
        let state = self.state.lock().unwrap();
        let found = state.find(path).ok();
        Ok(found.map(|file| NameKind::File { bytes: state.files[file].0.len() as u64 }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        state.operate()?;
        let file = state.find(from)?;
        state.names.remove(from);
        state.names.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        state.operate()?;
        state.find(path)?;
        state.names.remove(path);
        Ok(())
    }

    fn remove_empty_folder(&self, _: &Path) -> io::Result<()> {
        self.state.lock().unwrap().operate()
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        state.operate()?;
        let inside = |path: &Path| path.parent() == Some(folder);
        let now: Vec<_> = state.names.iter().filter(|(path, _)| inside(path)).collect();
        let now: Directory = now.into_iter().map(|(path, &file)| (path.clone(), file)).collect();
        state.synced_names.retain(|path, _| !inside(path));
        state.synced_names.extend(now);
        Ok(())
    }
}

impl OutputFile for Open {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        state.operate()?;
        state.files[self.file].0.extend(bytes);
        Ok(())
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        state.operate()?;
        state.files[self.file].0[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        state.operate()?;
        let (content, synced) = &mut state.files[self.file];
        synced.clone_from(content);
        Ok(())
    }
}
