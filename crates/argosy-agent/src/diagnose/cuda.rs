//! The CUDA driver, with a safe face: the one module that talks to it, and the only `unsafe` of the tests.
//!
//! Only ever called in the child: `cudarc` panics when the library or one of its symbols is missing, and
//! a driver may do worse. Device memory is not memory of this program, so shared references may write it;
//! what is checked here is that no kernel and no copy leaves the buffer it was given.
#![expect(unsafe_code, reason = "the driver's functions are C; each call says why it is sound")]

use cudarc::driver::{result, sys};
use std::ffi::{CString, c_void};
use std::marker::PhantomData;

/// Threads in each block of every kernel; `product_f32`, `product_bf16` and `hash_words` are written for it.
const BLOCK: u32 = 256;

/// The edge of the tile that one block of a product makes.
const TILE: u32 = 128;

/// Volta and newer.
pub(super) const PTX_70: &str = include_str!("kernels/compute_70.ptx");
/// Ampere and newer: with `product_bf16`.
pub(super) const PTX_80: &str = include_str!("kernels/compute_80.ptx");

/// What the driver refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CudaError {
    /// There is no driver here.
    #[error(
        "libcuda.so.1 cannot be loaded: there is no NVIDIA driver here, or not for this program"
    )]
    Absent,
    /// A call failed.
    #[error("{call} says {code}: {message}")]
    Driver {
        /// What was called.
        call: &'static str,
        /// `CUDA_ERROR_OUT_OF_MEMORY`, …
        code: String,
        /// The driver's sentence.
        message: String,
    },
    /// Work that does not fit its buffer: a mistake of ours, kept from the device.
    #[error("{call} needs {needed} bytes and was given {given}")]
    Bounds {
        /// What was called.
        call: &'static str,
        /// What it would touch.
        needed: u64,
        /// What there is.
        given: u64,
    },
    /// A GPU older than the kernels.
    #[error(
        "compute capability {major}.{minor} is older than 7.0, the oldest this test is written for"
    )]
    TooOld {
        /// Of the GPU.
        major: i32,
        /// Of the GPU.
        minor: i32,
    },
}

impl CudaError {
    /// Whether there was not enough memory.
    pub(super) fn out_of_memory(&self) -> bool {
        matches!(self, Self::Driver { code, .. } if code == "CUDA_ERROR_OUT_OF_MEMORY")
    }
}

type Result<T> = std::result::Result<T, CudaError>;

/// Turns the driver's answer into ours.
fn said<T>(call: &'static str, answer: std::result::Result<T, result::DriverError>) -> Result<T> {
    answer.map_err(|error| {
        let text = |text: std::result::Result<&std::ffi::CStr, _>| {
            text.map_or_else(
                |_| format!("{:?}", error.0),
                |text| text.to_string_lossy().into_owned(),
            )
        };
        CudaError::Driver {
            call,
            code: text(error.error_name()),
            message: text(error.error_string()),
        }
    })
}

/// The driver, loaded and initialized.
pub(super) struct Driver {
    /// What it serves, as `12.4`.
    pub(super) version: String,
}

/// A device as CUDA lists it.
pub(super) struct Listed {
    ordinal: i32,
    /// As NVML writes it: `GPU-…`.
    pub(super) uuid: String,
    /// The product.
    pub(super) name: String,
}

