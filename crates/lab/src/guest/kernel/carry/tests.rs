use super::*;
use flate2::read::GzDecoder;
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// The beginning of a program for this machine.
fn program() -> Vec<u8> {
    let mut program = vec![0; 64];
    program[..6].copy_from_slice(&ELF);
    program[MACHINE].copy_from_slice(&X86_64);
    program
}

fn gzipped(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, bytes) in files {
        // As a foreign program may write it: any name.
        let mut header = tar::Header::new_ustar();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        archive.append(&header, *bytes).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

#[test]
fn what_is_packed_is_installed_elsewhere_whole_and_once() {
    let folder = tempfile::tempdir().unwrap();
    let [here, there] = ["here", "there"].map(|name| folder.path().join(name));
    let file = folder.path().join("guests.tar.gz");
    let made = make_own(&here).unwrap();
    for key in ["6.12.9-0123", "6.1.192-4567"] {
        write_kernel(&made, key, key.split_once('-').unwrap().0, &program()).unwrap();
    }
    let kernels = cached_in(&here).unwrap();
    let (packed, digest) = pack(&kernels).unwrap();
    assert_eq!(pack(&kernels).unwrap(), (packed.clone(), digest.clone()));
    std::fs::write(&file, &packed).unwrap();
    for _ in 0..2 {
        // What a killed install left is in nobody's way.
        std::fs::create_dir_all(there.join("6.12.9-0123.part/linux")).ok();
        let installed = install_in(&there, &file, &digest.to_ascii_uppercase()).unwrap();
        let keys: Vec<_> = installed.iter().map(|kernel| kernel.key.as_str()).collect();
        assert_eq!(keys, ["6.1.192-4567", "6.12.9-0123"]);
        let found = cached_in(&there).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].release, "6.12.9");
        assert_eq!(std::fs::read(found[0].executable()).unwrap(), program());
    }
    let refused = install_in(&there, &file, &"0".repeat(64)).unwrap_err();
    assert!(matches!(refused, InstallError::Digest { .. }), "{refused}");
}

#[test]
fn what_a_release_packs_with_zstandard_is_the_same() {
    let program = program();
    let gzipped = gzipped(&[("6.12.9-a/release", b"6.12.9"), ("6.12.9-a/linux", &program)]);
    let packed = compress_to_vec(GzDecoder::new(&gzipped[..]), CompressionLevel::Fastest);
    assert_ne!(gzipped, packed);
    for bytes in [&gzipped, &packed] {
        let kernels = unpack(bytes).unwrap();
        assert_eq!(kernels["6.12.9-a"].program, program);
    }
    assert!(unpack(&packed[..packed.len() / 2]).is_err());
}

/// Their licence: whoever gets a kernel gets the changes of its source and its configuration.
#[test]
fn what_is_packed_says_how_to_make_it_again() {
    let (packed, _) = pack(&[]).unwrap();
    let mut archive = tar::Archive::new(GzDecoder::new(packed.as_slice()));
    let mut file = archive.entries().unwrap().next().unwrap().unwrap();
    assert_eq!(file.path().unwrap().to_str(), Some("README.txt"));
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert!(text.contains("GNU General Public License"), "{text}");
    for patch in PATCHES.iter().chain(&READS) {
        let all = [patch.file, patch.from, patch.to];
        assert!(all.iter().all(|part| text.contains(part)), "{patch:?}");
    }
    for line in CONFIG.lines().chain(TYPES.lines()) {
        assert!(text.lines().any(|one| one == line), "{line}");
    }
}

#[test]
fn nothing_but_kernels_is_taken() {
    let program = program();
    let (release, whole): (&[u8], &[u8]) = (b"6.12.9\n", &program);
    for (files, problem) in [
        (vec![], "no kernel"),
        (vec![("README.txt", release)], "no kernel"),
        (vec![("6.12.9-a/release", release)], "no program"),
        (vec![("6.12.9-a/linux", whole)], "has release"),
        (vec![("6.12.9-a/release", release), ("6.12.9-a/linux", b"#!/bin/sh")], "no program"),
        (vec![("6.13.1-a/release", release), ("6.13.1-a/linux", whole)], "has release"),
        (vec![("../6.12.9-a/linux", whole)], "no file of a kernel"),
        (vec![("/6.12.9-a/linux", whole)], "no file of a kernel"),
        (vec![("6.12.9-a/../linux", whole)], "no file of a kernel"),
        (vec![("6.12.9-a/more", whole)], "no file of a kernel"),
        (vec![("..-a/linux", whole)], "no file of a kernel"),
    ] {
        let said = unpack(&gzipped(&files)).unwrap_err();
        assert!(said.contains(problem), "{files:?}: {said}");
    }
    let mut link = tar::Header::new_ustar();
    link.set_entry_type(tar::EntryType::Symlink);
    link.set_size(0);
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    archive.append_link(&mut link, "6.12.9-a/linux", "/etc/passwd").unwrap();
    let linked = archive.into_inner().unwrap().finish().unwrap();
    assert!(unpack(&linked).unwrap_err().contains("no file of a kernel"));
}

proptest! {
    #[test]
    fn foreign_bytes_are_an_error_or_kernels(bytes: Vec<u8>, at: usize, to: u8) {
        let _ = unpack(&bytes);
        let program = program();
        let mut good =
            gzipped(&[("6.12.9-a/release", b"6.12.9".as_slice()), ("6.12.9-a/linux", &program)]);
        let at = at % good.len();
        good[at] = to;
        if let Ok(kernels) = unpack(&good) {
            prop_assert!(kernels.keys().all(|key| is_key(key)));
        }
    }
}
