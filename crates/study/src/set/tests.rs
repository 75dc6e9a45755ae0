//! Sets of runs made by hand.
