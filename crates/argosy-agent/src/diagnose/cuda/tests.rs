use super::*;

const SOURCE: &str = include_str!("../kernels/kernels.cu");

/// FNV-1a, as `scripts/ptx` writes it.
fn hash(data: &[u8]) -> u64 {
    data.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn the_committed_ptx_was_made_from_the_committed_source() {
    for (name, ptx) in [("compute_70", PTX_70), ("compute_80", PTX_80)] {
        let first = ptx.lines().next().unwrap();
        let wanted = format!("fnv1a64 {:016x}", hash(SOURCE.as_bytes()));
        assert!(first.ends_with(&wanted), "{name} is of another source: run scripts/ptx; {first}");
    }
}

#[test]
fn the_ptx_can_be_loaded_by_drivers_from_520_on() {
    for (ptx, target) in [(PTX_70, "sm_70"), (PTX_80, "sm_80")] {
        assert!(ptx.contains("\n.version 7.8\n"), "PTX 7.8 is what CUDA 11.8 reads");
        assert!(ptx.contains(&format!("\n.target {target}\n")));
        assert!(!ptx.contains('\0'));
    }
}

#[test]
fn every_kernel_that_is_called_is_there() {
    let plain = [
        "generate_f32",
        "generate_bf16",
        "product_f32",
        "hash_words",
        "flip_bit",
        "fill",
        "check",
        "copy_wide",
        "copy_stream",
    ];
    for name in plain {
        assert!(PTX_70.contains(&format!(".entry {name}(")), "{name}");
        assert!(PTX_80.contains(&format!(".entry {name}(")), "{name}");
    }
    assert!(PTX_80.contains(".entry product_bf16("));
    assert!(PTX_80.contains("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"));
}

#[test]
fn products_are_sums_of_fused_steps_and_nothing_is_approximate() {
    for ptx in [PTX_70, PTX_80] {
        assert!(ptx.contains("fma.rn.f32"));
        for approximate in [".ftz", ".approx", "mad.f32"] {
            assert!(!ptx.contains(approximate), "{approximate}");
        }
    }
}

#[test]
fn a_uuid_is_written_as_nvml_writes_it() {
    let bytes = [0x1a, 0x2b, 0x3c, 0x4d, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0xff];
    assert_eq!(uuid_text(bytes), "GPU-1a2b3c4d-0102-0304-0506-0708090a0bff");
}