impl Driver {
    /// Loads the library, if it is there.
    pub(super) fn open() -> Result<Self> {
        // SAFETY: loading the driver's library runs its constructors and nothing of ours; every CUDA
        // program does it at start.
        if !unsafe { sys::is_culib_present() } {
            return Err(CudaError::Absent);
        }
        said("cuInit", result::init())?;
        let mut version = 0;
        // SAFETY: `version` is a valid place for one int for the length of the call.
        said("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&raw mut version) }.result())?;
        Ok(Self { version: format!("{}.{}", version / 1000, version % 1000 / 10) })
    }

    /// The devices there are, in the order CUDA numbers them.
    pub(super) fn list(&self) -> Result<Vec<Listed>> {
        let count = said("cuDeviceGetCount", result::device::get_count())?;
        (0..count)
            .map(|ordinal| {
                let device = said("cuDeviceGet", result::device::get(ordinal))?;
                let uuid = said("cuDeviceGetUuid", result::device::get_uuid(device))?;
                let name = said("cuDeviceGetName", result::device::get_name(device))?;
                Ok(Listed {
                    ordinal,
                    uuid: uuid_text(uuid.bytes.map(|byte| byte.cast_unsigned())),
                    name,
                })
            })
            .collect()
    }
}

/// As NVML writes it.
fn uuid_text(bytes: [u8; 16]) -> String {
    let mut text = String::from("GPU-");
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// One GPU, in use by this thread. Everything it was given is given back when it goes.
pub(super) struct Gpu {
    device: sys::CUdevice,
    stream: sys::CUstream,
    module: sys::CUmodule,
    kernels: Kernels,
    /// How many multiprocessors it has.
    pub(super) multiprocessors: u32,
    /// The context is current on the thread that made it, and on no other.
    own_thread: PhantomData<*const ()>,
}

struct Kernels {
    generate_f32: sys::CUfunction,
    generate_bf16: sys::CUfunction,
    product_f32: sys::CUfunction,
    /// `None` before Ampere.
    product_bf16: Option<sys::CUfunction>,
    hash_words: sys::CUfunction,
    flip_bit: sys::CUfunction,
    fill: sys::CUfunction,
    check: sys::CUfunction,
    copy_wide: sys::CUfunction,
    copy_stream: sys::CUfunction,
}

impl Gpu {
    /// Makes a context on it and loads the kernels. Takes a second or two when the driver compiles them.
    pub(super) fn open(listed: &Listed) -> Result<Self> {
        use sys::CUdevice_attribute as Attribute;
        let device = said("cuDeviceGet", result::device::get(listed.ordinal))?;
        let attribute = |attribute| {
            // SAFETY: `device` comes from `cuDeviceGet`.
            said("cuDeviceGetAttribute", unsafe {
                result::device::get_attribute(device, attribute)
            })
        };
        let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        if major < 7 {
            return Err(CudaError::TooOld { major, minor });
        }
        let multiprocessors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let context = Context::retain(device)?;
        let stream = said(
            "cuStreamCreate",
            result::stream::create(result::stream::StreamKind::NonBlocking),
        )?;
        let stream = OwnStream(stream);
        let tensor = 8 <= major;
        let module = OwnModule(load(if tensor { PTX_80 } else { PTX_70 })?);
        let kernel = |name: &str| {
            let name = CString::new(name).unwrap_or_default();
            // SAFETY: the module is loaded and lives as long as the function is used (`Gpu::drop`).
            said("cuModuleGetFunction", unsafe { result::module::get_function(module.0, name) })
        };
        let kernels = Kernels {
            generate_f32: kernel("generate_f32")?,
            generate_bf16: kernel("generate_bf16")?,
            product_f32: kernel("product_f32")?,
            product_bf16: if tensor { Some(kernel("product_bf16")?) } else { None },
            hash_words: kernel("hash_words")?,
            flip_bit: kernel("flip_bit")?,
            fill: kernel("fill")?,
            check: kernel("check")?,
            copy_wide: kernel("copy_wide")?,
            copy_stream: kernel("copy_stream")?,
        };
        let gpu = Self {
            device,
            stream: stream.0,
            module: module.0,
            kernels,
            multiprocessors: multiprocessors.unsigned_abs().max(1),
            own_thread: PhantomData,
        };
        // `Gpu::drop` has them from here on.
        std::mem::forget((context, stream, module));
        Ok(gpu)
    }

    /// Whether it has tensor cores for bfloat16.
    pub(super) fn has_bf16(&self) -> bool {
        self.kernels.product_bf16.is_some()
    }

    /// Bytes of memory that are free, now.
    pub(super) fn memory_free(&self) -> Result<u64> {
        Ok(said("cuMemGetInfo", result::mem_get_info())?.0 as u64)
    }

    /// Memory on the GPU, not initialized.
    pub(super) fn allocate(&self, len: u64) -> Result<Buffer<'_>> {
        // SAFETY: the memory is only ever seen by kernels and copies, for which every bit pattern is valid.
        let address = said("cuMemAlloc", unsafe { result::malloc_sync(size(len)) })?;
        Ok(Buffer { address, len, gpu: self })
    }

    /// Memory of the host that the GPU reads and writes itself.
    pub(super) fn allocate_pinned(&self, len: u64) -> Result<Pinned<'_>> {
        // SAFETY: this program never looks into it, so it need not be initialized for us.
        let address = said("cuMemHostAlloc", unsafe { result::malloc_host(size(len), 0) })?;
        Ok(Pinned { address, len, gpu: PhantomData })
    }

