//! The search of `scale`: the numbers it can try with the dataset of each, and a forecast of a search. [`crate::chooser`] decides on the runs.

mod options;
mod range;
mod forecast;

pub use forecast::{DatasetForecast, ForecastAtRate, ScaleForecast};
pub use options::ScaleOptions;
pub use range::{SearchRange, SearchedDataset};
