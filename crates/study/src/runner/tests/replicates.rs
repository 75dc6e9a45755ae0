//! Which runs replicate each other, and how many are made.

use super::*;
use feedrate_analysis::precision::{Next, Until};

#[test]
fn runs_by_another_plan_are_no_replicates_and_are_doubted() {
    let study = Study::new(STUDY);
    let mut world = study.world();
    let first = Options { limit: Some(1), ..Options::default() };
    study.run(&mut world, first).unwrap();
    world.plan = "another";
    let (_, history) = study.run(&mut world, Options::default()).unwrap();
    let doubted: Vec<&str> = world
        .news
        .iter()
        .filter_map(|news| match news {
            News::Finished { label, doubts, .. } if doubts == &["replicates_differ"] => {
                Some(label.as_str())
            }
            _ => None,
        })
        .collect();
    assert_eq!(doubted, ["w/1"]);
    let rows: Vec<Row> = study.files.table().unwrap().rows().cloned().collect();
    let groups = groups(&rows, &history, &mut |_| Some(1.0));
    assert_eq!((groups[0].rows.len(), groups[0].runs), (2, 1));
}

#[test]
fn replicates_are_added_until_the_response_is_known_or_out_of_reach() {
    let study = Study::new("model,processes,overrides,run\nw,2,,N\nw,4,dataset.format=npy,N\n");
    let wanted = Wanted {
        until: Until::parse("ci=2%").unwrap(),
        response: Response::find("au_all_steps").unwrap(),
        replicates_max: 8,
    };
    let options = Options { until: Some(wanted), ..Options::default() };
    let mut world = study.world();
    study.run(&mut world, options.clone()).unwrap();
    let rows: Vec<Row> = study.files.table().unwrap().rows().cloned().collect();
    let of = |processes| rows.iter().filter(move |row| row.processes == processes);
    let replicates: Vec<Option<u32>> = of(2).map(|row| row.replicate).collect();
    assert_eq!(replicates, [None, Some(2), Some(3), Some(4), Some(5)]);
    assert!(rows.iter().all(|row| row.done) && of(4).count() < 8);
    let ends: Vec<Next> = world
        .news
        .iter()
        .filter_map(|news| match news {
            News::Known { standing, .. } => Some(standing.next),
            _ => None,
        })
        .collect();
    assert!(ends.contains(&Next::Enough) && ends.contains(&Next::OutOfReach), "{ends:?}");
    assert_eq!(study.run(&mut study.world(), options).unwrap().0.finished, 0);
}