    /// Waits until everything that was asked for is done.
    pub(super) fn finish(&self) -> Result<()> {
        // SAFETY: the stream is ours and lives until `drop`.
        said("cuStreamSynchronize", unsafe { result::stream::synchronize(self.stream) })
    }

    /// How many seconds the GPU takes for `work`, by its own clock.
    pub(super) fn timed(&self, work: impl FnOnce() -> Result<()>) -> Result<f64> {
        let (start, end) = (OwnEvent::new()?, OwnEvent::new()?);
        // SAFETY: events and stream belong to the current context and live past these calls.
        said("cuEventRecord", unsafe { result::event::record(start.0, self.stream) })?;
        work()?;
        // SAFETY: as above.
        said("cuEventRecord", unsafe { result::event::record(end.0, self.stream) })?;
        // SAFETY: `end` was recorded.
        said("cuEventSynchronize", unsafe { result::event::synchronize(end.0) })?;
        // SAFETY: both were recorded on one stream and have happened.
        let ms = said("cuEventElapsedTime", unsafe { result::event::elapsed(start.0, end.0) })?;
        Ok(f64::from(ms) / 1000.0)
    }

    /// Fills with floats in [-1, 1) of the stream `seed`.
    pub(super) fn generate_f32(
        &self,
        out: &Buffer<'_>,
        mut count: u64,
        mut seed: u64,
    ) -> Result<()> {
        out.holds("generate_f32", 0, count, 4)?;
        let mut address = out.address;
        let mut with = [arg(&mut address), arg(&mut count), arg(&mut seed)];
        self.launch("generate_f32", self.kernels.generate_f32, self.wide(), &mut with)
    }

    /// Fills with whole numbers from -63 to 63 of the stream `seed`, as bfloat16.
    pub(super) fn generate_bf16(
        &self,
        out: &Buffer<'_>,
        mut count: u64,
        mut seed: u64,
    ) -> Result<()> {
        out.holds("generate_bf16", 0, count, 2)?;
        let mut address = out.address;
        let mut with = [arg(&mut address), arg(&mut count), arg(&mut seed)];
        self.launch("generate_bf16", self.kernels.generate_bf16, self.wide(), &mut with)
    }

    /// c = a · b of floats. `edge` is a multiple of 128.
    pub(super) fn product_f32(
        &self,
        a: &Buffer<'_>,
        b: &Buffer<'_>,
        c: &Buffer<'_>,
        edge: u32,
    ) -> Result<()> {
        self.product("product_f32", self.kernels.product_f32, [a, b, c], edge, 4)
    }

    /// c = a · b of bfloat16, `b` column by column, `c` floats. `edge` is a multiple of 128.
    pub(super) fn product_bf16(
        &self,
        a: &Buffer<'_>,
        b: &Buffer<'_>,
        c: &Buffer<'_>,
        edge: u32,
    ) -> Result<()> {
        let Some(function) = self.kernels.product_bf16 else {
            return Err(CudaError::TooOld { major: 7, minor: 0 });
        };
        self.product("product_bf16", function, [a, b, c], edge, 2)
    }

