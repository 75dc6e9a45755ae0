//! Typed function tables for libraries that are opened at run time.

/// Defines a struct of function addresses, looked up by symbol name. The caller guarantees that the signatures match the library's
/// header and that the library stays open.
macro_rules! functions {
    ($table:ident: $($field:ident $name:literal ($($argument:ty),*),)*) => {
        /// Function addresses of a library.
        #[derive(Clone, Copy)]
        pub(super) struct $table {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> std::ffi::c_int,)*
        }

        impl $table {
            /// Looks up all functions; `Err` is the name of the first missing symbol.
            pub(super) fn find(library: &libloading::os::unix::Library) -> Result<Self, &'static str> {
                Ok($table {
                    // SAFETY: these are the signatures that the library's header gives these names.
                    $($field: *unsafe { library.get($name.as_bytes()) }.map_err(|_| $name)?,)*
                })
            }
        }
    };
}
pub(crate) use functions;
