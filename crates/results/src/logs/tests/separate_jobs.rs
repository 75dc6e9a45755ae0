//! Tests of logs of several jobs.

use super::*;

#[test]
fn logs_of_jobs_that_follow_each_other_are_refused() {
    let job = |pid: u64, start_s: u64, end_s: u64| {
        let read_s = start_s + 1;
        format!(
            "{pid} {start_s}.0 execve(\"/bin/t\", [\"t\"], NULL) = 0 <0.1>\n\
             {pid} {read_s}.0 openat(AT_FDCWD, \"/d/{pid}.npz\", O_RDONLY) = 3 <0.1>\n\
             {pid} {read_s}.5 read(3, \"\", 9) = 9 <0.1>\n{pid} {end_s}.0 +++ exited with 0 +++\n"
        )
    };
    let import_files = |names: [&str; 2], texts: [&str; 2]| {
        let parts = names.iter().zip(texts).map(|(name, text)| part(name, text)).collect();
        strace::KIND.import(parts).map(|log| log.job.files)
    };
    let names = ["a.strace", "b.strace"];
    let refused = import_files(names, [&job(5, 10, 20), &job(6, 21, 30)]).unwrap_err();
    assert_eq!(
        (refused.to_string().as_str(), refused.hint()),
        (
            "its files are logs of separate jobs: one ended before the next began",
            "import each log alone"
        )
    );
    assert_eq!(import_files(names, [&job(5, 10, 20), &job(6, 19, 30)]).unwrap(), 2);
    assert_eq!(import_files(names, [&job(5, 10, 40), &job(6, 21, 30)]).unwrap(), 2);
    let launcher = "4 1.0 execve(\"/bin/l\", [\"l\"], NULL) = 0 <0.1>\n\
        4 2.0 fork() = 5 <0.1>\n4 2.1 fork() = 6 <0.1>\n";
    let [first, second] = [job(5, 10, 20), job(6, 21, 30)];
    let parts = [("log.4", launcher), ("log.5", &first), ("log.6", &second)];
    let parts = parts.map(|(name, text)| part(name, text)).into();
    assert_eq!(strace::KIND.import(parts).unwrap().job.files, 2, "processes of one job");
}
