//! What is installed, as it lies below `/usr`: the command, its manual pages, completions for shells,
//! licences, the list of all that the binary is made of, and what makes `quietcore watch` a service.

use super::parts;
use super::target::DistTarget;
use crate::files::{self, read};
use crate::workspace::{Failure, Workspace, capture, run};
use std::path::{Path, PathBuf};

/// Documents, and what they are called when they are installed.
const DOCUMENTS: [(&str, &str); 5] = [
    ("README.md", "README.md"),
    ("CHANGELOG.md", "CHANGELOG.md"),
    ("SECURITY.md", "SECURITY.md"),
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("LICENSE-APACHE", "LICENSE-APACHE"),
];

/// Files of `deploy/`, and where they are installed. The unit is neither enabled nor started: when CPUs are
/// interrupted for it is for their owner to say.
const DEPLOYED: [(&str, &str); 4] = [
    ("systemd/quietcore-watch.service", "lib/systemd/system/quietcore-watch.service"),
    ("prometheus/alerts.yml", "share/quietcore/prometheus/alerts.yml"),
    ("prometheus/scrape.yml", "share/quietcore/prometheus/scrape.yml"),
    ("grafana/quietcore-watch.json", "share/quietcore/grafana/quietcore-watch.json"),
];

/// Where completions for a shell are looked for, below `/usr/share`.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/quietcore"),
    ("fish", "fish/vendor_completions.d/quietcore.fish"),
    ("zsh", "zsh/site-functions/_quietcore"),
];

/// A folder with all of it, below its `usr`.
#[derive(Debug)]
pub(super) struct InstalledTree {
    pub(super) target: DistTarget,
    pub(super) version: String,
    pub(super) root: PathBuf,
    /// Of the commit, in seconds: what is made of a commit is the same each time.
    pub(super) moment: String,
}

impl InstalledTree {
    /// `speaker` is a command that runs on this machine.
    pub(super) fn make(
        workspace: &Workspace,
        target: DistTarget,
        binary: &Path,
        speaker: &Path,
    ) -> Result<Self, Failure> {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let root = workspace.target.join("dist").join(format!("tree-{}", target.processor));
        files::empty(&root)?;
        let mut log = workspace.program("git");
        let moment = capture(log.args(["log", "-1", "--format=%ct"]))?.trim().to_owned();
        let tree = Self { target, version, root, moment };
        tree.put("bin/quietcore", &read(binary)?)?;
        let mut set_mode = workspace.program("chmod");
        run(set_mode.arg("755").arg(tree.path("bin/quietcore")), "is there room, and may we write?")?;
        for (from, to) in DOCUMENTS {
            tree.put(&format!("share/doc/quietcore/{to}"), &read(&workspace.root.join(from))?)?;
        }
        for (from, to) in DEPLOYED {
            tree.put(to, &read(&workspace.root.join("deploy").join(from))?)?;
        }
        for (shell, path) in COMPLETIONS {
            let script = capture(workspace.program(speaker).args(["completions", shell]))?;
            tree.put(&format!("share/{path}"), script.as_bytes())?;
        }
        let pages = tree.path("share/man/man1");
        files::empty(&pages)?;
        capture(workspace.program(speaker).arg("man").arg(&pages))?;
        tree.put(
            "share/doc/quietcore/quietcore.cdx.json",
            parts::list(workspace, target, &tree.moment)?.as_bytes(),
        )?;
        tree.put("share/doc/quietcore/THIRD-PARTY", parts::licences(workspace, target)?.as_bytes())?;
        Ok(tree)
    }

    pub(super) fn path(&self, below_usr: &str) -> PathBuf {
        self.root.join("usr").join(below_usr)
    }

    pub(super) fn put(&self, below_usr: &str, content: &[u8]) -> Result<(), Failure> {
        files::write(&self.path(below_usr), content)
    }
}

#[cfg(test)]
mod tests {
    use super::{COMPLETIONS, DEPLOYED, DOCUMENTS};
    use std::path::Path;

    /// Goal: what is installed is there, and the package for Red Hat's relatives names all of it; the unit
    /// starts the command where packages put it. Method: the lists beside the tree and the template.
    #[test]
    fn what_is_installed_is_there_and_listed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let specification = include_str!("quietcore.spec.in");
        let lists = |path: &str| specification.lines().any(|line| line.ends_with(&format!("/usr/{path}")));
        for (from, to) in DEPLOYED {
            assert!(root.join("deploy").join(from).is_file(), "there is no deploy/{from}");
            assert!(lists(to), "quietcore.spec.in does not list {to}");
        }
        for (from, to) in DOCUMENTS {
            assert!(root.join(from).is_file() && lists(&format!("share/doc/quietcore/{to}")), "{from}");
        }
        for (shell, to) in COMPLETIONS {
            assert!(lists(&format!("share/{to}")), "quietcore.spec.in does not list {shell}'s");
        }
        let unit = std::fs::read_to_string(root.join("deploy").join(DEPLOYED[0].0)).expect("it is there");
        assert!(unit.contains("\nExecStart=/usr/bin/quietcore watch "), "{unit}");
    }
}
