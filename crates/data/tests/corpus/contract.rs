//! Checks the contract of every reader on any file, even a hostile one: the reader ends, stays within bounds, and returns
//! the same result for any order of samples and any length of pieces. The targets of `fuzz/` compile this file too, so
//! it uses only the public interface.

use feedrate_data::format::{
    Cursor, CursorOptions, Discard, Format, FormatError, Need, PayloadSink,
};
use feedrate_spec::catalog::Ability;
use feedrate_spec::shape::{Dims, Element, FileShape};

/// Separates the parts of a file, and the last part from its plan, such as `float32 3 4 5` for 3 samples of 4×5.
const SEPARATOR: &[u8] = b"\n=part=\n";
const FILE: u64 = 5;
const SAMPLES_MAX: u64 = 4;
/// Number of the last sample in the largest plan.
const SAMPLE_LAST: u64 = u64::MAX - 1;
/// Upper limit on the payload bytes that are compared. Only the length of the rest is compared.
const COMPARED_BYTES: usize = 64 << 10;
/// The sink refuses longer payload, because a few compressed bytes can expand to any length.
const PAYLOAD_BYTES_MAX: u64 = 1 << 20;
/// Length of a piece that contains most corpus files completely.
const WHOLE_BYTES: usize = 16 << 10;

/// Reads the file that `input` encodes. It is read without a plan and with plans, in pieces of several lengths, and with
/// samples in order and out of order.
///
/// # Panics
/// The reader breaks its contract.
pub(crate) fn check_contract(format: &Format, input: &[u8]) {
    let file = File::parse(format, input);
    let mut plans = file.plan.map_or(small_plans(), |plan| vec![plan]);
    if !format.member().has(Ability::NeedsPlan) {
        let found = compare_ways(format, &file, None);
        plans.extend(found.filter(|found| !plans.contains(found)));
    }
    for plan in plans {
        compare_ways(format, &file, Some(&plan));
    }
}

fn small_plans() -> Vec<FileShape> {
    let plan =
        |element, samples| Dims::new(&[4, 5]).map(|dims| FileShape { dims, element, samples });
    [plan(Element::Float32, 3), plan(Element::Uint8, 1)].into_iter().flatten().collect()
}

struct File<'i> {
    parts: Vec<&'i [u8]>,
    plan: Option<FileShape>,
}

impl<'i> File<'i> {
    fn parse(format: &Format, input: &'i [u8]) -> Self {
        let mut rest = Some(input);
        let mut next = || {
            let bytes = rest.unwrap_or_default();
            let mark = bytes.windows(SEPARATOR.len()).position(|window| window == SEPARATOR);
            rest = mark.map(|offset| &bytes[offset + SEPARATOR.len()..]);
            &bytes[..mark.unwrap_or(bytes.len())]
        };
        // No cursor requests an optional part.
        let read = |part: &feedrate_data::format::Part| if part.optional { &[] } else { next() };
        let parts = format.parts.iter().map(read).collect();
        let plan = std::str::from_utf8(next()).ok().and_then(parse_plan);
        File { parts, plan }
    }

    fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.len() as u64).sum()
    }
}

fn parse_plan(text: &str) -> Option<FileShape> {
    let mut words = text.split_whitespace();
    let name = words.next()?;
    let element = Element::ALL.into_iter().find(|element| element.name() == name)?;
    let samples = words.next()?.parse().ok().filter(|&samples| samples > 0)?;
    let dims: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
    let shape = FileShape { dims: Dims::new(&dims?)?, element, samples };
    // The planner accepts only plans whose sizes do not overflow.
    (0 < shape.sample_bytes() && shape.payload_bytes() < 1 << 60).then_some(shape)
}

/// Result of reading one sample.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    sample: u64,
    /// The payload and the shape stored in the file; `None` if the file was refused.
    read: Option<(PayloadStart, Option<FileShape>)>,
}

