//! Episodes of demonstrations, as robomimic stores them: groups whose names differ in a number, with datasets of the same names and shapes.
//! Their rows are the samples, as in robomimic's loader.
//!
//! Groups whose datasets all have the same number of rows are no episodes: they can also be parts of a sample, such as cameras.

use super::SHARE_DIVISOR;
use super::message::RecordDataset;
use std::ops::Range;

/// Consecutive samples, which are the rows of the same datasets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Episode {
    pub(super) first_sample: u64,
    /// Number of its first dataset among those that are read. Its last one precedes the next episode.
    pub(super) first_dataset: usize,
}

/// Where a sample is.
pub(super) struct SamplePlace {
    pub(super) row: u64,
    pub(super) datasets: Range<usize>,
}

/// A dataset that can be a part of an episode.
#[derive(Clone, Copy)]
pub(super) struct EpisodePart<'f> {
    /// Its path.
    pub(super) name: &'f str,
    /// Number of its object.
    pub(super) object: usize,
    pub(super) array: &'f RecordDataset,
}

/// The episodes of a file.
pub(super) struct FoundEpisodes {
    pub(super) episodes: Vec<Episode>,
    /// Numbers of the objects that are read, one episode after another.
    pub(super) objects: Vec<usize>,
    pub(super) samples: u64,
}

/// A part in a group with a number.
struct NumberedPart<'f> {
    /// Number of digits, and the digits: the order of numbers.
    number: (usize, &'f str),
    /// Path in the group.
    path: &'f str,
    object: usize,
    array: &'f RecordDataset,
}

/// Finds the episodes that have the largest of some datasets. All datasets are read if they are `chosen`, else those that are comparable with the
/// largest of their episode and have as many rows. `None` if there are none.
pub(super) fn find_episodes(parts: Vec<EpisodePart>, are_chosen: bool) -> Option<FoundEpisodes> {
    let largest = parts.iter().max_by_key(|part| part.array.bytes())?;
    let stem = stem_of_group(largest.name)?;
    let mut numbered: Vec<NumberedPart> =
        parts.iter().filter_map(|part| NumberedPart::new(part, stem)).collect();
    if are_chosen && numbered.len() < parts.len() {
        return None;
    }
    numbered.sort_unstable_by_key(|part| (part.number, part.object));
    let groups = numbered.chunk_by(|a, b| a.number == b.number);
    let groups: Option<Vec<Vec<&NumberedPart>>> =
        groups.map(|group| parts_to_read(group, are_chosen)).collect();
    let groups = groups?;
    let first = groups.first()?;
    let rows = |group: &[&NumberedPart]| group.first().map_or(0, |part| part.array.dims[0]);
    let have_equal_rows = groups.iter().all(|group| rows(group) == rows(first));
    if have_equal_rows || !groups.iter().all(|group| are_alike(first, group)) {
        return None;
    }
    let mut found = FoundEpisodes { episodes: Vec::new(), objects: Vec::new(), samples: 0 };
    for group in &groups {
        let first_dataset = found.objects.len();
        found.episodes.push(Episode { first_sample: found.samples, first_dataset });
        found.objects.extend(group.iter().map(|part| part.object));
        found.samples = found.samples.checked_add(rows(group))?;
    }
    Some(found)
}

/// The path of the outermost group with a number at its end, without the number.
fn stem_of_group(name: &str) -> Option<&str> {
    let is_digit = |c: char| c.is_ascii_digit();
    let mut groups = name.match_indices('/').map(|(end, _)| &name[..end]);
    let group = groups.find(|group| group.ends_with(is_digit))?;
    Some(group.trim_end_matches(is_digit))
}

impl<'f> NumberedPart<'f> {
    /// Returns a part in a group whose path is `stem` and a number.
    fn new(part: &EpisodePart<'f>, stem: &str) -> Option<Self> {
        let (digits, path) = part.name.strip_prefix(stem)?.split_once('/')?;
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = (digits.len(), digits);
        let EpisodePart { object, array, .. } = *part;
        is_number.then_some(NumberedPart { number, path, object, array })
    }
}

/// The parts of a group that are read; `None` if not all of those that were chosen can be read together.
fn parts_to_read<'p, 'f>(
    group: &'p [NumberedPart<'f>],
    are_chosen: bool,
) -> Option<Vec<&'p NumberedPart<'f>>> {
    let largest = group.iter().map(|part| part.array).max_by_key(|array| array.bytes())?;
    let is_comparable = |array: &RecordDataset| {
        array.dims[0] == largest.dims[0]
            && (are_chosen || largest.bytes() / SHARE_DIVISOR <= array.bytes())
    };
    let read: Vec<&NumberedPart> = group.iter().filter(|part| is_comparable(part.array)).collect();
    (!are_chosen || read.len() == group.len()).then_some(read)
}

/// Whether two groups have parts of the same names and shapes, apart from their rows.
fn are_alike(first: &[&NumberedPart], other: &[&NumberedPart]) -> bool {
    first.len() == other.len()
        && first.iter().zip(other).all(|(a, b)| {
            a.path == b.path
                && a.array.dims()[1..] == b.array.dims()[1..]
                && a.array.element == b.array.element
                && !a.array.element.is_reference()
        })
}
