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

/// What was typed, as root types it; of the check-up, the command that records.
pub(crate) fn again_as_root() -> String {
    let words: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into()).collect();
    as_root(program_as_root(), &words)
}

fn as_root(program: String, words: &[String]) -> String {
    if !words.iter().any(|word| matches!(&**word, "explain" | "record")) {
        return format!("{program} explain --live 10s");
    }
    words.iter().fold(program, |line, word| format!("{line} {}", shell_word(word)))
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
    use super::{as_root, sudo};

    /// Goal: sudo finds the program however it was called. Method: a path, a path with a space, a name.
    #[test]
    fn sudo_is_told_where_the_program_is() {
        let typed = |path: &str| sudo(Some(path.to_owned()));
        assert_eq!(typed("target/release/quietcore"), "sudo target/release/quietcore");
        assert_eq!(typed("/my tools/quietcore"), "sudo '/my tools/quietcore'");
        assert_eq!(sudo(None), "sudo \"$(which quietcore)\"");
    }

    /// Goal: what needs root is named as it was typed. Method: a recording with a name that a shell would
    /// take apart, and the check-up, which needs none but for its recording.
    #[test]
    fn what_was_typed_is_named() {
        let named = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            as_root("sudo q".to_owned(), &words)
        };
        assert_eq!(named(&["record", "my host.txt", "--for", "1s"]), "sudo q record 'my host.txt' --for 1s");
        assert_eq!(named(&["explain", "--live", "3s"]), "sudo q explain --live 3s");
        assert_eq!(named(&["--json"]), "sudo q explain --live 10s");
    }
}