    fn product(
        &self,
        call: &'static str,
        function: sys::CUfunction,
        [a, b, c]: [&Buffer<'_>; 3],
        mut edge: u32,
        operand_len: u64,
    ) -> Result<()> {
        let count = u64::from(edge) * u64::from(edge);
        a.holds(call, 0, count, operand_len)?;
        b.holds(call, 0, count, operand_len)?;
        c.holds(call, 0, count, 4)?;
        if !edge.is_multiple_of(TILE) || edge == 0 {
            return Err(CudaError::Bounds {
                call,
                needed: u64::from(TILE),
                given: u64::from(edge),
            });
        }
        let (mut a, mut b, mut c) = (a.address, b.address, c.address);
        let mut with = [arg(&mut a), arg(&mut b), arg(&mut c), arg(&mut edge)];
        self.launch(call, function, (edge / TILE, edge / TILE), &mut with)
    }

    /// Adds the hash of `count` words of 4 bytes to the first 8 bytes of `sum`.
    pub(super) fn hash_words(
        &self,
        words: &Buffer<'_>,
        mut count: u64,
        sum: &Buffer<'_>,
    ) -> Result<()> {
        words.holds("hash_words", 0, count, 4)?;
        sum.holds("hash_words", 0, 1, 8)?;
        let (mut words, mut sum) = (words.address, sum.address);
        let mut with = [arg(&mut words), arg(&mut count), arg(&mut sum)];
        self.launch("hash_words", self.kernels.hash_words, self.wide(), &mut with)
    }

    /// Flips one bit of the word of 4 bytes at `at`.
    pub(super) fn flip_bit(&self, words: &Buffer<'_>, mut at: u64, bit: u32) -> Result<()> {
        words.holds("flip_bit", at, 1, 4)?;
        let (mut address, mut bit) = (words.address, bit % 32);
        let mut with = [arg(&mut address), arg(&mut at), arg(&mut bit)];
        // One block of `BLOCK` threads would flip it `BLOCK` times, which is not at all.
        self.launch_sized("flip_bit", self.kernels.flip_bit, (1, 1), 1, &mut with)
    }

    /// Writes a pattern over the whole buffer.
    pub(super) fn fill(&self, words: &Buffer<'_>, pattern: Pattern) -> Result<()> {
        let (mut count, mut address) = (words.pairs_of_words(), words.address);
        let Pattern { mut kind, mut seed, mut flip } = pattern;
        let mut with =
            [arg(&mut address), arg(&mut count), arg(&mut kind), arg(&mut seed), arg(&mut flip)];
        self.launch("fill", self.kernels.fill, self.wide(), &mut with)
    }

    /// Compares the whole buffer with a pattern and leaves its inverse; adds to the three words of
    /// `report` from number `at` on.
    pub(super) fn check(
        &self,
        words: &Buffer<'_>,
        pattern: Pattern,
        report: &Buffer<'_>,
        at: u64,
    ) -> Result<()> {
        report.holds("check", at, 3, 8)?;
        let (mut count, mut address) = (words.pairs_of_words(), words.address);
        let Pattern { mut kind, mut seed, mut flip } = pattern;
        let mut to = report.address + at * 8;
        let mut with = [
            arg(&mut address),
            arg(&mut count),
            arg(&mut kind),
            arg(&mut seed),
            arg(&mut flip),
            arg(&mut to),
        ];
        self.launch("check", self.kernels.check, self.wide(), &mut with)
    }

    /// Copies with a kernel of ours, 16 bytes a thread; `blocks`, and whether the caches are told that
    /// nothing is used twice, are what is tuned.
    pub(super) fn copy_wide(
        &self,
        from: &Buffer<'_>,
        to: &Buffer<'_>,
        blocks: u32,
        stream: bool,
    ) -> Result<()> {
        let mut count = from.len.min(to.len) / 16;
        let (mut from, mut to) = (from.address, to.address);
        let mut with = [arg(&mut from), arg(&mut to), arg(&mut count)];
        let kernel = if stream { self.kernels.copy_stream } else { self.kernels.copy_wide };
        self.launch("copy_wide", kernel, (blocks.max(1), 1), &mut with)
    }

    /// Copies as the driver likes best.
    pub(super) fn copy(&self, from: &Buffer<'_>, to: &Buffer<'_>) -> Result<()> {
        let len = size(from.len.min(to.len));
        // SAFETY: both buffers are alive, hold `len` bytes, and outlive the copy: freeing waits for it.
        said("cuMemcpyDtoDAsync", unsafe {
            result::memcpy_dtod_async(to.address, from.address, len, self.stream)
        })
    }

    /// Copies from the host.
    pub(super) fn copy_in(&self, from: &Pinned<'_>, to: &Buffer<'_>) -> Result<()> {
        let len = size(from.len.min(to.len));
        // SAFETY: both hold `len` bytes; the host's are pinned, and freeing either waits for the copy.
        said(
            "cuMemcpyHtoDAsync",
            unsafe { sys::cuMemcpyHtoDAsync_v2(to.address, from.address, len, self.stream) }
                .result(),
        )
    }

    /// Copies to the host.
    pub(super) fn copy_out(&self, from: &Buffer<'_>, to: &Pinned<'_>) -> Result<()> {
        let len = size(from.len.min(to.len));
        // SAFETY: as in `copy_in`; nobody on the host looks into `to`.
        said(
            "cuMemcpyDtoHAsync",
            unsafe { sys::cuMemcpyDtoHAsync_v2(to.address, from.address, len, self.stream) }
                .result(),
        )
    }

    /// Sets every byte.
    pub(super) fn set(&self, buffer: &Buffer<'_>, byte: u8) -> Result<()> {
        // SAFETY: the buffer is alive and holds `len` bytes.
        said("cuMemsetD8Async", unsafe {
            result::memset_d8_async(buffer.address, byte, size(buffer.len), self.stream)
        })
    }

    /// Writes words of 8 bytes to the start of a buffer, after all that was asked for before.
    pub(super) fn write_words(&self, to: &Buffer<'_>, words: &[u64]) -> Result<()> {
        to.holds("write_words", 0, words.len() as u64, 8)?;
        self.finish()?;
        // SAFETY: `to` holds the words, which are plain numbers; the call returns when they were read.
        said("cuMemcpyHtoD", unsafe { result::memcpy_htod_sync(to.address, words) })
    }

    /// Reads words of 8 bytes from the start of a buffer, after all that was asked for before.
    pub(super) fn read_words(&self, from: &Buffer<'_>, count: usize) -> Result<Vec<u64>> {
        from.holds("read_words", 0, count as u64, 8)?;
        self.finish()?;
        let mut words = vec![0_u64; count];
        // SAFETY: `from` holds `count` words, and every bit pattern is a number.
        said("cuMemcpyDtoH", unsafe { result::memcpy_dtoh_sync(&mut words, from.address) })?;
        Ok(words)
    }

    /// A grid that keeps every multiprocessor full, for kernels that stride.
    fn wide(&self) -> (u32, u32) {
        (self.multiprocessors * 8, 1)
    }

    fn launch(
        &self,
        call: &'static str,
        function: sys::CUfunction,
        grid: (u32, u32),
        with: &mut [*mut c_void],
    ) -> Result<()> {
        self.launch_sized(call, function, grid, BLOCK, with)
    }

    fn launch_sized(
        &self,
        call: &'static str,
        function: sys::CUfunction,
        grid: (u32, u32),
        threads: u32,
        with: &mut [*mut c_void],
    ) -> Result<()> {
        // SAFETY: the function is of our loaded module; `with` points to as many arguments, of the same
        // sizes, as its source in `kernels.cu` takes, and the driver copies them before it returns; the
        // callers checked that the kernel stays inside its buffers.
        said(call, unsafe {
            result::launch_kernel(
                function,
                (grid.0, grid.1, 1),
                (threads, 1, 1),
                0,
                self.stream,
                with,
            )
        })
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // An error here says that the context is broken, which the test has said already; what is left is
        // taken back when the process ends.
        drop(OwnStream(self.stream));
        drop(OwnModule(self.module));
        drop(Context(self.device));
    }
}

/// What a buffer is filled with, by the numbers of `wanted` in `kernels.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// 0 a walking one, 1 its own address, 2 pseudo-random.
    pub(super) kind: u32,
    /// Where the walk begins, or which stream.
    pub(super) seed: u64,
    /// All ones for the inverse, else 0.
    pub(super) flip: u64,
}

