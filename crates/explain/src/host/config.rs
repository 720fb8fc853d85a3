//! How often the kernel ticks, by the configuration that distributions install beside it.
//!
//! Decides where that is looked for: Debian and Fedora have it in `/boot`, Fedora also beside the modules. A
//! release that could lead elsewhere is not looked for.
//! Source: Linux v6.12 kernel/Kconfig.hz.

use super::files::Reader;

/// A kernel's own limits: less is no tick, more is none that Linux has.
const HZ_MAX: u32 = 10_000;

/// `CONFIG_HZ` of the kernel `release`.
pub(super) fn read_hz(reader: &mut Reader, release: &str) -> Option<u32> {
    if release.contains('/') {
        return None;
    }
    let is_tick = |line: &&str| line.starts_with("CONFIG_HZ=");
    let line = |text: &str| text.lines().find(is_tick).unwrap_or_default().to_owned();
    let paths = [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")];
    let text = paths.iter().find_map(|path| reader.part(path, line).filter(|line| !line.is_empty()))?;
    text.strip_prefix("CONFIG_HZ=")?.trim().parse().ok().filter(|hz| (1..=HZ_MAX).contains(hz))
}

#[cfg(test)]
mod tests {
    use super::{Reader, read_hz};
    use crate::host::files::tests::scratch;
    use std::fs;

    /// Goal: the tick is that of the running kernel's configuration. Method: each place, another release,
    /// lines that are none, and a release that leads elsewhere.
    #[test]
    fn the_tick_is_configured() {
        let whole = "CONFIG_X=y\n# CONFIG_HZ_100 is not set\nCONFIG_HZ_250=y\nCONFIG_HZ=250\nCONFIG_Y=y\n";
        for (path, text, release, expected) in [
            ("boot/config-6.12.1", whole, "6.12.1", Some(250)),
            ("lib/modules/6.12.1/config", whole, "6.12.1", Some(250)),
            ("boot/config-6.12.1", whole, "6.12.2", None),
            ("boot/config-6.12.1", "CONFIG_HZ=0\n", "6.12.1", None),
            ("boot/config-6.12.1", "CONFIG_HZ_250=y\n", "6.12.1", None),
            ("boot/config-6.12.1", "CONFIG_HZ=often\n", "6.12.1", None),
            ("boot/config-6/x", whole, "6/x", None),
        ] {
            let root = scratch("config");
            let file = root.join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            assert_eq!(read_hz(&mut Reader::new(&root), release), expected, "{path}: {text:?}");
            fs::remove_dir_all(root).unwrap();
        }
    }
}
