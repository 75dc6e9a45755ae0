//! NVIDIA's driver, as far as steps need it: all that is unsafe about it. Opened at run time, so that nothing of CUDA is needed
//! to build or to run. Decides nothing.

use crate::functions::functions;
use libloading::os::unix::Library;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

const LIBRARY: &str = "libcuda.so.1";
/// Threads of a block of the kernel: a block on each multiprocessor keeps the GPU busy, and leaves room for other lanes'.
const BLOCK_THREADS: c_uint = 128;

/// `CUresult`.
type Code = c_int;
const SUCCESS: Code = 0;
const NOT_READY: Code = 600;
/// `CU_CTX_SCHED_BLOCKING_SYNC`: whoever waits sleeps.
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

/// The library, ready for use.
pub(super) struct Driver {
    symbols: Symbols,
}

impl Driver {
    /// Open it and wake the driver, which may take seconds.
    pub(super) fn open() -> Result<Arc<Self>, String> {
        // SAFETY: loading runs the library's initialisers; it is NVIDIA's driver, or what the user puts in its place.
        let library = unsafe { Library::new(LIBRARY) };
        let library = library.map_err(|error| format!("{LIBRARY}: {error}"))?;
        let symbols = Symbols::find(&library)
            .map_err(|symbol| format!("{LIBRARY}: `{symbol}` is not in it"))?;
        // Its functions must stay.
        std::mem::forget(library);
        let driver = Driver { symbols };
        // SAFETY: takes flags, of which there are none.
        driver.done("cuInit", unsafe { (driver.symbols.init)(0) })?;
        Ok(Arc::new(driver))
    }

    /// How many GPUs there are.
    pub(super) fn devices(&self) -> Result<u32, String> {
        let mut count = 0;
        // SAFETY: writes one integer.
        self.done("cuDeviceGetCount", unsafe { (self.symbols.device_count)(&mut count) })?;
        Ok(u32::try_from(count).unwrap_or(0))
    }

    fn done(&self, call: &str, code: Code) -> Result<(), String> {
        if code == SUCCESS {
            return Ok(());
        }
        let mut text = null();
        // SAFETY: writes a pointer to a string that lasts as long as the library, or null.
        unsafe { (self.symbols.error_string)(code, &mut text) };
        let told = if text.is_null() {
            "an unknown error".into()
        } else {
            // SAFETY: not null, so it is such a string.
            unsafe { CStr::from_ptr(text) }.to_string_lossy()
        };
        Err(format!("{call} failed with {code}: {told}"))
    }
}

/// Whom to tell that a step is over.
pub(super) type Done = Arc<dyn Fn(u32) + Send + Sync>;

/// A lane's own, at an address that stays.
struct Told {
    accelerator: u32,
    done: Done,
}

struct GpuLane {
    stream: Handle,
    told: Box<Told>,
}

/// A GPU with a stream for each accelerator that has it. What is not made yet is null.
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

// SAFETY: handles of the driver may be used from any thread that has made the context its current one, which each method does.
unsafe impl Send for Gpu {}

