//! How this program is typed once more, so that a command that it prints can be entered as it stands.

use quietcore_trace::shell_word;

/// The program as it was called.
pub(crate) fn program() -> String {
    called().map_or("quietcore".to_owned(), |path| shell_word(&path))
}

/// The program as root calls it: sudo has a PATH of its own, where a program that cargo installed is not.
pub(crate) fn program_as_root() -> String {
    sudo(called())
}

/// The path that was typed, if it was one.
fn called() -> Option<String> {
    let typed = std::env::args_os().next().map(|typed| typed.to_string_lossy().into_owned());
    typed.filter(|typed| typed.contains('/'))
}

fn sudo(path: Option<String>) -> String {
    let program = path.map_or("\"$(which quietcore)\"".to_owned(), |path| shell_word(&path));
    format!("sudo {program}")
}

#[cfg(test)]
mod tests {
    use super::sudo;

    /// Goal: sudo finds the program however it was called. Method: a path, a path with a space, a name.
    #[test]
    fn sudo_is_told_where_the_program_is() {
        let typed = |path: &str| sudo(Some(path.to_owned()));
        assert_eq!(typed("target/release/quietcore"), "sudo target/release/quietcore");
        assert_eq!(typed("/my tools/quietcore"), "sudo '/my tools/quietcore'");
        assert_eq!(sudo(None), "sudo \"$(which quietcore)\"");
    }
}
