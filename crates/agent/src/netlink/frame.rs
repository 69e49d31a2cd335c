//! The frames of the process connector: three nested headers in the byte order of the machine.
//!
//! | offset | field |
//! |---|---|
//! | 0 | netlink: length `u32`, type `u16`, flags `u16`, sequence `u32`, port `u32` |
//! | 16 | connector: index `u32`, value `u32`, sequence `u32`, acknowledgement `u32`, length `u16`, flags `u16` |
//! | 36 | event: kind `u32`, CPU `u32`, time `u64`, then what belongs to the kind |

/// The size of a netlink header.
const NETLINK_HEADER_BYTES: usize = 16;
/// The size of a connector header.
const CONNECTOR_HEADER_BYTES: usize = 20;
/// The size of an event before what belongs to its kind.
const EVENT_HEADER_BYTES: usize = 16;

/// The offset of the kind of an event in a frame.
pub const EVENT_KIND_OFFSET: usize = NETLINK_HEADER_BYTES + CONNECTOR_HEADER_BYTES;

/// The netlink type of a complete message.
const NLMSG_DONE: u16 = 3;
/// The connector's index of process events, which is also their multicast group.
pub const CN_IDX_PROC: u32 = 1;
/// The connector's value of process events.
const CN_VAL_PROC: u32 = 1;

/// The kind of an acknowledgement.
pub const PROC_EVENT_NONE: u32 = 0;
/// The kind of the event of a process that replaced its program.
pub const PROC_EVENT_EXEC: u32 = 2;
/// The kind of the event of a thread that changed its user.
pub const PROC_EVENT_UID: u32 = 4;
/// The kind of the event of a thread that changed its name.
pub const PROC_EVENT_COMM: u32 = 0x200;

/// A request to the process connector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenRequest {
    /// Send events of these kinds only. Acknowledgements are then not sent either. Kernels before 6.6 ignore this form.
    ListenTo(u32),
    /// Send all events.
    ListenToAll,
    /// Send no more events.
    Ignore,
}

impl ListenRequest {
    /// The frame of the request. The kernel answers with `number` plus one in the field for acknowledgements; it does not
    /// repeat the sequence.
    pub fn to_frame(self, number: u32) -> Vec<u8> {
        let (operation, kinds) = match self {
            Self::ListenTo(kinds) => (1_u32, Some(kinds)),
            Self::ListenToAll => (1, None),
            Self::Ignore => (2, None),
        };
        let mut payload = operation.to_ne_bytes().to_vec();
        payload.extend(kinds.iter().flat_map(|kinds| kinds.to_ne_bytes()));
        frame(0, number, &payload)
    }
}

/// A frame around `payload`, as a kernel or a program writes it.
pub fn frame(sequence: u32, acknowledgement: u32, payload: &[u8]) -> Vec<u8> {
    let length = NETLINK_HEADER_BYTES + CONNECTOR_HEADER_BYTES + payload.len();
    let mut frame = Vec::with_capacity(length);
    frame.extend(u32::try_from(length).unwrap_or(u32::MAX).to_ne_bytes());
    frame.extend(NLMSG_DONE.to_ne_bytes());
    frame.extend([0; 10]);
    for number in [CN_IDX_PROC, CN_VAL_PROC, sequence, acknowledgement] {
        frame.extend(number.to_ne_bytes());
    }
    frame.extend(u16::try_from(payload.len()).unwrap_or(u16::MAX).to_ne_bytes());
    frame.extend([0; 2]);
    frame.extend(payload);
    frame
}

/// A message of the process connector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The number of the event on its CPU.
    pub sequence: u32,
    /// The CPU on which the event happened.
    pub cpu: u32,
    /// The time at which the event happened, in nanoseconds of the monotonic clock.
    pub time: u64,
    /// The kind of event.
    pub event: ProcessEvent,
}

/// The kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessEvent {
    /// The answer to a request.
    Acknowledgement {
        /// The number of the request.
        request: u32,
        /// 0, or the number of an error.
        error: i32,
    },
    /// A process replaced its program.
    Exec {
        /// The process id.
        process: u32,
    },
    /// A process changed its name. That of a thread other than the first is [`ProcessEvent::Other`].
    Renamed {
        /// The process id.
        process: u32,
    },
    /// A process changed its user, which `match_uids` may be about. That of a thread other than the first is
    /// [`ProcessEvent::Other`].
    NewUser {
        /// The process id.
        process: u32,
    },
    /// An event of no interest.
    Other,
}

/// Reads one datagram, which may hold several messages. Stops at the first that is malformed.
pub fn messages(datagram: &[u8]) -> impl Iterator<Item = Message> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        loop {
            let length = usize::try_from(u32_at(rest, 0)?).ok()?;
            let one = rest.get(..length).filter(|one| one.len() >= NETLINK_HEADER_BYTES)?;
            // Messages begin at multiples of four.
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            if let Some(message) = message(one) {
                return Some(message);
            }
        }
    })
}

