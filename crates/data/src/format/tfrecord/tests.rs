//! Records that TensorFlow or anybody else may have written.
