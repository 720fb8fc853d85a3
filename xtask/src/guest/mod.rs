//! `cargo xtask guest`: the command inside of real kernels, in machines that are emulated.
//!
//! Boots each kernel with 16 CPUs, of which 14 are isolated, loads it, and runs recording, explanation,
//! check-up and keep-awake inside (`init.sh`); then counts the figures of the guest's recordings a second
//! time outside. Needs QEMU (no virtualization by the processor), a static busybox, and for a kernel that
//! is named by its version apt and dpkg of Debian. Minutes per kernel, so no part of `ci`.

mod archive;
pub(crate) mod load;

use crate::workspace::{Failure, Workspace, capture, exit_code, run};
use archive::Archive;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

const INIT: &str = include_str!("init.sh");
const BUSYBOX: &str = "/bin/busybox";
const QEMU: &str = "qemu-system-x86_64";
const TOOLS: &str = "apt-get install qemu-system-x86 busybox-static, or what your distribution calls them";
/// In the guest's own time one takes less than a minute; without virtualization that is some minutes here.
const LIMIT_SECONDS: &str = "1500";
const ISOLATED: &str = "1-7,9-15";
/// Virtual time: it does not depend on the load of this machine.
const VIRTUAL_TIME: &str = "-accel tcg,thread=single -icount shift=2,sleep=off";
/// Kernels before 6.6 hang with virtual time.
const REAL_TIME: &str = "-accel tcg,thread=multi";
const MACHINE: &str = "-cpu max -smp 16 -m 2048 -nographic -no-reboot -nodefaults -serial stdio \
                       -device virtio-serial-pci";
/// What a guest talks through, where a kernel has not built it in.
const MODULES: [&str; 6] = [
    "drivers/virtio/virtio",
    "drivers/virtio/virtio_ring",
    "drivers/virtio/virtio_pci_modern_dev",
    "drivers/virtio/virtio_pci_legacy_dev",
    "drivers/virtio/virtio_pci",
    "drivers/char/virtio_console",
];

/// `[--kernel VERSION_OR_IMAGE]...`: 6.12 and 7.2 where none is named.
pub(crate) fn command(words: &[&str]) -> ExitCode {
    let mut kernels = Vec::new();
    let mut rest = words;
    while let ["--kernel", kernel, more @ ..] = rest {
        kernels.push((*kernel).to_owned());
        rest = more;
    }
    if !rest.is_empty() {
        eprintln!("guest: --kernel needs a version as 6.12, or the path of a kernel's image");
        return ExitCode::from(2);
    }
    if kernels.is_empty() {
        kernels = vec!["6.12".to_owned(), "7.2".to_owned()];
    }
    exit_code("guest", run_all(&kernels))
}

fn run_all(kernels: &[String]) -> Result<(), Failure> {
    let workspace = Workspace::open()?;
    let folder = workspace.target.join("guest");
    create(&folder)?;
    for tool in [QEMU, BUSYBOX] {
        let found = Command::new(tool).arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status();
        found.map_err(|error| Failure::new(format!("{tool}: {error}"), TOOLS))?;
    }
    run(
        &mut workspace.cargo(&["build", "--release", "--locked", "-p", "quietcore-cli"]),
        "mend what the compiler names",
    )?;
    let initrd = folder.join("initrd");
    for kernel in kernels {
        let image = image(&folder, kernel)?;
        write(&initrd, &contents(&workspace.target.join("release/quietcore"), &modules(&image)?)?)?;
        guest(&workspace, &folder, &image, &initrd)?;
    }
    Ok(())
}

/// What the guest's memory holds: busybox, quietcore, this program as the load, and their libraries.
fn contents(quietcore: &Path, modules: &[PathBuf]) -> Result<Vec<u8>, Failure> {
    let this = std::env::current_exe();
    let this = this.map_err(|error| Failure::new(format!("where is this program? {error}"), "try again"))?;
    let mut archive = Archive::default();
    archive.program("init", INIT.as_bytes());
    archive.program("bin/busybox", &read(BUSYBOX.as_ref())?);
    archive.program("bin/quietcore", &read(quietcore)?);
    archive.program("bin/xtask", &read(&this)?);
    for module in modules {
        archive.program(&format!("modules/{}", name_of(module)), &read(module)?);
    }
    let libraries = capture(Command::new("ldd").arg(quietcore).arg(&this).stderr(Stdio::inherit()))?;
    let paths = libraries.split_whitespace().filter(|word| word.starts_with('/') && !word.ends_with(':'));
    for path in paths {
        archive.program(path.trim_start_matches('/'), &read(path.as_ref())?);
    }
    Ok(archive.finish())
}

