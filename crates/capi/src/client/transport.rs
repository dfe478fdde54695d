//! The application's functions for sockets, host names and files, which replace those of the system.
//!
//! They are called by I/O threads and by the resolver's thread, which serve all clients of the process. The result of a
//! function is checked before it is used. Once `rd_kafka_destroy()` has returned none of them is called any more: the
//! memory behind the opaque pointer is the application's.

use std::{
    ffi::{CString, c_int, c_void},
    fs::File,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpStream},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    ptr,
    time::Instant,
};

use ottla_net::{SystemTransport, Transport};
use ottla_sorted::SortedSet;

use crate::{
    client::{
        callbacks::{Callbacks, CloseSocketCb, ConnectCb, OpenCb, ResolveCb, SocketCb},
        conf::Conf,
    },
    ffi::{
        boundary::Opaque,
        gate::{Gate, Pass},
        lock::{Mutex, assert_none_held},
    },
    platform::{self, net},
};

/// The socket functions of a client's application.
#[derive(Debug)]
pub(crate) struct AppTransport {
    socket: Option<SocketCb>,
    connect: Option<ConnectCb>,
    close: Option<CloseSocketCb>,
    resolve: Option<ResolveCb>,
    opaque: Opaque,
    /// The hints for `resolve_cb`.
    family: c_int,
    gate: Gate,
    /// Descriptors from `socket_cb` that are not closed yet.
    open: Mutex<SortedSet<c_int>>,
}

/// The maximum number of entries that are read from a list, which could be circular.
const MAX_ENTRIES: usize = 1000;

impl AppTransport {
    /// Returns the transport; `None` if the application set none of the functions.
    pub(crate) fn of(conf: &Conf, family: Option<&str>) -> Option<Self> {
        let Callbacks { socket, connect, closesocket, resolve, .. } = conf.callbacks;
        let is_requested =
            socket.is_some() || connect.is_some() || closesocket.is_some() || resolve.is_some();
        is_requested.then(|| Self {
            socket,
            connect,
            close: closesocket,
            resolve,
            opaque: conf.opaque,
            family: match family {
                Some("v4") => net::AF_INET,
                Some("v6") => net::AF_INET6,
                _ => net::AF_UNSPEC,
            },
            gate: Gate::default(),
            open: Mutex::default(),
        })
    }

    /// Stops all calls of the application's functions. Waits for calls in progress, except one of this thread; the
    /// error names one that did not return.
    pub(crate) fn shut(&self, until: Instant) -> Result<(), &'static str> {
        self.gate.shut(until)
    }

    /// Calls a function of the application. The second result is the value of `errno` afterwards.
    fn call<R>(
        &self,
        name: &'static str,
        function: impl FnOnce(*mut c_void) -> R,
    ) -> io::Result<(R, io::Error)> {
        let _pass = self.enter(name)?;
        let opaque = self.opaque;
        catch_unwind(AssertUnwindSafe(|| {
            let result = function(opaque.0);
            (result, io::Error::last_os_error())
        }))
        .map_err(|_| failed(name, "panicked"))
    }

    fn enter(&self, name: &'static str) -> io::Result<Pass<'_>> {
        self.gate.enter(name).ok_or_else(|| io::Error::other("the client is destroyed"))
    }

    fn addresses(&self, host: &str, port: u16, callback: ResolveCb) -> io::Result<Vec<SocketAddr>> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let (Ok(node), Ok(service)) = (CString::new(host), CString::new(port.to_string())) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the host's name has a zero byte"));
        };
        // SAFETY: all zeroes is a valid `addrinfo`.
        let mut hints: net::addrinfo = unsafe { std::mem::zeroed() };
        hints.ai_flags = net::AI_ADDRCONFIG;
        hints.ai_family = self.family;
        hints.ai_socktype = net::SOCK_STREAM;
        hints.ai_protocol = net::IPPROTO_TCP;
        let mut list: *mut net::addrinfo = ptr::null_mut();
        // The function that returned a list also frees it, even while the client is being destroyed.
        let _pass = self.enter("resolve_cb")?;
        // SAFETY: the application's function gets texts, hints and an address for the list that live until it returns.
        let (result, errno) = self.call("resolve_cb", |opaque| unsafe {
            callback(node.as_ptr(), service.as_ptr(), &raw const hints, &raw mut list, opaque)
        })?;
        if self.gate.is_given_up() {
            return Err(failed("resolve_cb", "returned after its client was destroyed"));
        }
        if result != 0 {
            let why = platform::resolver_text(result, &errno);
            return Err(failed("resolve_cb", &format!("returned {result}: {why}")));
        }
        // SAFETY: the function returned a list of `addrinfo`: each pointer to the next entry is NULL or readable.
        let entries = std::iter::successors(unsafe { list.as_ref() }, |one| unsafe { one.ai_next.as_ref() });
        // SAFETY: as above.
        let addresses: Vec<_> =
            entries.take(MAX_ENTRIES).filter_map(|one| unsafe { address_of(one, port) }).collect();
        if !list.is_null() {
            // SAFETY: the header documents this call as the one that frees the list.
            self.call("resolve_cb", |opaque| unsafe {
                callback(ptr::null(), ptr::null(), ptr::null(), &raw mut list, opaque)
            })?;
        }
        if addresses.is_empty() {
            return Err(failed("resolve_cb", "returned 0 and gave no IPv4 or IPv6 address"));
        }
        Ok(addresses)
    }
}

