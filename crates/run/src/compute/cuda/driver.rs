//! Wraps the calls of NVIDIA's driver that steps need, with a safe interface. The library is opened at run time: CUDA is needed neither
//! to build feedrate nor to run it on machines without GPUs.

use crate::functions::functions;
use libloading::os::unix::Library;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

const LIBRARY: &str = "libcuda.so.1";
/// Threads of a kernel block. One block on each multiprocessor keeps the GPU busy and leaves room for kernels of other lanes.
const BLOCK_THREADS: c_uint = 128;

/// `CUresult`.
type Code = c_int;
const SUCCESS: Code = 0;
const NOT_READY: Code = 600;
/// `CU_CTX_SCHED_BLOCKING_SYNC`: waiting threads sleep.
const SCHED_BLOCKING_SYNC: c_uint = 4;
/// `CU_STREAM_NON_BLOCKING`.
const STREAM_NON_BLOCKING: c_uint = 1;
/// `CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT`.
const MULTIPROCESSOR_COUNT: c_int = 16;

/// `CUcontext`, `CUmodule`, `CUfunction`, `CUstream`.
type Handle = *mut c_void;
type HostFunction = unsafe extern "C" fn(*mut c_void);

functions! {
    Symbols:
    init "cuInit" (c_uint),
    error_string "cuGetErrorString" (Code, *mut *const c_char),
    device_count "cuDeviceGetCount" (*mut c_int),
    device "cuDeviceGet" (*mut c_int, c_int),
    attribute "cuDeviceGetAttribute" (*mut c_int, c_int, c_int),
    set_flags "cuDevicePrimaryCtxSetFlags_v2" (c_int, c_uint),
    retain "cuDevicePrimaryCtxRetain" (*mut Handle, c_int),
    release "cuDevicePrimaryCtxRelease_v2" (c_int),
    set_current "cuCtxSetCurrent" (Handle),
    load_module "cuModuleLoadData" (*mut Handle, *const c_void),
    unload_module "cuModuleUnload" (Handle),
    function "cuModuleGetFunction" (*mut Handle, Handle, *const c_char),
    allocate "cuMemAlloc_v2" (*mut u64, usize),
    free "cuMemFree_v2" (u64),
    allocate_host "cuMemAllocHost_v2" (*mut *mut c_void, usize),
    free_host "cuMemFreeHost" (*mut c_void),
    create_stream "cuStreamCreate" (*mut Handle, c_uint),
    destroy_stream "cuStreamDestroy_v2" (Handle),
    query_stream "cuStreamQuery" (Handle),
    wait_stream "cuStreamSynchronize" (Handle),
    copy_to_device "cuMemcpyHtoDAsync_v2" (u64, *const c_void, usize, Handle),
    launch_kernel "cuLaunchKernel" (Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void),
    launch_host "cuLaunchHostFunc" (Handle, HostFunction, *mut c_void),
}

/// The loaded and initialised library.
pub(super) struct Driver {
    symbols: Symbols,
}

impl Driver {
    /// Loads the library and initialises the driver. This may take seconds.
    pub(super) fn open() -> Result<Arc<Self>, String> {
        // SAFETY: loading runs the library's initialisers; it is NVIDIA's driver, or the user's replacement of it.
        let loaded = unsafe { Library::new(LIBRARY) };
        let library = loaded.map_err(|error| format!("{LIBRARY}: {error}"))?;
        let symbols = Symbols::find(&library)
            .map_err(|symbol| format!("{LIBRARY}: symbol `{symbol}` not found"))?;
        // Keeps the library loaded, since `symbols` points into it.
        std::mem::forget(library);
        let driver = Driver { symbols };
        // SAFETY: takes only flags, and 0 sets none.
        driver.check("cuInit", unsafe { (driver.symbols.init)(0) })?;
        Ok(Arc::new(driver))
    }

    /// Returns the number of GPUs.
    pub(super) fn devices(&self) -> Result<u32, String> {
        let mut count = 0;
        // SAFETY: writes one integer.
        self.check("cuDeviceGetCount", unsafe { (self.symbols.device_count)(&mut count) })?;
        Ok(u32::try_from(count).unwrap_or(0))
    }

