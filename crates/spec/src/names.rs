//! Enums whose members users call by name.

/// Defines an enum with `ALL`, `name` and `named`: each member, and the name that users write.
#[macro_export]
macro_rules! names {
    ($(#[$enum:meta])* pub enum $type:ident { $($(#[doc = $doc:literal])* $(#[default $($mark:tt)*])? $member:ident = $name:literal,)* }) => {
        $(#[$enum])*
        pub enum $type { $($(#[doc = $doc])* $(#[default $($mark)*])? $member,)* }

        impl $type {
            /// All of them, in their order.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$member),*];

            /// The name that users write.
            pub fn name(self) -> &'static str {
                match self { $(Self::$member => $name,)* }
            }

            /// Its sentence, where it has one.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$member => concat!($($doc),*).trim_ascii_start(),)* }
            }

            /// The one called `name`.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|member| member.name() == name)
            }
        }
    };
}