/// Reads one netlink message; `None` if it is none of the process connector.
fn message(frame: &[u8]) -> Option<Message> {
    if u16_at(frame, 4)? != NLMSG_DONE {
        return None;
    }
    let connector = frame.get(NETLINK_HEADER_BYTES..)?;
    if (u32_at(connector, 0)?, u32_at(connector, 4)?) != (CN_IDX_PROC, CN_VAL_PROC) {
        return None;
    }
    let length = usize::from(u16_at(connector, 16)?);
    let event = connector.get(CONNECTOR_HEADER_BYTES..)?.get(..length)?;
    let details = event.get(EVENT_HEADER_BYTES..)?;
    let event_of = match u32_at(event, 0)? {
        PROC_EVENT_NONE => ProcessEvent::Acknowledgement {
            request: u32_at(connector, 12)?.wrapping_sub(1),
            error: u32_at(details, 0)?.cast_signed(),
        },
        PROC_EVENT_EXEC => ProcessEvent::Exec { process: u32_at(details, 4)? },
        PROC_EVENT_COMM if u32_at(details, 0)? == u32_at(details, 4)? => {
            ProcessEvent::Renamed { process: u32_at(details, 4)? }
        }
        PROC_EVENT_UID if u32_at(details, 0)? == u32_at(details, 4)? => {
            ProcessEvent::NewUser { process: u32_at(details, 4)? }
        }
        _ => ProcessEvent::Other,
    };
    Some(Message {
        sequence: u32_at(connector, 8)?,
        cpu: u32_at(event, 4)?,
        time: u64_at(event, 8)?,
        event: event_of,
    })
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(offset..offset + 8)?.try_into().ok()?))
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(offset..offset + 2)?.try_into().ok()?))
}

/// Builds the payload of an event as the kernel does; for tests and benchmarks.
pub fn event_payload(kind: u32, cpu: u32, details: &[u32]) -> Vec<u8> {
    let mut payload = kind.to_ne_bytes().to_vec();
    payload.extend(cpu.to_ne_bytes());
    payload.extend([0; 8]);
    payload.extend(details.iter().flat_map(|number| number.to_ne_bytes()));
    payload
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(datagram: &[u8]) -> Vec<ProcessEvent> {
        messages(datagram).map(|message| message.event).collect()
    }

    #[test]
    fn requests_have_the_kernel_layout() {
        let frame = ListenRequest::ListenTo(PROC_EVENT_EXEC | PROC_EVENT_COMM).to_frame(7);
        assert_eq!(frame.len(), 44);
        assert_eq!((u32_at(&frame, 0), u16_at(&frame, 4)), (Some(44), Some(3)));
        assert_eq!((u32_at(&frame, 16), u32_at(&frame, 20), u32_at(&frame, 28)), (Some(1), Some(1), Some(7)));
        assert_eq!(
            (u16_at(&frame, 32), u32_at(&frame, 36), u32_at(&frame, 40)),
            (Some(8), Some(1), Some(0x202))
        );
        assert_eq!(ListenRequest::ListenToAll.to_frame(7).len(), 40);
        assert_eq!(u32_at(&ListenRequest::Ignore.to_frame(7), 36), Some(2));
    }

    #[test]
    fn events_are_read() {
        for (kind, details, expected) in [
            (PROC_EVENT_EXEC, &[11, 10][..], ProcessEvent::Exec { process: 10 }),
            (PROC_EVENT_COMM, &[10, 10, 0, 0, 0, 0], ProcessEvent::Renamed { process: 10 }),
            (PROC_EVENT_COMM, &[11, 10, 0, 0, 0, 0], ProcessEvent::Other),
            (PROC_EVENT_UID, &[10, 10, 1000, 1000], ProcessEvent::NewUser { process: 10 }),
            (PROC_EVENT_UID, &[11, 10, 1000, 1000], ProcessEvent::Other),
            (PROC_EVENT_NONE, &[1], ProcessEvent::Acknowledgement { request: 8, error: 1 }),
            (0x8000_0000, &[1, 2, 3, 4], ProcessEvent::Other),
        ] {
            let datagram = frame(5, 9, &event_payload(kind, 3, details));
            let expected = Message { sequence: 5, cpu: 3, time: 0, event: expected };
            assert_eq!(messages(&datagram).collect::<Vec<_>>(), [expected]);
        }
    }

    #[test]
    fn several_messages_in_a_datagram_are_read() {
        let one = frame(1, 0, &event_payload(PROC_EVENT_EXEC, 0, &[1, 1]));
        let two = frame(2, 0, &event_payload(PROC_EVENT_EXEC, 0, &[2, 2]));
        let both = [one, two].concat();
        assert_eq!(events(&both), [ProcessEvent::Exec { process: 1 }, ProcessEvent::Exec { process: 2 }]);
    }

    #[test]
    fn malformed_frames_are_not_events() {
        let good = frame(1, 0, &event_payload(PROC_EVENT_EXEC, 0, &[1, 1]));
        for length in 0..good.len() {
            assert_eq!(events(&good[..length]), [], "cut at {length}");
        }
        for (offset, value) in [(0, 0), (0, 15), (0, u32::MAX), (4, 2), (16, 2), (20, 9), (32, 0xffff)] {
            let mut bad = good.clone();
            bad[offset..offset + 4].copy_from_slice(&u32::to_ne_bytes(value));
            assert_eq!(events(&bad), [], "{value} at {offset}");
        }
    }
}