    /// Turns the result code of `call` into an error that describes it.
    fn check(&self, call: &str, code: Code) -> Result<(), String> {
        if code == SUCCESS {
            return Ok(());
        }
        let mut text = null();
        // SAFETY: writes a pointer to a string that lives as long as the library, or null.
        unsafe { (self.symbols.error_string)(code, &mut text) };
        let description = if text.is_null() {
            "an unknown error".into()
        } else {
            // SAFETY: not null, so it is such a string.
            unsafe { CStr::from_ptr(text) }.to_string_lossy()
        };
        Err(format!("{call} failed with {code}: {description}"))
    }
}

/// Function that is called with the accelerator whose step has ended.
pub(super) type Done = Arc<dyn Fn(u32) + Send + Sync>;

/// The arguments of [`end_callback`]. They are boxed, so that the driver can hold their address.
struct EndNotice {
    accelerator: u32,
    done: Done,
}

struct GpuLane {
    stream: Handle,
    notice: Box<EndNotice>,
}

/// A GPU with one stream for each of its accelerators. Handles are null until they are created.
pub(super) struct Gpu {
    driver: Arc<Driver>,
    device: c_int,
    context: Handle,
    module: Handle,
    function: Handle,
    multiprocessors: c_uint,
    batch_bytes: usize,
    host: *mut c_void,
    memory: u64,
    lanes: Vec<GpuLane>,
}

// SAFETY: driver handles may be used from any thread that has made their context current, which each method does.
unsafe impl Send for Gpu {}

impl Gpu {
    /// Opens GPU `number`, with memory for a batch on the host and on the device, and a lane for each of `accelerators`.
    pub(super) fn open(
        driver: &Arc<Driver>,
        number: u32,
        batch_bytes: u64,
        accelerators: impl Iterator<Item = u32>,
        done: &Done,
    ) -> Result<Self, String> {
        let mut gpu = Gpu {
            driver: Arc::clone(driver),
            device: 0,
            context: null_mut(),
            module: null_mut(),
            function: null_mut(),
            multiprocessors: 1,
            // An allocation of length 0 fails.
            batch_bytes: usize::try_from(batch_bytes).unwrap_or(usize::MAX).max(1),
            host: null_mut(),
            memory: 0,
            lanes: Vec::new(),
        };
        gpu.prepare(number).map_err(|error| format!("GPU {number}: {error}"))?;
        for accelerator in accelerators {
            gpu.add_lane(EndNotice { accelerator, done: Arc::clone(done) })?;
        }
        Ok(gpu)
    }

    fn prepare(&mut self, number: u32) -> Result<(), String> {
        let driver = Arc::clone(&self.driver);
        let symbols = &driver.symbols;
        let check = |call, code| driver.check(call, code);
        let mut multiprocessors = 0;
        // SAFETY: each call writes one value of the type of the pointer it is given; the context is current once it is created; the
        // module's text and the kernel's name end in a zero byte.
        unsafe {
            check("cuDeviceGet", (symbols.device)(&mut self.device, number as c_int))?;
            check(
                "cuDeviceGetAttribute",
                (symbols.attribute)(&mut multiprocessors, MULTIPROCESSOR_COUNT, self.device),
            )?;
            // Fails if the context exists already, as for an evaluation beside training; the flag is then set already.
            (symbols.set_flags)(self.device, SCHED_BLOCKING_SYNC);
            check("cuDevicePrimaryCtxRetain", (symbols.retain)(&mut self.context, self.device))?;
            check("cuCtxSetCurrent", (symbols.set_current)(self.context))?;
            let text = concat!(include_str!("spin.ptx"), "\0").as_ptr().cast();
            check("cuModuleLoadData", (symbols.load_module)(&mut self.module, text))?;
            let name = c"spin".as_ptr();
            check(
                "cuModuleGetFunction",
                (symbols.function)(&mut self.function, self.module, name),
            )?;
            check("cuMemAllocHost", (symbols.allocate_host)(&mut self.host, self.batch_bytes))?;
            check("cuMemAlloc", (symbols.allocate)(&mut self.memory, self.batch_bytes))?;
        }
        self.multiprocessors = c_uint::try_from(multiprocessors).unwrap_or(1).max(1);
        Ok(())
    }

