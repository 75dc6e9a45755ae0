//! Plans the search of `scale`: the numbers that it can try, their datasets, and a forecast. [`crate::chooser`] selects the runs.

mod options;
mod range;
mod forecast;

pub use forecast::{DatasetForecast, ForecastAtRate, ScaleForecast};
pub use options::ScaleOptions;
pub use range::{SearchRange, SearchedDataset};
