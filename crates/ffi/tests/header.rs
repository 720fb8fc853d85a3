//! `include/quietcore.h` is what cbindgen makes of this crate today.

use std::env;
use std::fs;
use std::path::Path;

/// Goal: the committed header is the interface. Method: generate it anew and compare; with QC_WRITE_HEADER
/// set it is written instead.
#[test]
fn the_header_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml is valid");
    // One file after the other: no cargo has to run for it.
    let sources = ["result", "machine", "timer", "timers", "work", "cpu", "stats", "texts"];
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in sources {
        builder = builder.with_src(root.join(format!("src/{source}.rs")));
    }
    let mut generated = vec![];
    builder.generate().expect("cbindgen understands the crate").write(&mut generated);
    let generated = String::from_utf8(generated).expect("a header is text");
    let path = root.join("include/quietcore.h");
    if env::var_os("QC_WRITE_HEADER").is_some() {
        fs::write(&path, &generated).expect("the header can be written");
    }
    let committed = fs::read_to_string(&path).expect("the header can be read");
    let different = committed.lines().zip(generated.lines()).position(|(old, new)| old != new);
    let line = different.unwrap_or_else(|| committed.lines().count().min(generated.lines().count())) + 1;
    assert!(
        committed == generated,
        "include/quietcore.h:{line} is out of date; write it anew:\n\n    \
         QC_WRITE_HEADER=1 cargo test -p quietcore-ffi --test header\n"
    );
}