    fn add_lane(&mut self, notice: EndNotice) -> Result<(), String> {
        self.make_current()?;
        let mut stream = null_mut();
        // SAFETY: writes a handle of the current context.
        let code = unsafe { (self.driver.symbols.create_stream)(&mut stream, STREAM_NON_BLOCKING) };
        self.driver.check("cuStreamCreate", code)?;
        self.lanes.push(GpuLane { stream, notice: Box::new(notice) });
        Ok(())
    }

    /// Starts a copy of a batch to the GPU, followed by a kernel of `kernel_ns`. Returns at once.
    pub(super) fn begin(&self, lane: usize, kernel_ns: u64) -> Result<(), String> {
        self.make_current()?;
        let symbols = &self.driver.symbols;
        let stream = self.lanes[lane].stream;
        // SAFETY: both buffers have `batch_bytes` and live until the stream is finished, for which `drop` waits. The lanes of a GPU
        // share them, since the copied data is never read.
        let code =
            unsafe { (symbols.copy_to_device)(self.memory, self.host, self.batch_bytes, stream) };
        self.driver.check("cuMemcpyHtoDAsync", code)?;
        let mut kernel_ns = kernel_ns;
        let mut parameters = [(&raw mut kernel_ns).cast::<c_void>()];
        // SAFETY: the kernel has one 64-bit parameter, which is copied before the call returns.
        let code = unsafe {
            (symbols.launch_kernel)(
                self.function,
                self.multiprocessors,
                1,
                1,
                BLOCK_THREADS,
                1,
                1,
                0,
                stream,
                parameters.as_mut_ptr(),
                null_mut(),
            )
        };
        self.driver.check("cuLaunchKernel", code)
    }

    /// Requests a call of [`EndNotice::done`], by a thread of the driver, when all work started on the lane has ended.
    pub(super) fn notify_end(&self, lane: usize) -> Result<(), String> {
        self.make_current()?;
        let GpuLane { stream, notice } = &self.lanes[lane];
        let notice: *const EndNotice = &**notice;
        // SAFETY: `notice` is in a box that lives until the stream is finished, for which `drop` waits; it is only read.
        let code = unsafe {
            (self.driver.symbols.launch_host)(
                *stream,
                end_callback,
                notice.cast_mut().cast::<c_void>(),
            )
        };
        self.driver.check("cuLaunchHostFunc", code)
    }

    /// Sleeps until all work started on the lane has ended.
    pub(super) fn wait(&self, lane: usize) -> Result<(), String> {
        self.make_current()?;
        // SAFETY: the stream belongs to the lane.
        let code = unsafe { (self.driver.symbols.wait_stream)(self.lanes[lane].stream) };
        self.driver.check("cuStreamSynchronize", code)
    }

    /// Checks the streams for errors of the GPU.
    pub(super) fn check(&self) -> Result<(), String> {
        self.make_current()?;
        for lane in &self.lanes {
            // SAFETY: the stream belongs to the lane.
            match unsafe { (self.driver.symbols.query_stream)(lane.stream) } {
                NOT_READY => {}
                code => self.driver.check("cuStreamQuery", code)?,
            }
        }
        Ok(())
    }

    fn make_current(&self) -> Result<(), String> {
        // SAFETY: the context is this GPU's, or null, which means no context.
        let code = unsafe { (self.driver.symbols.set_current)(self.context) };
        self.driver.check("cuCtxSetCurrent", code)
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        if self.context.is_null() {
            return;
        }
        let symbols = &self.driver.symbols;
        // Errors are ignored: the process releases everything at its end.
        let _ = self.make_current();
        // SAFETY: all handles belong to this GPU and are not used after this; streams are finished before their memory is freed.
        unsafe {
            for lane in &self.lanes {
                (symbols.wait_stream)(lane.stream);
                (symbols.destroy_stream)(lane.stream);
            }
            if self.memory != 0 {
                (symbols.free)(self.memory);
            }
            if !self.host.is_null() {
                (symbols.free_host)(self.host);
            }
            if !self.module.is_null() {
                (symbols.unload_module)(self.module);
            }
            (symbols.set_current)(null_mut());
            (symbols.release)(self.device);
        }
    }
}

/// Called by a thread of the driver. CUDA functions must not be called here.
unsafe extern "C" fn end_callback(notice: *mut c_void) {
    // SAFETY: the pointer comes from `notify_end`, and its target lives until the stream is finished.
    let EndNotice { accelerator, done } = unsafe { &*notice.cast::<EndNotice>() };
    done(*accelerator);
}
