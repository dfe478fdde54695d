//! The functions of `libgssapi_krb5`, loaded when a client needs them.
//!
//! The prototypes are those of RFC 2744, and of MIT Kerberos for `gss_acquire_cred_from`. All values that the library
//! allocates are released by the types here.

use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    fmt, ptr,
    sync::OnceLock,
};

use ottla_core::secret::Secret;

use crate::platform::Loaded;

type Status = u32;
type Handle = *mut c_void;

/// The names under which systems have the library.
const NAMES: [&CStr; 5] = [
    c"libgssapi_krb5.so.2",
    c"libgssapi_krb5.so",
    c"/opt/homebrew/opt/krb5/lib/libgssapi_krb5.dylib",
    c"/usr/local/opt/krb5/lib/libgssapi_krb5.dylib",
    c"gssapi64.dll",
];

#[repr(C)]
struct Buffer {
    length: usize,
    value: *mut c_void,
}

#[repr(C)]
struct Oid {
    length: u32,
    elements: *const c_void,
}

#[repr(C)]
struct OidSet {
    count: usize,
    elements: *const Oid,
}

#[repr(C)]
struct KeyValue {
    key: *const c_char,
    value: *const c_char,
}

#[repr(C)]
struct KeyValueSet {
    count: u32,
    elements: *const KeyValue,
}

const NO_BUFFER: Buffer = Buffer { length: 0, value: ptr::null_mut() };
/// 1.2.840.113554.1.2.2, Kerberos 5.
const KRB5: &[u8] = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02";
/// 1.2.840.113554.1.2.1.4, `service@host`.
const HOST_BASED: &[u8] = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x04";
/// 1.2.840.113554.1.2.2.1, a principal of Kerberos.
const PRINCIPAL: &[u8] = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01";
const MUTUAL: u32 = 2;
const INTEGRITY: u32 = 32;
const INITIATE: c_int = 1;
const CONTINUE_NEEDED: Status = 1;
const ERRORS: Status = 0xffff_0000;
const GSS_CODE: c_int = 1;
const MECHANISM_CODE: c_int = 2;

type ImportName = unsafe extern "C" fn(*mut Status, *const Buffer, *const Oid, *mut Handle) -> Status;
type InitSecContext = unsafe extern "C" fn(
    *mut Status,
    Handle,
    *mut Handle,
    Handle,
    *const Oid,
    u32,
    u32,
    *const c_void,
    *const Buffer,
    *mut *const Oid,
    *mut Buffer,
    *mut u32,
    *mut u32,
) -> Status;
type Wrap =
    unsafe extern "C" fn(*mut Status, Handle, c_int, u32, *const Buffer, *mut c_int, *mut Buffer) -> Status;
type Unwrap =
    unsafe extern "C" fn(*mut Status, Handle, *const Buffer, *mut Buffer, *mut c_int, *mut u32) -> Status;
type ReleaseBuffer = unsafe extern "C" fn(*mut Status, *mut Buffer) -> Status;
type Release = unsafe extern "C" fn(*mut Status, *mut Handle) -> Status;
type DeleteContext = unsafe extern "C" fn(*mut Status, *mut Handle, *mut Buffer) -> Status;
type DisplayStatus =
    unsafe extern "C" fn(*mut Status, Status, c_int, *const Oid, *mut u32, *mut Buffer) -> Status;
type AcquireFrom = unsafe extern "C" fn(
    *mut Status,
    Handle,
    u32,
    *const OidSet,
    c_int,
    *const KeyValueSet,
    *mut Handle,
    *mut *mut OidSet,
    *mut u32,
) -> Status;

/// The loaded library.
pub struct Library {
    import_name: ImportName,
    init_sec_context: InitSecContext,
    wrap: Wrap,
    unwrap: Unwrap,
    release_buffer: ReleaseBuffer,
    release_name: Release,
    release_cred: Release,
    delete_sec_context: DeleteContext,
    display_status: DisplayStatus,
    acquire_cred_from: AcquireFrom,
}

static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();

impl Library {
    /// Loads the library at the first call; it stays loaded. Error: what is missing.
    pub fn get() -> Result<&'static Self, &'static str> {
        LIBRARY.get_or_init(Self::load).as_ref().map_err(|why| &**why)
    }