impl Gpu {
    /// GPU `number`, with memory for a batch on both sides, and a lane for each of `accelerators`.
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
            // Nothing of length 0 can be claimed.
            batch_bytes: usize::try_from(batch_bytes).unwrap_or(usize::MAX).max(1),
            host: null_mut(),
            memory: 0,
            lanes: Vec::new(),
        };
        gpu.prepare(number).map_err(|error| format!("GPU {number}: {error}"))?;
        for accelerator in accelerators {
            gpu.add_lane(Told { accelerator, done: Arc::clone(done) })?;
        }
        Ok(gpu)
    }

    fn prepare(&mut self, number: u32) -> Result<(), String> {
        let driver = Arc::clone(&self.driver);
        let (s, done) = (&driver.symbols, |call, code| driver.done(call, code));
        let mut multiprocessors = 0;
        // SAFETY: each call writes one value of the type it is given a place for; the context is current from where it is made on;
        // the module's text and the kernel's name end in a zero byte.
        unsafe {
            done("cuDeviceGet", (s.device)(&mut self.device, number as c_int))?;
            done(
                "cuDeviceGetAttribute",
                (s.attribute)(&mut multiprocessors, MULTIPROCESSOR_COUNT, self.device),
            )?;
            // Refused where the context is there already, as in an evaluation beside training: then the flag is set.
            (s.set_flags)(self.device, SCHED_BLOCKING_SYNC);
            done("cuDevicePrimaryCtxRetain", (s.retain)(&mut self.context, self.device))?;
            done("cuCtxSetCurrent", (s.set_current)(self.context))?;
            let text = concat!(include_str!("spin.ptx"), "\0").as_ptr().cast();
            done("cuModuleLoadData", (s.load_module)(&mut self.module, text))?;
            let name = c"spin".as_ptr();
            done("cuModuleGetFunction", (s.function)(&mut self.function, self.module, name))?;
            done("cuMemAllocHost", (s.allocate_host)(&mut self.host, self.batch_bytes))?;
            done("cuMemAlloc", (s.allocate)(&mut self.memory, self.batch_bytes))?;
        }
        self.multiprocessors = c_uint::try_from(multiprocessors).unwrap_or(1).max(1);
        Ok(())
    }

    fn add_lane(&mut self, told: Told) -> Result<(), String> {
        self.make_current()?;
        let mut stream = null_mut();
        // SAFETY: writes a handle of the current context.
        let code = unsafe { (self.driver.symbols.create_stream)(&mut stream, STREAM_NON_BLOCKING) };
        self.driver.done("cuStreamCreate", code)?;
        self.lanes.push(GpuLane { stream, told: Box::new(told) });
        Ok(())
    }

    /// Copy a batch to the GPU, then let it compute for `kernel_ns`. Returns at once.
    pub(super) fn begin(&self, lane: usize, kernel_ns: u64) -> Result<(), String> {
        self.make_current()?;
        let (s, stream) = (&self.driver.symbols, self.lanes[lane].stream);
        // SAFETY: both sides have `batch_bytes`, and stay until the stream is done, for which `drop` waits. All lanes of a GPU
        // share them: nobody reads what was copied.
        let code = unsafe { (s.copy_to_device)(self.memory, self.host, self.batch_bytes, stream) };
        self.driver.done("cuMemcpyHtoDAsync", code)?;
        let mut kernel_ns = kernel_ns;
        let mut parameters = [(&raw mut kernel_ns).cast::<c_void>()];
        // SAFETY: the kernel has one parameter of 64 bits, which is copied before the call returns.
        let code = unsafe {
            (s.launch_kernel)(
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
        self.driver.done("cuLaunchKernel", code)
    }

    /// Once all that was begun on the lane is over, its accelerator is told; by a thread of the driver.
    pub(super) fn tell_end(&self, lane: usize) -> Result<(), String> {
        self.make_current()?;
        let GpuLane { stream, told } = &self.lanes[lane];
        let told: *const Told = &**told;
        // SAFETY: `told` lies in a box that stays until the stream is done, for which `drop` waits; it is only read.
        let code = unsafe {
            (self.driver.symbols.launch_host)(*stream, tell, told.cast_mut().cast::<c_void>())
        };
        self.driver.done("cuLaunchHostFunc", code)
    }

    /// Sleep until all that was begun on the lane is over.
    pub(super) fn wait(&self, lane: usize) -> Result<(), String> {
        self.make_current()?;
        // SAFETY: the stream is the lane's own.
        let code = unsafe { (self.driver.symbols.wait_stream)(self.lanes[lane].stream) };
        self.driver.done("cuStreamSynchronize", code)
    }

    /// An error of the GPU shows in its streams.
    pub(super) fn check(&self) -> Result<(), String> {
        self.make_current()?;
        for lane in &self.lanes {
            // SAFETY: the stream is the lane's own.
            match unsafe { (self.driver.symbols.query_stream)(lane.stream) } {
                NOT_READY => {}
                code => self.driver.done("cuStreamQuery", code)?,
            }
        }
        Ok(())
    }

    fn make_current(&self) -> Result<(), String> {
        // SAFETY: the context is this GPU's, or null, which is none.
        let code = unsafe { (self.driver.symbols.set_current)(self.context) };
        self.driver.done("cuCtxSetCurrent", code)
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        if self.context.is_null() {
            return;
        }
        let s = &self.driver.symbols;
        // What cannot be given back goes with the process, and the run has told its own story.
        let _ = self.make_current();
        // SAFETY: all handles are this GPU's own and used by nobody after this; streams are waited for before what they use goes.
        unsafe {
            for lane in &self.lanes {
                (s.wait_stream)(lane.stream);
                (s.destroy_stream)(lane.stream);
            }
            if self.memory != 0 {
                (s.free)(self.memory);
            }
            if !self.host.is_null() {
                (s.free_host)(self.host);
            }
            if !self.module.is_null() {
                (s.unload_module)(self.module);
            }
            (s.set_current)(null_mut());
            (s.release)(self.device);
        }
    }
}

/// Called by a thread of the driver, which allows no call of it here.
unsafe extern "C" fn tell(told: *mut c_void) {
    // SAFETY: it is what `tell_end` gave, and lives until the stream is done.
    let Told { accelerator, done } = unsafe { &*told.cast::<Told>() };
    done(*accelerator);
}
