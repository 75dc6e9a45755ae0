//! Functions of a library that is opened at run time, by name, each with its signature.

/// Makes a table of addresses. Whoever finds them says that the signatures are those of the library, which stays open.
macro_rules! functions {
    ($table:ident: $($field:ident $name:literal ($($argument:ty),*),)*) => {
        /// Addresses of functions.
        #[derive(Clone, Copy)]
        pub(super) struct $table {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> std::ffi::c_int,)*
        }

        impl $table {
            /// Find all of them; `Err` names the first that is not there.
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
