//! What the attributes of `quietcore-macros` name. Not for other use.

pub use ::tokio::{main, test};

/// Where tokio's attribute finds a builder for a test.
pub mod for_test {
    pub use ::tokio::pin;

    /// As in tokio.
    pub mod runtime {
        /// Makes builders for tests.
        #[derive(Debug)]
        pub struct Builder;

        impl Builder {
            /// One thread, and time that can be paused.
            #[must_use]
            pub fn new_current_thread() -> crate::tokio::runtime::Builder {
                let mut builder = crate::tokio::runtime::Builder::new_current_thread();
                let _ = builder.virtual_time();
                builder
            }

            /// Several threads, and time that can be paused.
            #[must_use]
            pub fn new_multi_thread() -> crate::tokio::runtime::Builder {
                let mut builder = crate::tokio::runtime::Builder::new_multi_thread();
                let _ = builder.virtual_time();
                builder
            }
        }
    }
}

/// Where tokio's attribute finds a builder for a main function.
pub mod for_main {
    pub use ::tokio::pin;

    /// As in tokio.
    pub mod runtime {
        pub use crate::tokio::runtime::Builder;
    }
}