impl Pattern {
    /// The other value of every bit.
    pub(super) fn inverse(self) -> Self {
        Self { flip: !self.flip, ..self }
    }
}

/// Memory on a GPU; freed when it goes.
pub(super) struct Buffer<'gpu> {
    address: sys::CUdeviceptr,
    len: u64,
    gpu: &'gpu Gpu,
}

impl Buffer<'_> {
    /// Bytes.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Where it is, as kernels see it.
    pub(super) fn address(&self) -> u64 {
        self.address
    }

    /// How many words of 8 bytes can be handled in pairs.
    fn pairs_of_words(&self) -> u64 {
        self.len / 16 * 2
    }

    fn holds(&self, call: &'static str, from: u64, count: u64, each: u64) -> Result<()> {
        let needed = from.saturating_add(count).saturating_mul(each);
        if self.len < needed {
            return Err(CudaError::Bounds { call, needed, given: self.len });
        }
        Ok(())
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // Work in flight may still touch it.
        let _ = self.gpu.finish();
        // SAFETY: the address came from `malloc_sync` and is freed once; a broken context refuses, and
        // the driver frees it with the process.
        let _ = unsafe { result::free_sync(self.address) };
    }
}

/// Memory of the host that is fixed in place; freed when it goes.
pub(super) struct Pinned<'gpu> {
    address: *mut c_void,
    len: u64,
    gpu: PhantomData<&'gpu Gpu>,
}