    fn load() -> Result<Self, String> {
        let library = NAMES.iter().find_map(|name| Loaded::open(name)).ok_or_else(|| {
            "sasl.mechanisms=GSSAPI needs libgssapi_krb5.so.2, which is not installed: install the package \
             libgssapi-krb5-2 (Debian) or krb5-libs (Fedora)"
                .to_owned()
        })?;
        let symbol = |name: &CStr| {
            let missing = || format!("libgssapi_krb5 has no function {}", name.to_string_lossy());
            library.symbol(name).ok_or_else(missing)
        };
        macro_rules! function {
            ($name:literal, $kind:ty) => {
                // SAFETY: RFC 2744 and MIT Kerberos define the function with this prototype.
                unsafe { std::mem::transmute::<*mut c_void, $kind>(symbol($name)?) }
            };
        }
        Ok(Self {
            import_name: function!(c"gss_import_name", ImportName),
            init_sec_context: function!(c"gss_init_sec_context", InitSecContext),
            wrap: function!(c"gss_wrap", Wrap),
            unwrap: function!(c"gss_unwrap", Unwrap),
            release_buffer: function!(c"gss_release_buffer", ReleaseBuffer),
            release_name: function!(c"gss_release_name", Release),
            release_cred: function!(c"gss_release_cred", Release),
            delete_sec_context: function!(c"gss_delete_sec_context", DeleteContext),
            display_status: function!(c"gss_display_status", DisplayStatus),
            acquire_cred_from: function!(c"gss_acquire_cred_from", AcquireFrom),
        })
    }

    /// Copies and releases a buffer that the library allocated.
    fn take(&self, mut buffer: Buffer) -> Vec<u8> {
        let bytes = if buffer.value.is_null() {
            Vec::new()
        } else {
            // SAFETY: the library has written `length` bytes there.
            unsafe { std::slice::from_raw_parts(buffer.value.cast::<u8>(), buffer.length) }.to_vec()
        };
        let mut minor = 0;
        // SAFETY: the buffer is the library's, and is not used afterwards.
        unsafe { (self.release_buffer)(&mut minor, &mut buffer) };
        bytes
    }

    /// Returns the text of a failed call, or its status.
    fn check(&self, major: Status, minor: Status) -> Result<Status, String> {
        if major & ERRORS == 0 {
            return Ok(major);
        }
        let mut texts = Vec::new();
        for (status, kind) in [(major, GSS_CODE), (minor, MECHANISM_CODE)] {
            let (mut context, mechanism) = (0, oid(KRB5));
            for _ in 0..4 {
                let (mut ignored, mut out) = (0, NO_BUFFER);
                // SAFETY: all pointers are to values that live during the call.
                unsafe {
                    (self.display_status)(&mut ignored, status, kind, &mechanism, &mut context, &mut out);
                }
                let text = self.take(out);
                if status != 0 && !text.is_empty() {
                    texts.push(String::from_utf8_lossy(&text).into_owned());
                }
                if context == 0 {
                    break;
                }
            }
        }
        Err(texts.join(": "))
    }

    fn name(&'static self, text: &str, kind: &'static [u8]) -> Result<Name, String> {
        let (mut minor, mut handle, kind) = (0, ptr::null_mut(), oid(kind));
        // SAFETY: all pointers are to values that live during the call, which copies them.
        let major = unsafe { (self.import_name)(&mut minor, &buffer(text.as_bytes()), &kind, &mut handle) };
        self.check(major, minor)?;
        Ok(Name { library: self, handle })
    }
}

const fn oid(bytes: &'static [u8]) -> Oid {
    Oid { length: bytes.len() as u32, elements: bytes.as_ptr().cast() }
}

/// Returns a view of bytes, for arguments that the library only reads.
const fn buffer(bytes: &[u8]) -> Buffer {
    Buffer { length: bytes.len(), value: bytes.as_ptr().cast_mut().cast() }
}

struct Name {
    library: &'static Library,
    handle: Handle,
}

impl Drop for Name {
    fn drop(&mut self) {
        let mut minor = 0;
        // SAFETY: the name is owned, and is not used afterwards.
        unsafe { (self.library.release_name)(&mut minor, &mut self.handle) };
    }
}

/// The credentials of a principal, from its key table.
pub struct Credential {
    library: &'static Library,
    handle: Handle,
}

// SAFETY: MIT Kerberos' credentials may be used by several threads, and by another thread than the one that made them.
unsafe impl Send for Credential {}