/// The kernel's image, fetched where a version is named.
fn image(folder: &Path, kernel: &str) -> Result<PathBuf, Failure> {
    let path = PathBuf::from(kernel);
    if path.is_file() {
        return Ok(path);
    }
    let remedy = "name one that `apt-cache pkgnames linux-image-` lists, or give the path of an image";
    let names =
        capture(Command::new("apt-cache").args(["pkgnames", "linux-image-"]).stderr(Stdio::inherit()))?;
    let package = newest(&names, kernel)
        .ok_or_else(|| Failure::new(format!("apt knows no kernel {kernel} for amd64"), remedy))?;
    let unpacked = folder.join(&package);
    // Since 7.2 the image is in a package of its own, on which that of this name depends.
    for package in [package.clone(), package.replacen("image", "binary", 1)] {
        if let Some(image) = unpacked_image(&unpacked)? {
            return Ok(image);
        }
        println!("guest: fetching {package}");
        let fetched = folder.join("fetched");
        create(&fetched)?;
        run(Command::new("apt-get").args(["download", "-q", &package]).current_dir(&fetched), remedy)?;
        for file in files(&fetched)? {
            run(Command::new("dpkg").arg("-x").arg(&file).arg(&unpacked), "look at what dpkg says")?;
            fs::remove_file(&file).map_err(|error| failed(&file, &error))?;
        }
    }
    unpacked_image(&unpacked)?.ok_or_else(|| Failure::new(format!("{package} holds no kernel"), remedy))
}

/// `boot/vmlinuz-VERSION`, or `usr/lib/modules/VERSION/vmlinuz`.
fn unpacked_image(unpacked: &Path) -> Result<Option<PathBuf>, Failure> {
    let boot = unpacked.join("boot");
    let mut candidates = if boot.is_dir() { files(&boot)? } else { Vec::new() };
    candidates.retain(|path| name_of(path).starts_with("vmlinuz"));
    let modules = unpacked.join("usr/lib/modules");
    if let Ok(folders) = fs::read_dir(modules) {
        candidates.extend(folders.filter_map(|folder| Some(folder.ok()?.path().join("vmlinuz"))));
    }
    Ok(candidates.into_iter().find(|path| path.is_file()))
}

/// Those of [`MODULES`] that are beside an image.
fn modules(image: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unpacked = image.parent().and_then(Path::parent);
    let Some(unpacked) = unpacked.filter(|folder| folder.join("lib/modules").is_dir()) else {
        return Ok(Vec::new());
    };
    let kernel = unpacked.join("lib/modules").join(version_of(image)).join("kernel");
    let paths = MODULES.map(|module| kernel.join(module).with_extension("ko"));
    Ok(paths.into_iter().filter(|path| path.is_file()).collect())
}

fn name_of(path: &Path) -> &str {
    path.file_name().and_then(OsStr::to_str).unwrap_or_default()
}

/// The version that an image's name has, or its folder.
fn version_of(image: &Path) -> &str {
    match name_of(image).strip_prefix("vmlinuz-") {
        Some(version) => version,
        None => image.parent().map_or("", name_of),
    }
}

/// The newest package of this version: `linux-image-6.12.48-amd64`, or the same unsigned; for `6.12-rt`
/// that of PREEMPT_RT.
fn newest(names: &str, version: &str) -> Option<String> {
    let (version, is_rt) = version.strip_suffix("-rt").map_or((version, false), |version| (version, true));
    let number = |name: &&str| {
        let rest = name.strip_prefix("linux-image-")?.strip_prefix(version)?;
        let rest = rest.strip_suffix("-unsigned").unwrap_or(rest).strip_suffix("-amd64")?;
        let (rest, rt) = rest.strip_suffix("-rt").map_or((rest, false), |rest| (rest, true));
        let is_of_it = rest.is_empty() || rest.starts_with(['.', '+', '-']);
        let is_plain = !["cloud", "dbg"].iter().any(|kind| rest.contains(kind));
        let numbers = rest.split(|character: char| !character.is_ascii_digit());
        let numbers: Vec<u32> = numbers.filter_map(|digits| digits.parse().ok()).collect();
        (is_of_it && is_plain && rt == is_rt && !numbers.is_empty()).then_some(numbers)
    };
    let known = names.lines().filter_map(|name| Some((number(&name)?, name)));
    known.max().map(|(_, name)| name.to_owned())
}

/// Whether isolated CPUs of this kernel pull the timers of others: 6.9 to 6.18.
fn pulls(image: &Path) -> Result<bool, Failure> {
    let version = release_of(image)?;
    Ok(((6, 9)..(6, 19)).contains(&version))
}

/// Its first two numbers.
fn release_of(image: &Path) -> Result<(u32, u32), Failure> {
    let version = version_of(image);
    let mut numbers = version.split('.').map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Ok((major, minor)),
        _ => Err(Failure::new(
            format!("{}: which kernel is it?", image.display()),
            "name the image as Debian does, vmlinuz-6.12.48-amd64",
        )),
    }
}