impl Transport for AppTransport {
    fn open(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let Some(callback) = self.socket else { return SystemTransport.open(address) };
        let domain = if address.is_ipv4() { net::AF_INET } else { net::AF_INET6 };
        // SAFETY: the application's function.
        let (fd, errno) = self.call("socket_cb", |opaque| unsafe {
            callback(domain, net::SOCK_STREAM, net::IPPROTO_TCP, opaque)
        })?;
        if fd < 0 {
            return Err(failed("socket_cb", &format!("returned {fd}: {errno}")));
        }
        if !platform::is_stream_socket(fd) {
            return Err(failed("socket_cb", &format!("returned {fd}, which is not an open stream socket")));
        }
        if !self.open.lock().insert(fd) {
            return Err(failed("socket_cb", &format!("returned {fd}, which is in use already")));
        }
        // SAFETY: the descriptor is open, the application passes its ownership, and no other connection of the client
        // has it.
        Ok(unsafe { platform::stream_of(fd) })
    }

    fn connect(&self, socket: &TcpStream, address: SocketAddr, broker: &str) -> io::Result<()> {
        let Some(callback) = self.connect else {
            return SystemTransport.connect(socket, address, broker);
        };
        // The application gets host and port, without the node ID that names in logs have.
        let address_of_broker = broker.split('/').next().unwrap_or_default();
        let (fd, name) = (platform::descriptor(socket), CString::new(address_of_broker).unwrap_or_default());
        let (storage, length) = raw_address(address);
        // SAFETY: the application's function gets an address and a text that live until it returns.
        let (result, _) = self.call("connect_cb", |opaque| unsafe {
            callback(fd, (&raw const storage).cast(), length, name.as_ptr(), opaque)
        })?;
        match result {
            errno if errno == 0 || platform::is_in_progress(errno) => {
                let is_open = platform::is_stream_socket(fd);
                is_open
                    .then_some(())
                    .ok_or_else(|| failed("connect_cb", "closed the socket and returned success"))
            }
            errno if errno > 0 => {
                let error = io::Error::from_raw_os_error(errno);
                Err(failed("connect_cb", &format!("returned {errno}: {error}")))
            }
            other => Err(failed("connect_cb", &format!("returned {other}, which is neither 0 nor an errno"))),
        }
    }

    fn close(&self, socket: TcpStream) {
        // The descriptor may be closed already, by the application's connect or close function.
        let fd = platform::into_descriptor(socket);
        self.open.lock().remove(&fd);
        if let Some(callback) = self.close {
            // SAFETY: the application's function.
            if self.call("closesocket_cb", |opaque| unsafe { callback(fd, opaque) }).is_ok() {
                return;
            }
        }
        platform::close_socket(fd);
    }

    fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        match self.resolve {
            Some(callback) => self.addresses(host, port, callback),
            None => SystemTransport.resolve(host, port),
        }
    }

    fn resolves_addresses(&self) -> bool {
        self.resolve.is_some()
    }
}

/// The functions by which a client opens files: in calls of the application, and on the thread that writes offsets,
/// which ends before the client does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opener {
    open: Option<OpenCb>,
    opaque: Opaque,
}

impl Opener {
    pub(crate) const fn of(conf: &Conf) -> Self {
        Self { open: conf.callbacks.open, opaque: conf.opaque }
    }

    /// Opens a file for reading.
    pub(crate) fn read(self, path: &Path) -> io::Result<File> {
        match self.open {
            None => File::open(path),
            Some(callback) => self.call(callback, path, platform::READ),
        }
    }

