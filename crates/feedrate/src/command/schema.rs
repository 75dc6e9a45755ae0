//! `feedrate schema`: the JSON Schema of each object that `--json` prints, made from the type that is serialised.

use super::advise::{AdviseOutput, WhatifOutput};
use super::analyze::AnalyzeOutput;
use super::bench::BenchOutput;
use super::calibrate::CalibrateOutput;
use super::clean::CleanOutput;
use super::compare::CompareOutput;
use super::compare_logs::CompareLogsOutput;
use super::import::ImportOutput;
use super::list::{DescribeOutput, ListOutput, Listed};
use super::plan::PlanOutput;
use super::plot::PlotOutput;
use super::scale::SearchResult;
use super::study::{
    StudyDryRunOutput, StudyNewOutput, StudyRunOutput, StudyShowOutput, StudyStatusOutput,
};
use crate::exit::Exit;
use crate::messages;
use crate::summary::RunOutput;
use clap::Args;
use clap::builder::PossibleValuesParser;
use feedrate_measure::record::System;
use feedrate_report::output::{ReportObject, Schema, Versioned};
use feedrate_results::diagnosis::Diagnosis;
use feedrate_results::trials::TrialsResult;
use feedrate_session::folder::FoundFolder;
use feedrate_session::generate::{GenerateOutput, VerifyOutput};
use feedrate_study::scale::ScaleForecast;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

/// `feedrate schema`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  feedrate schema              names of all schemas
  feedrate schema run          of `run --json` and `show --json`")]
pub(super) struct SchemaArguments {
    /// The schema, as `schema` in the object names it, without its version.
    #[arg(value_parser = PossibleValuesParser::new(Schema::ALL.map(Schema::name)), hide_possible_values = true)]
    name: Option<String>,
}

/// Print the schema, or the names.
pub(super) fn schema(arguments: &SchemaArguments) -> anyhow::Result<Exit> {
    match arguments.name.as_deref().and_then(Schema::named) {
        Some(schema) => messages::print(&serde_json::to_string_pretty(&schema_of(schema))?)?,
        None => messages::print(&Schema::ALL.map(Schema::versioned).join("\n"))?,
    }
    Ok(Exit::Fine)
}

pub(super) fn schema_of(of: Schema) -> Value {
    let mut schema = root(of, SchemaSettings::draft2020_12().for_serialize().into_generator());
    schema.insert("title".into(), of.versioned().into());
    let version = schema.pointer_mut("/properties/schema").and_then(Value::as_object_mut);
    version.into_iter().for_each(|version| {
        version.insert("const".into(), of.versioned().into());
    });
    schema.to_value()
}

/// The type of each object, with the version before it.
fn root(schema: Schema, generator: SchemaGenerator) -> schemars::Schema {
    fn of<T: JsonSchema>(generator: SchemaGenerator) -> schemars::Schema {
        generator.into_root_schema_for::<Versioned<T>>()
    }
    match schema {
        Schema::Advise => of::<AdviseOutput<'_>>(generator),
        Schema::Analyze => of::<AnalyzeOutput<'_>>(generator),
        Schema::Bench => of::<BenchOutput>(generator),
        Schema::Calibrate => of::<CalibrateOutput>(generator),
        Schema::Clean => of::<CleanOutput<'_>>(generator),
        Schema::Compare => of::<CompareOutput<'_>>(generator),
        Schema::CompareLogs => of::<CompareLogsOutput<'_>>(generator),
        Schema::Describe => of::<DescribeOutput<'_>>(generator),
        Schema::Diagnose => of::<Diagnosis>(generator),
        Schema::Generate => of::<GenerateOutput>(generator),
        Schema::Import => of::<ImportOutput<'_>>(generator),
        Schema::List => of::<ListOutput<Listed>>(generator),
        Schema::Plan => of::<PlanOutput<'_>>(generator),
        Schema::Plot => of::<PlotOutput<'_>>(generator),
        Schema::Report => of::<ReportObject<'_>>(generator),
        Schema::Run => of::<RunOutput<'_>>(generator),
        Schema::Scale => of::<SearchResult>(generator),
        Schema::ScaleDryRun => of::<ScaleForecast>(generator),
        Schema::Scan => of::<FoundFolder>(generator),
        Schema::StudyDryRun => of::<StudyDryRunOutput<'_>>(generator),
        Schema::StudyNew => of::<StudyNewOutput<'_>>(generator),
        Schema::StudyRun => of::<StudyRunOutput<'_>>(generator),
        Schema::StudyShow => of::<StudyShowOutput<'_>>(generator),
        Schema::StudyStatus => of::<StudyStatusOutput<'_>>(generator),
        Schema::System => of::<System>(generator),
        Schema::Trials => of::<TrialsResult>(generator),
        Schema::Verify => of::<VerifyOutput>(generator),
        Schema::Whatif => of::<WhatifOutput<'_>>(generator),
    }
}
