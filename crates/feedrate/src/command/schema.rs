//! `feedrate schema`: prints the JSON Schema of each object that `--json` prints, derived from the type that is serialised.

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
use super::rehearse::RehearsalResult;
use super::repeat::RepeatResult;
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
  feedrate schema run          schema of `run --json` and `show --json`")]
pub(super) struct SchemaArguments {
    /// Name of the schema: the value of the key `schema`, without the version.
    #[arg(value_parser = PossibleValuesParser::new(Schema::ALL.map(Schema::name)), hide_possible_values = true)]
    name: Option<String>,
}

/// Prints a schema, or the names of all schemas.
pub(super) fn schema(arguments: &SchemaArguments) -> anyhow::Result<Exit> {
    match arguments.name.as_deref().and_then(Schema::from_name) {
        Some(schema) => messages::print(&serde_json::to_string_pretty(&schema_of(schema))?)?,
        None => messages::print(&Schema::ALL.map(Schema::versioned).join("\n"))?,
    }
    Ok(Exit::Fine)
}

/// The JSON Schema of an object, with its name and version.
pub(super) fn schema_of(schema: Schema) -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut json_schema = root_schema(schema, generator);
    json_schema.insert("title".into(), schema.versioned().into());
    let version = json_schema.pointer_mut("/properties/schema").and_then(Value::as_object_mut);
    version.into_iter().for_each(|version| {
        version.insert("const".into(), schema.versioned().into());
    });
    json_schema.to_value()
}

/// Generates the schema of the type that is serialised for each object.
fn root_schema(schema: Schema, generator: SchemaGenerator) -> schemars::Schema {
    fn schema_for<T: JsonSchema>(generator: SchemaGenerator) -> schemars::Schema {
        generator.into_root_schema_for::<Versioned<T>>()
    }
    match schema {
        Schema::Advise => schema_for::<AdviseOutput<'_>>(generator),
        Schema::Analyze => schema_for::<AnalyzeOutput<'_>>(generator),
        Schema::Bench => schema_for::<BenchOutput>(generator),
        Schema::Calibrate => schema_for::<CalibrateOutput>(generator),
        Schema::Clean => schema_for::<CleanOutput<'_>>(generator),
        Schema::Compare => schema_for::<CompareOutput<'_>>(generator),
        Schema::CompareLogs => schema_for::<CompareLogsOutput<'_>>(generator),
        Schema::Describe => schema_for::<DescribeOutput<'_>>(generator),
        Schema::Diagnose => schema_for::<Diagnosis>(generator),
        Schema::Generate => schema_for::<GenerateOutput>(generator),
        Schema::Import => schema_for::<ImportOutput<'_>>(generator),
        Schema::List => schema_for::<ListOutput<Listed>>(generator),
        Schema::Plan => schema_for::<PlanOutput<'_>>(generator),
        Schema::Plot => schema_for::<PlotOutput<'_>>(generator),
        Schema::Rehearsal => schema_for::<RehearsalResult>(generator),
        Schema::Repeat => schema_for::<RepeatResult>(generator),
        Schema::Report => schema_for::<ReportObject<'_>>(generator),
        Schema::Run => schema_for::<RunOutput<'_>>(generator),
        Schema::Scale => schema_for::<SearchResult>(generator),
        Schema::ScaleDryRun => schema_for::<ScaleForecast>(generator),
        Schema::Scan => schema_for::<FoundFolder>(generator),
        Schema::StudyDryRun => schema_for::<StudyDryRunOutput<'_>>(generator),
        Schema::StudyNew => schema_for::<StudyNewOutput<'_>>(generator),
        Schema::StudyRun => schema_for::<StudyRunOutput<'_>>(generator),
        Schema::StudyShow => schema_for::<StudyShowOutput<'_>>(generator),
        Schema::StudyStatus => schema_for::<StudyStatusOutput<'_>>(generator),
        Schema::System => schema_for::<System>(generator),
        Schema::Trials => schema_for::<TrialsResult>(generator),
        Schema::Verify => schema_for::<VerifyOutput>(generator),
        Schema::Whatif => schema_for::<WhatifOutput<'_>>(generator),
    }
}
