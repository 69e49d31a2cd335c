//! The calls to the operating system. Each `unsafe` block is one call of `libc` with pointers to values that live longer
//! than the call.

use super::frame::{
    CN_IDX_PROC, EVENT_KIND_OFFSET, PROC_EVENT_COMM, PROC_EVENT_EXEC, PROC_EVENT_NONE, PROC_EVENT_UID,
};
use std::io;
use std::mem::{size_of, size_of_val};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A netlink socket of the connector, non-blocking, in the group of process events.
#[derive(Debug)]
pub(super) struct Socket {
    descriptor: OwnedFd,
}

impl Socket {
    pub(super) fn open() -> io::Result<Self> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no pointers.
        let number = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_CONNECTOR) };
        check(number.into())?;
        // SAFETY: the call above returned a descriptor that nobody else knows.
        Ok(Self { descriptor: unsafe { OwnedFd::from_raw_fd(number) } })
    }

    /// Joins the group of process events. The kernel chooses the port.
    pub(super) fn join_group(&self) -> io::Result<()> {
        let address = address(CN_IDX_PROC);
        // SAFETY: `address` is a `sockaddr_nl` and its size is given.
        check(i64::from(unsafe {
            libc::bind(self.descriptor.as_raw_fd(), (&raw const address).cast(), address_length())
        }))?;
        Ok(())
    }

    /// Sends a frame to the kernel.
    pub(super) fn send(&self, frame: &[u8]) -> io::Result<()> {
        let address = address(0);
        // SAFETY: both pointers are valid for the lengths given.
        let sent = unsafe {
            libc::sendto(
                self.descriptor.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
                (&raw const address).cast(),
                address_length(),
            )
        };
        check(sent as i64).map(|_| ())
    }

    /// Receives a datagram. Returns its length, or `None` if it is not from the kernel: any local process may send to a
    /// netlink port.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let mut from = address(0);
        let mut length = address_length();
        // SAFETY: all pointers are valid for the lengths given, and `length` is the size of `from`.
        let received = unsafe {
            libc::recvfrom(
                self.descriptor.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                0,
                (&raw mut from).cast(),
                &raw mut length,
            )
        };
        let received = check(received as i64)?;
        Ok((from.nl_pid == 0).then_some(received))
    }

    /// Asks for a receive buffer of `bytes`: beyond the machine's limit where that is permitted, else up to the limit.
    pub(super) fn set_receive_buffer(&self, bytes: i32) -> io::Result<()> {
        self.set_option(libc::SO_RCVBUFFORCE, &bytes).or_else(|_| self.set_option(libc::SO_RCVBUF, &bytes))
    }

    /// Makes the kernel drop all events but those of interest before they use the receive buffer. For kernels that do not
    /// select the kinds of events themselves.
    pub(super) fn attach_filter(&self) -> io::Result<()> {
        let mut program = filter_program();
        let length = u16::try_from(program.len()).expect("a few instructions");
        let program = libc::sock_fprog { len: length, filter: program.as_mut_ptr() };
        self.set_option(libc::SO_ATTACH_FILTER, &program)
    }

    fn set_option<T>(&self, option: i32, value: &T) -> io::Result<()> {
        let length = libc::socklen_t::try_from(size_of_val(value)).expect("small");
        // SAFETY: `value` is valid for its size. The kernel checks that it is what the option needs.
        check(i64::from(unsafe {
            libc::setsockopt(
                self.descriptor.as_raw_fd(),
                libc::SOL_SOCKET,
                option,
                std::ptr::from_ref(value).cast(),
                length,
            )
        }))?;
        Ok(())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Gives the calling thread the lowest real-time priority, which is above every ordinary thread: events are then read
/// before a busy machine overflows the buffer. Fails without `CAP_SYS_NICE`.
pub fn request_real_time_priority() -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: 1 };
    let policy = libc::SCHED_RR | libc::SCHED_RESET_ON_FORK;
    // SAFETY: 0 is the calling thread, and `parameter` is valid.
    check(i64::from(unsafe { libc::sched_setscheduler(0, policy, &raw const parameter) })).map(|_| ())
}

/// Lets acknowledgements, EXEC, COMM and UID events pass. Numbers are loaded in network byte order.
fn filter_program() -> [libc::sock_filter; 7] {
    let code = |code: u32| u16::try_from(code).expect("instruction codes have 16 bits");
    let statement = |instruction: u32, k: u32| libc::sock_filter { code: code(instruction), jt: 0, jf: 0, k };
    let jump_if = |kind: u32, jt: u8, jf: u8| libc::sock_filter {
        code: code(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K),
        jt,
        jf,
        k: kind.to_be(),
    };
    let offset = u32::try_from(EVENT_KIND_OFFSET).expect("small");
    [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset),
        jump_if(PROC_EVENT_EXEC, 4, 0),
        jump_if(PROC_EVENT_COMM, 3, 0),
        jump_if(PROC_EVENT_UID, 2, 0),
        jump_if(PROC_EVENT_NONE, 1, 0),
        statement(libc::BPF_RET | libc::BPF_K, 0),
        statement(libc::BPF_RET | libc::BPF_K, u32::MAX),
    ]
}

fn address(groups: u32) -> libc::sockaddr_nl {
    // SAFETY: all zeros is a valid value of this plain structure, which has private padding.
    let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
    address.nl_family = libc::sa_family_t::try_from(libc::AF_NETLINK).expect("small");
    address.nl_groups = groups;
    address
}

fn address_length() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<libc::sockaddr_nl>()).expect("small")
}

fn check(returned: i64) -> io::Result<usize> {
    usize::try_from(returned).map_err(|_| io::Error::last_os_error())
}