impl Pinned<'_> {
    /// Bytes.
    pub(super) fn len(&self) -> u64 {
        self.len
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        // SAFETY: the address came from `malloc_host` and is freed once; `cuMemFreeHost` waits for copies.
        let _ = unsafe { result::free_host(self.address) };
    }
}

/// A device's primary context, current on this thread.
struct Context(sys::CUdevice);

impl Context {
    fn retain(device: sys::CUdevice) -> Result<Self> {
        let flags = sys::CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC as u32;
        // SAFETY: `device` comes from `cuDeviceGet`. Waiting threads sleep instead of spinning; where the
        // driver refuses, they spin.
        let _ = unsafe { sys::cuDevicePrimaryCtxSetFlags_v2(device, flags) };
        // SAFETY: as above.
        let context =
            said("cuDevicePrimaryCtxRetain", unsafe { result::primary_ctx::retain(device) })?;
        let own = Self(device);
        // SAFETY: the context was just retained, and is until `own` is dropped.
        said("cuCtxSetCurrent", unsafe { result::ctx::set_current(context) })?;
        Ok(own)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once in `retain`, released once here.
        let _ = unsafe { result::primary_ctx::release(self.0) };
    }
}

struct OwnStream(sys::CUstream);

impl Drop for OwnStream {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once, and no buffer that used it is left.
        let _ = unsafe { result::stream::destroy(self.0) };
    }
}

struct OwnModule(sys::CUmodule);

impl Drop for OwnModule {
    fn drop(&mut self) {
        // SAFETY: loaded once, unloaded once; its functions are not called again.
        let _ = unsafe { result::module::unload(self.0) };
    }
}

struct OwnEvent(sys::CUevent);

impl OwnEvent {
    fn new() -> Result<Self> {
        let flags = sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC;
        said("cuEventCreate", result::event::create(flags)).map(Self)
    }
}

impl Drop for OwnEvent {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once; the driver waits for it where it must.
        let _ = unsafe { result::event::destroy(self.0) };
    }
}

fn load(ptx: &str) -> Result<sys::CUmodule> {
    // PTX is text without a zero byte, and C wants one at its end.
    let image = CString::new(ptx).unwrap_or_default();
    // SAFETY: the image is text that ends with a zero, and the driver copies what it keeps.
    said("cuModuleLoadData", unsafe { result::module::load_data(image.as_ptr().cast()) })
}

/// An argument of a kernel: where it is.
fn arg<T>(value: &mut T) -> *mut c_void {
    std::ptr::from_mut(value).cast()
}

/// Bytes as the driver counts them. Sixty-four bits on every machine that has a driver.
fn size(len: u64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
