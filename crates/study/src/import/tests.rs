//! Folders of DLIO runs, whole and broken, as text files made here.

use super::*;
use std::fs;