/// Reads some samples in several ways and checks that the results are equal. Returns the shape stored in the file.
fn compare_ways(format: &Format, file: &File, expected: Option<&FileShape>) -> Option<FileShape> {
    let mut found = None;
    let mut samples: Vec<u64> = (0..SAMPLES_MAX).collect();
    let first = read_all(format, file, expected, 4096, &samples, &mut found);
    let last = found.or(expected.copied()).map_or(0, |shape| shape.samples.saturating_sub(1));
    samples.reverse();
    samples.extend([last, SAMPLE_LAST, 1, 1]);
    let others = read_all(format, file, expected, WHOLE_BYTES, &samples, &mut None);
    for other in &others {
        if let Some(same) = first.iter().find(|outcome| outcome.sample == other.sample) {
            assert_eq!(same, other, "in order in small pieces, and out of order in large pieces");
        }
    }
    let options = CursorOptions {
        piece_bytes: 4096,
        library: None,
        check_crc: false,
        wants_payload: false,
        is_payload_only: false,
        decodes_members: false,
        members: [].into(),
        examines_members: false,
    };
    let mut cursor = format.reader(&options);
    for sample in [0, last] {
        let _ = read(&mut *cursor, file, expected, (sample, 4096), &mut Discard);
    }
    found
}

fn read_all(
    format: &Format,
    file: &File,
    expected: Option<&FileShape>,
    piece_bytes: usize,
    samples: &[u64],
    found: &mut Option<FileShape>,
) -> Vec<Outcome> {
    let options = CursorOptions {
        piece_bytes,
        library: None,
        check_crc: true,
        wants_payload: true,
        is_payload_only: false,
        decodes_members: expected.is_none(),
        members: [].into(),
        examines_members: false,
    };
    let mut cursor = format.reader(&options);
    let mut outcomes = Vec::new();
    for &sample in samples {
        let mut collect = PayloadStart::default();
        let outcome = read(&mut *cursor, file, expected, (sample, piece_bytes), &mut collect);
        if let Some(shape) = cursor.file_shape() {
            let stored = found.get_or_insert(shape);
            // Without a fixed end, a truncated file can look like a file with fewer samples.
            let has_fixed_end = !format.member().has(Ability::LooseEnd);
            let same = stored.samples == shape.samples || !has_fixed_end;
            assert!(same, "held {} samples, now {}", stored.samples, shape.samples);
            if outcome.is_ok() && !format.member().has(Ability::Undescribed) {
                assert!(sample < shape.samples || !has_fixed_end, "there is no sample {sample}");
                let is_complete = collect.bytes == shape.sample_bytes();
                assert!(is_complete || cursor.undecoded_type().is_some(), "a sample is complete");
            }
        }
        let read = outcome.is_ok().then_some((collect, cursor.file_shape()));
        outcomes.push(Outcome { sample, read });
    }
    outcomes
}

/// Reads one sample as a driver does.
fn read(
    cursor: &mut dyn Cursor,
    file: &File,
    expected: Option<&FileShape>,
    (sample, piece_bytes): (u64, usize),
    sink: &mut dyn PayloadSink,
) -> Result<(), FormatError> {
    let requests_max = file.bytes() + 100;
    let fed_max = 16 * file.bytes() + (64 << 10);
    let mut fed = 0;
    cursor.begin(FILE, sample, expected);
    for _ in 0..requests_max {
        match cursor.need()? {
            Need::Done => return Ok(()),
            Need::Buffered => cursor.feed(&[], sink)?,
            Need::Length { part } => {
                cursor.feed(&(file.parts[part].len() as u64).to_le_bytes(), sink)?;
            }
            Need::Bytes { part, offset, len, .. } | Need::Again { part, offset, len } => {
                assert!(0 < len && len <= piece_bytes, "requests {len} bytes");
                let part = file.parts[part];
                let start =
                    usize::try_from(offset).map_or(part.len(), |offset| offset.min(part.len()));
                let bytes = &part[start..part.len().min(start.saturating_add(len))];
                fed += bytes.len() as u64;
                assert!(fed <= fed_max, "read {fed} of {} bytes", file.bytes());
                cursor.feed(bytes, sink)?;
            }
        }
    }
    panic!("a file of {} bytes caused {requests_max} requests", file.bytes());
}

/// Collects the start of the payload, and its length.
#[derive(Debug, Default, PartialEq, Eq)]
struct PayloadStart {
    start: Vec<u8>,
    bytes: u64,
}

impl PayloadSink for PayloadStart {
    fn payload(&mut self, offset: u64, bytes: &[u8]) -> Result<(), FormatError> {
        assert_eq!(offset, self.bytes, "payload arrives in order");
        let kept = bytes.len().min(COMPARED_BYTES - self.start.len());
        self.start.extend_from_slice(&bytes[..kept]);
        self.bytes += bytes.len() as u64;
        if self.bytes > PAYLOAD_BYTES_MAX {
            return Err(FormatError::new(0, "more payload than the sink accepts"));
        }
        Ok(())
    }
}
