//! What the attributes of `quietcore-macros` name. Not for other use.
//!
//! Tokio's attributes call `runtime::Builder` in the module that they are given: there is one for each kind
//! of time that a function may want.

pub use ::tokio::{main, test};

macro_rules! builders {
    ($($module:ident: $what:literal, $($setting:ident($($value:literal)?))*;)*) => {$(
        #[doc = concat!("A builder for a function ", $what, ".")]
        pub mod $module {
            pub use ::tokio::pin;

            /// As in tokio.
            pub mod runtime {
                use crate::runtime;

                #[doc = concat!("Makes builders for a function ", $what, ".")]
                #[derive(Debug)]
                pub struct Builder;

                impl Builder {
                    /// With one thread.
                    #[must_use]
                    pub fn new_current_thread() -> runtime::Builder {
                        Self::set(runtime::Builder::new_current_thread())
                    }

                    /// With several threads.
                    #[must_use]
                    pub fn new_multi_thread() -> runtime::Builder {
                        Self::set(runtime::Builder::new_multi_thread())
                    }

                    #[allow(unused_mut, reason = "not every kind has settings")]
                    fn set(mut builder: runtime::Builder) -> runtime::Builder {
                        $(let _ = builder.$setting($($value)?);)*
                        builder
                    }
                }
            }
        }
    )*};
}

builders! {
    for_main: "that is not a test",;
    for_test: "whose time can be paused", virtual_time();
    for_paused: "whose time is paused from the start", start_paused(true);
}
