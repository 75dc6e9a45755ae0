//! Tests of the rows of designs, and of the bundled studies.

use super::*;
use crate::design_file;
use feedrate_results::table::Table;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn create_study(name: &str, text: &str) -> NewStudy {
    let text = design_file::parse(name, text).unwrap();
    ResolvedDesign::new(&text, unet3d_value)
        .and_then(|resolved| resolved.create_study())
        .unwrap_or_else(|problems| panic!("{name}: {problems}"))
}

/// Values of keys in `unet3d_h100_custom`.
fn unet3d_value(key: &str) -> Option<String> {
    let value = match key {
        "reader.batch_size" => "7",
        "reader.read_threads" => "4",
        "reader.file_shuffle" | "reader.sample_shuffle" => "seed",
        "dataset.format" => "npz",
        "dataset.record_length_bytes" => "146600628",
        "workflow.checkpoint" => "true",
        "checkpoint.epochs_between_checkpoints" => "2",
        _ => return None,
    };
    Some(value.to_string())
}

fn studies() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn study_text(name: &str) -> String {
    let path = studies().into_iter().find(|path| path.ends_with(name)).unwrap();
    std::fs::read_to_string(path).unwrap()
}

fn table(name: &str, text: &str) -> Table {
    Table::parse(name, text).unwrap_or_else(|problems| panic!("{name}: {problems}"))
}

#[test]
fn every_bundled_study_can_be_read() {
    for path in studies() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let rows: Vec<Row> = if name.ends_with(".csv") {
            table(&name, &text).rows().cloned().collect()
        } else {
            create_study(&name, &text).rows
        };
        let expected = match name.as_str() {
            "perf_2025.csv" => 23,
            "perf_2025_processes.csv" => 20,
            "perf_2025_blocks.toml" => 5 * (23 + 4),
            "quickstart.toml" => 12,
            "screening.toml" => 2 * (16 + 3),
            other => panic!("no test knows `{other}`"),
        };
        assert_eq!(rows.len(), expected, "{name}");
        assert!(rows.iter().all(|row| !row.done), "{name}");
    }
}

#[test]
fn the_design_in_the_guide_becomes_a_study() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/studies.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let (_, design) = guide.split_once("```toml\n").unwrap();
    let drawn = create_study("guide.toml", design.split_once("```").unwrap().0);
    // Each block has 16 points, two centre points for each of eight combinations of the other levels, and five sentinels.
    assert_eq!(drawn.rows.len(), 3 * (16 + 2 * 8 + 5));
    assert_eq!(drawn.aliases.unwrap().resolution, 5);
}

#[test]
fn the_design_of_perf_2025_is_one_factor_at_a_time() {
    let keys = |rows: &mut dyn Iterator<Item = &Row>| -> BTreeSet<_> {
        rows.map(|row| Row { replicate: None, block: None, ..row.clone() }.key()).collect()
    };
    let published = table("perf_2025.csv", &study_text("perf_2025.csv"));
    let published = keys(&mut published.rows());
    let blocked = create_study("perf_2025_blocks.toml", &study_text("perf_2025_blocks.toml"));
    assert_eq!(keys(&mut blocked.rows.iter()), published);
    assert_eq!(published.len(), 23);
    for block in 1..=5 {
        let mut block_rows =
            blocked.rows.iter().filter(|row| row.block == Some(block) && row.note.is_empty());
        assert_eq!(keys(&mut block_rows), published);
    }
}

#[test]
fn a_new_study_is_read_back_from_its_csv() {
    let text = r#"
design = "full_factorial"
replicates = 2
sentinel = 3
centre_points = 1
[baseline]
model = "quickstart"
scale = 0.5
seed = 3
[factors]
processes = { low = 1, high = 8 }
train.computation_time = { low = 0.01, high = 1.0, log = true }
dataset.data_folder = ["a b", "it's", "say \"x\"", "a,b", "end\\"]
study.data = ["/mnt/fast disk", "/mnt/x"]
study.hook.ra = [1, 256]
[hooks]
ra = "blockdev --setra $1 /dev/sda, really"
"#;
    let drawn = create_study("a.toml", text);
    let written = Table::new(drawn.rows.clone(), &drawn.comments).text();
    let read: Vec<Row> = table("a.csv", &written).rows().cloned().collect();
    assert_eq!(read, drawn.rows);
    let hooks = hook::hooks("a.csv", &written).unwrap();
    assert_eq!(hooks["ra"], "blockdev --setra $1 /dev/sda, really");
}