    /// Opens a file for writing, creates it if necessary, and empties it.
    pub(crate) fn create(self, path: &Path) -> io::Result<File> {
        match self.open {
            None => File::create(path),
            Some(callback) => self.call(callback, path, platform::CREATE),
        }
    }

    fn call(self, callback: OpenCb, path: &Path, flags: c_int) -> io::Result<File> {
        assert_none_held("open_cb");
        let name = platform::path_text(path)?;
        let opaque = self.opaque;
        let called = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: the application's function gets a text that lives until it returns.
            let fd = unsafe { callback(name.as_ptr(), flags, 0o644, opaque.0) };
            (fd, io::Error::last_os_error())
        }));
        let (fd, errno) = called.map_err(|_| failed("open_cb", "panicked"))?;
        if fd < 0 {
            let text = failed("open_cb", &format!("returned {fd}: {errno}"));
            return Err(io::Error::new(errno.kind(), text));
        }
        if !platform::is_regular_file(fd) {
            return Err(failed("open_cb", &format!("returned {fd}, which is not an open regular file")));
        }
        // SAFETY: the descriptor is open, and the application passes its ownership.
        unsafe { platform::file_of(fd) }
    }
}

fn failed(name: &str, what: &str) -> io::Error {
    io::Error::other(format!("the application's {name} {what}"))
}

/// Returns an address as C has it, with its length.
fn raw_address(address: SocketAddr) -> (net::sockaddr_storage, c_int) {
    // SAFETY: all zeroes is a valid `sockaddr_storage`, which has the size and the alignment for every kind of address.
    unsafe {
        let mut storage: net::sockaddr_storage = std::mem::zeroed();
        let length = match address {
            SocketAddr::V4(address) => {
                let v4 = &mut *(&raw mut storage).cast::<net::sockaddr_in>();
                v4.sin_family = net::AF_INET as net::sa_family_t;
                v4.sin_port = address.port().to_be();
                v4.sin_addr.s_addr = u32::from_ne_bytes(address.ip().octets());
                size_of::<net::sockaddr_in>()
            }
            SocketAddr::V6(address) => {
                let v6 = &mut *(&raw mut storage).cast::<net::sockaddr_in6>();
                v6.sin6_family = net::AF_INET6 as net::sa_family_t;
                v6.sin6_port = address.port().to_be();
                v6.sin6_flowinfo = address.flowinfo();
                v6.sin6_addr.s6_addr = address.ip().octets();
                v6.sin6_scope_id = address.scope_id();
                size_of::<net::sockaddr_in6>()
            }
        };
        (storage, length as c_int)
    }
}

