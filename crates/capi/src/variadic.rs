//! The public names of the variadic functions: each jumps to its C half in `shim/variadic.c`, leaving registers and
//! stack as they are. The C halves call Rust functions with hidden symbols.

use std::arch::{global_asm, naked_asm};

use crate::{ffi::error::ottla_error_new, mock::ottla_mock_push_errors, produce::ottla_producev};

unsafe extern "C" {
    fn ottla_shim_error_new();
    fn ottla_shim_producev();
    fn ottla_shim_mock_push_request_errors();
    fn ottla_shim_mock_broker_push_request_error_rtts();
    fn ottla_shim_mock_partition_push_request_errors();
}

macro_rules! jump {
    ($($name:ident => $target:ident),* $(,)?) => {$(
        /// See the header.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            naked_asm!("jmp {target}", target = sym $target);
            #[cfg(target_arch = "aarch64")]
            naked_asm!("b {target}", target = sym $target);
        }
    )*};
}

jump! {
    rd_kafka_error_new => ottla_shim_error_new,
    rd_kafka_producev => ottla_shim_producev,
    rd_kafka_mock_push_request_errors => ottla_shim_mock_push_request_errors,
    rd_kafka_mock_broker_push_request_error_rtts => ottla_shim_mock_broker_push_request_error_rtts,
    rd_kafka_mock_partition_push_request_errors => ottla_shim_mock_partition_push_request_errors,
}

// A `no_mangle` function of Rust would be exported from the library; these hidden symbols are not.
macro_rules! hidden {
    ($($name:literal => $target:path),* $(,)?) => {$(
        #[cfg(all(target_arch = "x86_64", not(any(windows, target_vendor = "apple"))))]
        global_asm!(concat!(".text\n.globl ", $name, "\n.hidden ", $name, "\n", $name, ":\njmp {}"), sym $target);
        #[cfg(all(target_arch = "aarch64", not(any(windows, target_vendor = "apple"))))]
        global_asm!(concat!(".text\n.globl ", $name, "\n.hidden ", $name, "\n", $name, ":\nb {}"), sym $target);
        // There, only the names of a list are exported.
        #[cfg(all(target_arch = "x86_64", windows))]
        global_asm!(concat!(".text\n.globl ", $name, "\n", $name, ":\njmp {}"), sym $target);
        #[cfg(all(target_arch = "aarch64", windows))]
        global_asm!(concat!(".text\n.globl ", $name, "\n", $name, ":\nb {}"), sym $target);
        // There, names in C begin with an underscore.
        #[cfg(all(target_arch = "x86_64", target_vendor = "apple"))]
        global_asm!(concat!(".text\n.globl _", $name, "\n.private_extern _", $name, "\n_", $name, ":\njmp {}"), sym $target);
        #[cfg(all(target_arch = "aarch64", target_vendor = "apple"))]
        global_asm!(concat!(".text\n.globl _", $name, "\n.private_extern _", $name, "\n_", $name, ":\nb {}"), sym $target);
    )*};
}

hidden! {
    "ottla_error_new" => ottla_error_new,
    "ottla_producev" => ottla_producev,
    "ottla_mock_push_errors" => ottla_mock_push_errors,
}