impl Credential {
    /// Gets credentials with the keys of a key table. Tickets are stored in memory, under this name.
    pub fn of_keytab(principal: &str, keytab: &str, cache: &str) -> Result<Self, String> {
        let library = Library::get()?;
        let name = library.name(principal, PRINCIPAL)?;
        let text = |text: &str| CString::new(text).map_err(|_| "a name has a zero byte".to_owned());
        let (keytab, cache) = (text(keytab)?, text(cache)?);
        let elements = [
            KeyValue { key: c"client_keytab".as_ptr(), value: keytab.as_ptr() },
            KeyValue { key: c"ccache".as_ptr(), value: cache.as_ptr() },
        ];
        let store = KeyValueSet { count: 2, elements: elements.as_ptr() };
        let mechanism = oid(KRB5);
        let mechanisms = OidSet { count: 1, elements: &mechanism };
        let (mut minor, mut handle) = (0, ptr::null_mut());
        // SAFETY: all pointers are to values that live during the call; the optional results may be null.
        let major = unsafe {
            (library.acquire_cred_from)(
                &mut minor,
                name.handle,
                u32::MAX,
                &mechanisms,
                INITIATE,
                &store,
                &mut handle,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        library.check(major, minor)?;
        Ok(Self { library, handle })
    }
}

impl Drop for Credential {
    fn drop(&mut self) {
        let mut minor = 0;
        // SAFETY: the credentials are owned, and are not used afterwards.
        unsafe { (self.library.release_cred)(&mut minor, &mut self.handle) };
    }
}

/// One authentication to a service.
pub struct Context {
    library: &'static Library,
    target: Name,
    handle: Handle,
}

// SAFETY: a context may move between threads, as long as one at a time uses it.
unsafe impl Send for Context {}

impl Context {
    /// Starts an authentication to `service@host`.
    pub fn new(target: &str) -> Result<Self, String> {
        let library = Library::get()?;
        Ok(Self { library, target: library.name(target, HOST_BASED)?, handle: ptr::null_mut() })
    }

    /// Handles a token of the peer, none at first. Returns the next token, and whether the peer is authenticated.
    pub fn step(&mut self, token: &[u8], credential: Option<&Credential>) -> Result<(Vec<u8>, bool), String> {
        let (mut minor, mut out, mut flags, mechanism) = (0, NO_BUFFER, 0, oid(KRB5));
        // SAFETY: all pointers are to values that live during the call; the optional results may be null. The library
        // creates the context at the first call.
        let major = unsafe {
            (self.library.init_sec_context)(
                &mut minor,
                credential.map_or(ptr::null_mut(), |credential| credential.handle),
                &mut self.handle,
                self.target.handle,
                &mechanism,
                MUTUAL | INTEGRITY,
                0,
                ptr::null(),
                &buffer(token),
                ptr::null_mut(),
                &mut out,
                &mut flags,
                ptr::null_mut(),
            )
        };
        let token = self.library.take(out);
        let major = self.library.check(major, minor)?;
        let is_complete = major & CONTINUE_NEEDED == 0;
        if is_complete && flags & MUTUAL == 0 {
            return Err("the broker has not proved its identity".to_owned());
        }
        Ok((token, is_complete))
    }

    /// Checks and removes the protection of a message.
    pub fn unwrap(&mut self, message: &[u8]) -> Result<Vec<u8>, String> {
        let (mut minor, mut out) = (0, NO_BUFFER);
        // SAFETY: all pointers are to values that live during the call; the optional results may be null.
        let major = unsafe {
            (self.library.unwrap)(
                &mut minor,
                self.handle,
                &buffer(message),
                &mut out,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        let message = self.library.take(out);
        self.library.check(major, minor).map(|_| message)
    }

    /// Protects the integrity of a message.
    pub fn wrap(&mut self, message: &[u8]) -> Result<Secret, String> {
        let (mut minor, mut out) = (0, NO_BUFFER);
        // SAFETY: all pointers are to values that live during the call; the optional result may be null.
        let major = unsafe {
            (self.library.wrap)(&mut minor, self.handle, 0, 0, &buffer(message), ptr::null_mut(), &mut out)
        };
        let message = Secret::new(self.library.take(out));
        self.library.check(major, minor).map(|_| message)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let mut minor = 0;
        // SAFETY: the context is owned, and is not used afterwards.
        unsafe { (self.library.delete_sec_context)(&mut minor, &mut self.handle, ptr::null_mut()) };
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Context")
    }
}
