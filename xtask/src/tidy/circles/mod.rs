//! Rule about the files of a crate: none needs itself through others.
//!
//! A file needs another when it imports from it or names it in a path; types in signatures count. Declaring
//! a module and re-exporting a name are not arrows: they lead to the file that has the item. Tests and models
//! are left out. A circle is reported once, as the shortest way back to its first file.

mod imports;

use super::source::{SourceFile, SourceTree, Violation};
use imports::{Imports, UsedPath, read};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Through how many re-exports a name is followed.
const LONGEST_CHAIN: usize = 12;

pub(crate) fn check(tree: &SourceTree) -> Vec<Violation> {
    let mut crates: BTreeMap<&str, Vec<&SourceFile>> = BTreeMap::new();
    for source in &tree.sources {
        if let Some((folder, inner)) = source.path.split_once("/src/")
            && is_part(source, inner)
        {
            crates.entry(folder).or_default().push(source);
        }
    }
    crates.values().flat_map(|sources| circles(sources)).collect()
}

/// Code of the library or the program: no test, no model, no program of its own.
fn is_part(source: &SourceFile, inner: &str) -> bool {
    inner.ends_with(".rs") && !source.is_test() && !inner.ends_with("models.rs") && !inner.starts_with("bin/")
}

/// The files of one crate and who they are as modules.
struct Files<'a> {
    sources: &'a [&'a SourceFile],
    modules: BTreeMap<Vec<String>, usize>,
    paths: Vec<Vec<String>>,
    imports: Vec<Imports>,
}

/// What a path leads to.
enum Target {
    /// A module as a whole; what is used of it is seen elsewhere.
    Module(Vec<String>),
    /// The file that has the item.
    File(usize),
}

impl<'a> Files<'a> {
    fn of(sources: &'a [&'a SourceFile]) -> Self {
        let paths: Vec<Vec<String>> = sources.iter().map(|source| module_path(&source.path)).collect();
        let modules = paths.iter().cloned().enumerate().map(|(index, path)| (path, index)).collect();
        Self { sources, modules, paths, imports: sources.iter().map(|source| read(source)).collect() }
    }

    /// Where `path` of file `from` leads; `None` outside of the crate.
    fn resolve(&self, from: usize, path: &UsedPath, chain: usize) -> Option<Target> {
        let mut module = self.paths[from].clone();
        let mut rest = path.segments.iter();
        let first = rest.next()?;
        match first.as_str() {
            "crate" => module.clear(),
            "self" => {}
            "super" => {
                module.pop()?;
            }
            name => {
                module = if self.imports[from].modules.iter().any(|child| child == name) {
                    [module, vec![name.to_owned()]].concat()
                } else {
                    self.imported_module(from, name, chain)?
                };
            }
        }
        for segment in rest {
            if segment == "super" {
                module.pop()?;
                continue;
            }
            module.push(segment.clone());
            if !self.modules.contains_key(&module) {
                module.pop();
                let file = *self.modules.get(&module)?;
                return self.item(file, segment, chain);
            }
        }
        Some(Target::Module(module))
    }

    /// The module that a `use` of the file brings in under `name`.
    fn imported_module(&self, from: usize, name: &str, chain: usize) -> Option<Vec<String>> {
        let import = self.imports[from].imports.iter().find(|import| import.name == name)?;
        if chain >= LONGEST_CHAIN || import.path.segments.first().is_some_and(|first| first == name) {
            return None;
        }
        match self.resolve(from, &import.path, chain + 1)? {
            Target::Module(module) => Some(module),
            Target::File(_) => None,
        }
    }

    /// The file that has the item `name` of the module in `file`.
    fn item(&self, file: usize, name: &str, chain: usize) -> Option<Target> {
        let imports = &self.imports[file];
        if chain >= LONGEST_CHAIN || imports.items.iter().any(|item| item == name) {
            return Some(Target::File(file));
        }
        if let Some(import) = imports.imports.iter().find(|import| import.name == name) {
            return self.resolve(file, &import.path, chain + 1);
        }
        for glob in imports.imports.iter().filter(|import| import.name == "*") {
            if let Some(Target::Module(module)) = self.resolve(file, &glob.path, chain + 1)
                && let Some(&other) = self.modules.get(&module)
                && other != file
                && self.has(other, name)
            {
                return self.item(other, name, chain + 1);
            }
        }
        Some(Target::File(file))
    }

    fn has(&self, file: usize, name: &str) -> bool {
        let imports = &self.imports[file];
        imports.items.iter().any(|item| item == name)
            || imports.imports.iter().any(|import| import.is_public && import.name == name)
    }

    /// Each file that `from` needs, with the first line that says so.
    fn needs(&self, from: usize) -> BTreeMap<usize, usize> {
        let imports = &self.imports[from];
        let used = imports.imports.iter().filter(|import| !import.is_public && import.name != "*");
        let used = used.map(|import| &import.path).chain(&imports.paths);
        let mut found = BTreeMap::new();
        for path in used {
            if let Some(Target::File(file)) = self.resolve(from, path, 0)
                && file != from
            {
                let line = found.entry(file).or_insert(path.line);
                *line = path.line.min(*line);
            }
        }
        found
    }
}

/// `crates/a/src/b/mod.rs` and `crates/a/src/b.rs` are the module `b`; the root has no names.
fn module_path(path: &str) -> Vec<String> {
    let inner = path.split_once("/src/").map_or(path, |(_, inner)| inner);
    let inner = inner.strip_suffix(".rs").unwrap_or(inner);
    let mut names: Vec<String> = inner.split('/').map(str::to_owned).collect();
    if names.last().is_some_and(|last| last == "mod")
        || names.len() == 1 && matches!(names[0].as_str(), "lib" | "main")
    {
        names.pop();
    }
    names
}

