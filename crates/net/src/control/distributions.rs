//! Tables of delays by name: the files `*.dist` that `tc` reads, where `tc` looks for them.
//!
//! A name is that of a file in the folder that `TC_LIB_DIR` names, or else in the first of the system's
//! folders that has it. They are read by the program that has the devices, when a line names them, and not
//! again. Source: tc-netem(8), `tc` by behaviour. Deviations: a word that ends in `.dist` is itself the path
//! of a file (`tc` knows no other folder); what is no regular file, or longer than a mebibyte, is not read.

use quietcore_qdisc::Distribution;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// What a file may have: 16384 numbers of six characters with a blank, several times.
const BYTES_MAX: u64 = 1 << 20;

/// Where distributions of Linux install them; others have a folder per kind of machine in `/usr/lib`.
const FOLDERS: [&str; 3] = ["/usr/lib/tc", "/usr/lib64/tc", "/usr/share/tc"];

/// The table that a word behind `distribution` names, or why there is none.
pub(super) fn distribution(word: &str) -> Result<Distribution, String> {
    find(word, &folders(std::env::var_os("TC_LIB_DIR")))
}

/// Where files are looked for; `named` is the only place, if it is.
fn folders(named: Option<OsString>) -> Vec<PathBuf> {
    if let Some(named) = named {
        return vec![named.into()];
    }
    let machines = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let mut others: Vec<PathBuf> = machines.map(|entry| entry.path().join("tc")).collect();
    others.retain(|folder| folder.is_dir());
    others.sort();
    FOLDERS.iter().map(PathBuf::from).chain(others).collect()
}

fn find(word: &str, folders: &[PathBuf]) -> Result<Distribution, String> {
    if word.ends_with(".dist") {
        return read(Path::new(word));
    }
    let file = format!("{word}.dist");
    match folders.iter().map(|folder| folder.join(&file)).find(|path| path.exists()) {
        Some(path) => read(&path),
        None => {
            let folders: Vec<String> = folders.iter().map(|folder| format!("{folder:?}")).collect();
            let hint = "`TC_LIB_DIR` may name another folder";
            Err(format!("there is no file {file:?} in {} ({hint})", folders.join(", ")))
        }
    }
}

fn read(path: &Path) -> Result<Distribution, String> {
    let text = text(path).map_err(|error| format!("{path:?}: {error}"))?;
    Distribution::from_text(&text).map_err(|error| format!("{path:?}: {error}"))
}

fn text(path: &Path) -> io::Result<String> {
    // Before it is opened: a pipe would wait for its other end.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut text = String::new();
    if File::open(path)?.take(BYTES_MAX + 1).read_to_string(&mut text)? as u64 > BYTES_MAX {
        return Err(io::Error::other("it is longer than 1 MiB"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::{FOLDERS, find, folders};
    use std::fs;
    use std::path::PathBuf;

    /// A folder that is gone behind the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("quietcore-dist-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).expect("a folder");
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Goal: a name is looked for in each folder, in order; a path is a file itself; what is wrong is told
    /// with the file. Method: two folders, a table in both and one in the second, paths, what is no table.
    #[test]
    fn tables_are_found() {
        let (first, second) = (Folder::new("first"), Folder::new("second"));
        let write = |folder: &Folder, name: &str, text: &str| {
            fs::write(folder.0.join(name), text).expect("it is written");
        };
        write(&first, "both.dist", "# first\n1 2\n");
        write(&second, "both.dist", "3\n");
        write(&second, "one.dist", "-4 5");
        write(&second, "wrong.dist", "1\n2 three\n");
        write(&second, "long.dist", &" ".repeat((1 << 20) + 1));
        fs::create_dir(second.0.join("folder.dist")).expect("a folder");
        let folders = [first.0.clone(), second.0.clone()];
        let table = |word: &str| find(word, &folders).map(|table| table.table().to_vec());
        assert_eq!(table("both"), Ok(vec![1, 2]));
        assert_eq!(table("one"), Ok(vec![-4, 5]));
        assert_eq!(table(&second.0.join("both.dist").to_string_lossy()), Ok(vec![3]));
        let path = |name: &str| format!("{:?}", second.0.join(name));
        for (word, said) in [
            ("wrong", format!("{}: line 2: \"three\" is no whole number", path("wrong.dist"))),
            ("long", format!("{}: it is longer than 1 MiB", path("long.dist"))),
            ("folder", format!("{}: it is no regular file", path("folder.dist"))),
            ("none", format!("there is no file \"none.dist\" in {:?}, {:?}", first.0, second.0)),
            ("./none.dist", "\"./none.dist\": No such file".to_owned()),
        ] {
            let refused = table(word).expect_err("it is no table");
            assert!(refused.starts_with(&said), "{word}: {refused}, not {said}");
        }
    }

    /// Goal: the folder that the environment names is the only one. Method: with one, and without.
    #[test]
    fn folders_of_tables() {
        assert_eq!(folders(Some("/some/where".into())), [PathBuf::from("/some/where")]);
        let known = folders(None);
        assert!(known.iter().take(FOLDERS.len()).eq(FOLDERS.map(PathBuf::from).iter()), "{known:?}");
    }
}