#[test]
fn a_level_that_cannot_be_written_is_refused() {
    for level in ["both ' and \\\"", "two\\nlines"] {
        let text = format!(
            "design = \"full_factorial\"\nbaseline.model = \"m\"\nfactors.dataset.data_folder = [\"a\", \"{level}\"]"
        );
        let text = design_file::parse("a.toml", &text).unwrap();
        let problems = ResolvedDesign::new(&text, |_| None).err().unwrap().to_string();
        assert!(problems.contains("cannot be written in a row"), "{problems}");
    }
}

#[test]
fn a_design_that_sets_a_key_twice_is_refused() {
    let text = "design = \"full_factorial\"\nbaseline = { model = \"m\", epochs = 2 }\nfactors.train.epochs = [1, 2]";
    let text = design_file::parse("a.toml", text).unwrap();
    let problems =
        ResolvedDesign::new(&text, |_| None).unwrap().create_study().unwrap_err().to_string();
    assert!(problems.contains("train.epochs: is set by the column `epochs`"), "{problems}");
}

/// Montgomery, section 8.4: the aliases of 2^(7-3) with E = ABC, F = BCD, G = ACD.
#[test]
fn the_comments_of_a_fraction_have_its_alias_table() {
    let drawn = create_study("screening.toml", &study_text("screening.toml"));
    insta::assert_snapshot!(drawn.comments.join("\n"), @"
    design: fractional. 2^(k-p): a fraction of 2^k, with a table of the effects that it confounds.
    estimates: one estimate for each chain of the alias table; from resolution 5 on, all effects of up to two factors
    baseline: unet3d_h100_custom, 5 epochs, 1 process
    factor processes: 1 (baseline), 8
    factor read_threads (reader.read_threads): 1, 16
    factor prefetch_size (reader.prefetch_size): 1, 8
    factor batch_size (reader.batch_size): 1, 7 (baseline)
    factor file_shuffle (reader.file_shuffle): off, seed (baseline)
    factor format (dataset.format): npz (baseline), hdf5
    factor engine (storage.engine): psync, direct
    runs: 38: 16 points, 2 replicates, 6 sentinels
    a block is a replicate, random order in each block, seed 7
    factors: A = processes, B = read_threads, C = prefetch_size, D = batch_size, E = file_shuffle, F = format, G = engine
    generators: E = ABC, F = BCD, G = ACD
    resolution 4
    A = BCE = BFG = CDG = DEF = ABCDF = ABDEG = ACEFG
    B = ACE = AFG = CDF = DEG = ABCDG = ABDEF = BCEFG
    C = ABE = ADG = BDF = EFG = ABCFG = ACDEF = BCDEG
    D = ACG = AEF = BCF = BEG = ABCDE = ABDFG = CDEFG
    E = ABC = ADF = BDG = CFG = ABEFG = ACDEG = BCDEF
    F = ABG = ADE = BCD = CEG = ABCEF = ACDFG = BDEFG
    G = ABF = ACD = BDE = CEF = ABCEG = ADEFG = BCDFG
    AB = CE = FG = ACDF = ADEG = BCDG = BDEF = ABCEFG
    AC = BE = DG = ABDF = AEFG = BCFG = CDEF = ABCDEG
    AD = CG = EF = ABCF = ABEG = BCDE = BDFG = ACDEFG
    AE = BC = DF = ABDG = ACFG = BEFG = CDEG = ABCDEF
    AF = BG = DE = ABCD = ACEG = BCEF = CDFG = ABDEFG
    AG = BF = CD = ABDE = ACEF = BCEG = DEFG = ABCDFG
    BD = CF = EG = ABCG = ABEF = ACDE = ADFG = BCDEFG
    ");
    assert_eq!(drawn.aliases.unwrap().resolution, 4);
}
