//! The `names!` macro, for enums whose members have names that users write.

/// Defines an enum with the constant `ALL` and the functions `name`, `meaning` and `from_name`.
#[macro_export]
macro_rules! names {
    ($(#[$enum:meta])* pub enum $type:ident { $($(#[doc = $doc:literal])* $(#[default $($mark:tt)*])? $member:ident = $name:literal,)* }) => {
        $(#[$enum])*
        pub enum $type { $($(#[doc = $doc])* $(#[default $($mark)*])? $member,)* }

        impl $type {
            /// All members in declaration order.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$member),*];

            /// Returns the name that users write.
            pub fn name(self) -> &'static str {
                match self { $(Self::$member => $name,)* }
            }

            /// Returns the member's doc comment; empty if it has none.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$member => concat!($($doc),*).trim_ascii_start(),)* }
            }

            /// Returns the member called `name`.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|member| member.name() == name)
            }
        }
    };
}