/// Boots one and holds it against what it has to do.
fn guest(workspace: &Workspace, folder: &Path, image: &Path, initrd: &Path) -> Result<(), Failure> {
    let name = version_of(image);
    let here = folder.join(format!("run-{name}"));
    create(&here)?;
    let [said, kept, console] = ["said.txt", "kept.tar", "console.txt"].map(|file| here.join(file));
    for old in files(&here)? {
        fs::remove_file(&old).map_err(|error| failed(&old, &error))?;
    }
    println!("guest: {name}, some minutes");
    let out = fs::File::create(&console).map_err(|error| failed(&console, &error))?;
    let mut qemu = Command::new("timeout");
    let time = if release_of(image)? < (6, 6) { REAL_TIME } else { VIRTUAL_TIME };
    qemu.arg(LIMIT_SECONDS).arg(QEMU).args(time.split_whitespace()).args(MACHINE.split_whitespace());
    for (port, file) in [("said", &said), ("kept", &kept)] {
        qemu.arg("-chardev").arg(format!("file,id={port},path={}", file.display()));
        qemu.arg("-device").arg(format!("virtserialport,chardev={port},name={port}"));
    }
    qemu.arg("-kernel").arg(image).arg("-initrd").arg(initrd).arg("-append").arg(format!(
        "console=ttyS0 quiet panic=-1 tsc=reliable isolcpus=domain,{ISOLATED} quietcore.pulls={}",
        u8::from(pulls(image)?)
    ));
    qemu.stdin(Stdio::null()).stderr(out.try_clone().map_err(|error| failed(&console, &error))?).stdout(out);
    let ended = qemu.status().map_err(|error| Failure::new(format!("timeout: {error}"), TOOLS))?;
    let text = fs::read_to_string(&said).unwrap_or_default();
    print!("{text}");
    let remedy = format!("look at {}", here.display());
    if !text.ends_with("END\n") {
        return Err(Failure::new(format!("{name} did not come to its end ({ended})"), remedy));
    }
    if text.contains("\nFAIL ") {
        return Err(Failure::new(format!("a check failed in {name}"), remedy));
    }
    run(Command::new("tar").arg("-xf").arg(&kept).arg("-C").arg(&here), "look at what tar says")?;
    let script = |name: &str| {
        let mut command = Command::new("python3");
        command.arg("-B").arg(workspace.root.join("tests").join(name));
        command
    };
    let reports = ["plain", "osnoise"].map(|name| (here.join(name).with_extension("txt"), here.join(name)));
    for (recording, name) in reports.iter().filter(|(recording, _)| recording.exists()) {
        run(
            script("independent_count.py").arg(recording).arg("--compare").arg(name.with_extension("json")),
            "one of both counts is wrong: the report of the guest, or tests/independent_count.py",
        )?;
    }
    run(
        script("watch_agreement.py").arg("--guest").arg(&here),
        "one of both counts is wrong: watch's in the kernel, or the kernel's own",
    )?;
    let [_, (osnoise, name)] = reports;
    if osnoise.exists() {
        let remedy = "look at the recording: which of both missed something?";
        run(script("compare_osnoise.py").arg(name.with_extension("json")), remedy)?;
    }
    Ok(())
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display()), "see that the disk has room and the folder is yours")
}

fn create(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| failed(path, &error))
}

fn write(path: &Path, content: &[u8]) -> Result<(), Failure> {
    fs::write(path, content).map_err(|error| failed(path, &error))
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(folder).map_err(|error| failed(folder, &error))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::{newest, pulls};
    use std::path::Path;

    /// Goal: of a version the newest kernel is taken, of no other flavour. Method: names as Debian has them.
    #[test]
    fn the_newest_kernel_of_a_version_is_taken() {
        let names = "linux-image-6.12.9+deb12-amd64\nlinux-image-6.12.107+deb12-amd64-unsigned\n\
                     linux-image-6.12.111+deb12-cloud-amd64\nlinux-image-6.12.99+deb12-rt-amd64\n\
                     linux-image-6.1.0-9-amd64\nlinux-image-6.1.0-50-amd64\nlinux-image-6.12-amd64\n\
                     linux-image-6.12.111+deb12-amd64-dbg\nlinux-image-6.1.200-arm64\n";
        for (version, expected) in [
            ("6.12", Some("linux-image-6.12.107+deb12-amd64-unsigned")),
            ("6.12-rt", Some("linux-image-6.12.99+deb12-rt-amd64")),
            ("6.1", Some("linux-image-6.1.0-50-amd64")),
            ("6.2", None),
        ] {
            assert_eq!(newest(names, version).as_deref(), expected, "{version}");
        }
    }

    /// Goal: it is known of a kernel's name whether isolated CPUs pull.
    #[test]
    fn a_kernel_pulls_from_6_9_to_6_18() {
        let pulls = |name: &str| pulls(Path::new(name)).ok();
        let found = ["6.8.1-amd64", "6.9.0", "6.18.15+deb14", "6.19.2", "7.2.1", "x"]
            .map(|name| pulls(&format!("/b/vmlinuz-{name}")));
        assert_eq!(found, [Some(false), Some(true), Some(true), Some(false), Some(false), None]);
        assert_eq!(super::pulls(Path::new("/usr/lib/modules/6.12.1-amd64/vmlinuz")).ok(), Some(true));
    }
}