fn circles(sources: &[&SourceFile]) -> Vec<Violation> {
    let files = Files::of(sources);
    let needs: Vec<BTreeMap<usize, usize>> = (0..sources.len()).map(|file| files.needs(file)).collect();
    let mut found = vec![];
    let mut told = BTreeSet::new();
    for file in 0..sources.len() {
        if told.contains(&file) {
            continue;
        }
        let Some(way) = way_back(&needs, file) else { continue };
        let circle: Vec<usize> = (0..sources.len())
            .filter(|&other| is_reached(&needs, file, other) && is_reached(&needs, other, file))
            .collect();
        let names: Vec<&str> = way.iter().map(|&file| files.sources[file].path.as_str()).collect();
        let line = needs[file].get(&way[1 % way.len()]).copied().unwrap_or_default();
        let remedy = format!(
            "a circle of {} files: {} -> {}; move what they share to a file that needs none of them",
            circle.len(),
            names.join(" -> "),
            names[0]
        );
        found.push(Violation::error(files.sources[file], line, "file-circle", remedy));
        told.extend(circle);
    }
    found
}

/// The files on the shortest way from `start` back to it.
fn way_back(needs: &[BTreeMap<usize, usize>], start: usize) -> Option<Vec<usize>> {
    let mut before: BTreeMap<usize, usize> = BTreeMap::new();
    let mut waiting = VecDeque::from([start]);
    while let Some(file) = waiting.pop_front() {
        for &next in needs[file].keys() {
            if next == start {
                let mut way = vec![file];
                while way[way.len() - 1] != start {
                    way.push(before[&way[way.len() - 1]]);
                }
                way.reverse();
                return Some(way);
            }
            if let std::collections::btree_map::Entry::Vacant(entry) = before.entry(next) {
                entry.insert(file);
                waiting.push_back(next);
            }
        }
    }
    None
}

fn is_reached(needs: &[BTreeMap<usize, usize>], from: usize, to: usize) -> bool {
    let mut seen = BTreeSet::from([from]);
    let mut waiting = vec![from];
    while let Some(file) = waiting.pop() {
        if file == to {
            return true;
        }
        waiting.extend(needs[file].keys().copied().filter(|&next| seen.insert(next)));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<(String, &str)> =
            files.iter().map(|(path, text)| (format!("crates/x/src/{path}"), *text)).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        check(&SourceTree::of(&files)).iter().map(Violation::to_string).collect()
    }

    /// Goal: a circle is found in every spelling, and once. Method: two files; the way back in four forms.
    #[test]
    fn two_files_that_need_each_other() {
        let root = ("lib.rs", "//! R.\nmod a;\nmod b;\n");
        for back in [
            "use crate::a::A;",
            "use super::a::{self, A};",
            "fn f(x: crate::a::A) {}",
            "use super::a;\nfn f() { a::g() }",
        ] {
            let a = ("a.rs", "//! A.\nuse crate::b::B;\nstruct A;\nfn g() {}\n");
            let text = format!("//! B.\n{back}\nstruct B;\n");
            let found = found(&[root, a, ("b.rs", &text)]);
            let way = "crates/x/src/a.rs -> crates/x/src/b.rs -> crates/x/src/a.rs";
            assert!(found.len() == 1 && found[0].contains(way), "{back}: {found:?}");
            assert!(found[0].starts_with("crates/x/src/a.rs:2: file-circle"), "{found:?}");
        }
    }

    /// Goal: a folder's front is no circle by declaring and re-exporting, but by what stands in it.
    /// Method: a child that takes its sibling's type through the front, and one that takes the front's own.
    #[test]
    fn a_front_that_re_exports_is_no_circle() {
        let root = ("lib.rs", "//! R.\nmod a;\npub use a::B;\n");
        let b = ("a/b.rs", "//! B.\npub struct B;\n");
        let c = ("a/c.rs", "//! C.\nuse super::B;\nuse crate::B as D;\npub struct C;\n");
        assert_eq!(found(&[root, ("a/mod.rs", "//! A.\nmod b;\nmod c;\npub use b::B;\n"), b, c]), [""; 0]);
        let front = ("a/mod.rs", "//! A.\nmod b;\nmod c;\npub use b::B;\nuse c::C;\nstruct F(C);\n");
        let c = ("a/c.rs", "//! C.\nuse super::F;\npub struct C;\n");
        let found = found(&[root, front, b, c]);
        assert!(found.len() == 1 && found[0].contains("a circle of 2 files"), "{found:?}");
    }

    /// Goal: what only tests need is no arrow, and neither is another crate.
    #[test]
    fn tests_and_other_crates_are_left_out() {
        let root = ("lib.rs", "//! R.\nmod a;\nmod b;\n");
        let a = ("a.rs", "//! A.\nuse crate::b::B;\nuse other::b::C;\npub struct A;\n");
        let b = ("b.rs", "//! B.\npub struct B;\n#[cfg(test)]\nmod tests { use crate::a::A; }\n");
        assert_eq!(found(&[root, a, b, ("b/tests.rs", "//! T.\nuse crate::a::A;\n")]), [""; 0]);
    }

    #[test]
    fn paths_are_modules() {
        assert_eq!(module_path("crates/x/src/lib.rs"), [""; 0]);
        assert_eq!(module_path("crates/x/src/a/mod.rs"), ["a"]);
        assert_eq!(module_path("crates/x/src/a/b.rs"), ["a", "b"]);
    }
}