/// Returns the address of an entry; `port` replaces a missing port.
///
/// # Safety
///
/// The entry's address is NULL or has the number of bytes that the entry names.
unsafe fn address_of(entry: &net::addrinfo, port: u16) -> Option<SocketAddr> {
    let (at, length) = (entry.ai_addr, entry.ai_addrlen as usize);
    if at.is_null() || length < size_of::<net::sa_family_t>() {
        return None;
    }
    let or_port = |given: u16| if given == 0 { port } else { u16::from_be(given) };
    // SAFETY: by the contract of this function; nothing is read beyond the length, and nothing is assumed of the alignment.
    unsafe {
        match c_int::from((&raw const (*at).sa_family).read_unaligned()) {
            net::AF_INET if length >= size_of::<net::sockaddr_in>() => {
                let raw = at.cast::<net::sockaddr_in>().read_unaligned();
                let ip = Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes());
                Some(SocketAddr::new(IpAddr::V4(ip), or_port(raw.sin_port)))
            }
            net::AF_INET6 if length >= size_of::<net::sockaddr_in6>() => {
                let raw = at.cast::<net::sockaddr_in6>().read_unaligned();
                let ip = Ipv6Addr::from(raw.sin6_addr.s6_addr);
                let port = or_port(raw.sin6_port);
                Some(SocketAddrV6::new(ip, port, raw.sin6_flowinfo, raw.sin6_scope_id).into())
            }
            _ => None,
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    fn transport() -> AppTransport {
        // SAFETY: the ownership of the configuration passes to this call.
        let conf =
            unsafe { crate::ffi::quarantine::HandleBox::from_raw(crate::client::conf::rd_kafka_conf_new()) }
                .unwrap();
        assert!(AppTransport::of(&conf, None).is_none());
        AppTransport {
            socket: None,
            connect: None,
            close: None,
            resolve: None,
            opaque: Opaque(ptr::null_mut()),
            family: libc::AF_UNSPEC,
            gate: Gate::default(),
            open: Mutex::default(),
        }
    }

    const HERE: &str = "127.0.0.1:9";

    #[test]
    fn panicking_function_is_an_error_that_names_it() {
        unsafe extern "C-unwind" fn socket(_: c_int, _: c_int, _: c_int, _: *mut c_void) -> c_int {
            panic!("no socket today");
        }
        unsafe extern "C-unwind" fn connect(
            _: c_int,
            _: *const libc::sockaddr,
            _: c_int,
            _: *const std::ffi::c_char,
            _: *mut c_void,
        ) -> c_int {
            panic!("nor a connection");
        }
        unsafe extern "C-unwind" fn close(_: c_int, _: *mut c_void) -> c_int {
            panic!("nor an end");
        }
        unsafe extern "C-unwind" fn resolve(
            _: *const std::ffi::c_char,
            _: *const std::ffi::c_char,
            _: *const libc::addrinfo,
            _: *mut *mut libc::addrinfo,
            _: *mut c_void,
        ) -> c_int {
            panic!("nor an address");
        }
        let address = HERE.parse().unwrap();
        let broken = AppTransport { socket: Some(socket), ..transport() };
        assert_eq!(broken.open(address).unwrap_err().to_string(), "the application's socket_cb panicked");
        let broken = AppTransport {
            connect: Some(connect),
            close: Some(close),
            resolve: Some(resolve),
            ..transport()
        };
        let made = broken.open(address).unwrap();
        let fd = made.as_raw_fd();
        let error = broken.connect(&made, address, "b").unwrap_err();
        assert_eq!(error.to_string(), "the application's connect_cb panicked");
        let error = broken.resolve("b", 9).unwrap_err();
        assert_eq!(error.to_string(), "the application's resolve_cb panicked");
        assert!(platform::is_stream_socket(fd));
        broken.close(made);
        // All calls have returned.
        broken.shut(Instant::now()).unwrap();
    }

    #[test]
    fn open_cb_opens_the_file_and_other_descriptors_are_refused() {
        unsafe extern "C-unwind" fn open(
            path: *const std::ffi::c_char,
            flags: c_int,
            mode: libc::mode_t,
            opaque: *mut c_void,
        ) -> c_int {
            match opaque as usize {
                // SAFETY: the path is a text.
                1 => unsafe { libc::open(path, flags, mode) },
                2 => 0x7fff_0000,
                3 => {
                    // SAFETY: a new descriptor.
                    unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) }
                }
                _ => panic!("no file today"),
            }
        }
        let opener = |how: usize| Opener { open: Some(open), opaque: Opaque(how as *mut c_void) };
        let path = std::env::temp_dir().join(format!("ottla-open-cb-{}", std::process::id()));
        assert_eq!(opener(1).read(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::io::Write::write_all(&mut opener(1).create(&path).unwrap(), b"5").unwrap();
        assert_eq!(io::read_to_string(opener(1).read(&path).unwrap()).unwrap(), "5");
        std::fs::remove_file(&path).unwrap();
        let error_of = |how| opener(how).read(&path).unwrap_err().to_string();
        assert!(
            error_of(2).contains("open_cb returned 2147418112, which is not an open regular file"),
            "{}",
            error_of(2)
        );
        assert!(error_of(3).contains("which is not an open regular file"), "{}", error_of(3));
        assert_eq!(error_of(4), "the application's open_cb panicked");
    }

    #[test]
    fn addresses_survive_conversion_to_c() {
        for text in ["127.0.0.1:9092", "[fe80::1%3]:9092", "[::1]:1"] {
            let address: SocketAddr = text.parse().unwrap();
            let (mut storage, length) = raw_address(address);
            // SAFETY: all zeroes is a valid `addrinfo`.
            let mut entry: libc::addrinfo = unsafe { std::mem::zeroed() };
            entry.ai_addr = (&raw mut storage).cast();
            entry.ai_addrlen = length as libc::socklen_t;
            // SAFETY: the address has this number of bytes.
            unsafe {
                assert_eq!(address_of(&entry, 1), Some(address));
                entry.ai_addrlen -= 1;
                assert_eq!(address_of(&entry, 1), None);
            }
        }
        // SAFETY: as above.
        unsafe {
            let (mut storage, length) = raw_address(SocketAddr::from(([10, 0, 0, 1], 0)));
            let mut entry: libc::addrinfo = std::mem::zeroed();
            (entry.ai_addr, entry.ai_addrlen) = ((&raw mut storage).cast(), length as libc::socklen_t);
            assert_eq!(address_of(&entry, 9092), Some(SocketAddr::from(([10, 0, 0, 1], 9092))));
        }
    }
}
