//! Which versions of other packages were compiled in.

/// The version that the lock file names for `package`; the first of several.
#[must_use]
pub fn locked(package: &str) -> Option<&'static str> {
    let lock = include_str!("../Cargo.lock");
    let (_, after) = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?;
    after.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a version is found for what is there only. Method: one of each.
    #[test]
    fn versions_are_of_the_lock_file() {
        assert!(locked("tokio").is_some_and(|version| version.starts_with("1.")));
        assert!(locked("no-such-package").is_none());
    }
}
