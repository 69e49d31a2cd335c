//! A name server with a single name, for the pods of a real node.

use std::net::Ipv4Addr;

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// The name server. It ends with this.
pub(super) struct NameServer {
    task: JoinHandle<()>,
}

impl NameServer {
    /// Answers on port 53 of this address: `name` is at `address`.
    pub(super) async fn start(
        listen: Ipv4Addr,
        name: &'static str,
        address: Ipv4Addr,
    ) -> std::io::Result<Self> {
        let socket = UdpSocket::bind((listen, 53)).await?;
        let task = tokio::spawn(async move {
            let mut query = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut query).await {
                if let Some(answer) = answer(&query[..length], name, address) {
                    // A client without an answer retries.
                    let _ = socket.send_to(&answer, from).await;
                }
            }
        });
        Ok(Self { task })
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The length of the header of a message.
const HEADER: usize = 12;
/// The type of an address.
const TYPE_A: u16 = 1;

/// The answer to a query: an address, no data for other types, or that there is no such name (RFC 1035).
fn answer(query: &[u8], name: &str, address: Ipv4Addr) -> Option<Vec<u8>> {
    let mut asked = Vec::new();
    let mut position = HEADER;
    while *query.get(position)? != 0 {
        let length = usize::from(query[position]);
        asked.push(String::from_utf8_lossy(query.get(position + 1..position + 1 + length)?).into_owned());
        position += 1 + length;
    }
    let question = query.get(HEADER..position + 5)?;
    let kind = u16::from_be_bytes([query[position + 1], query[position + 2]]);
    let is_known = asked.join(".").eq_ignore_ascii_case(name);
    let has_data = is_known && kind == TYPE_A;
    // A response, recursion desired and available; 3 is "no such name".
    let flags: u16 = 0x8180 | if is_known { 0 } else { 3 };
    let mut answer = query[..2].to_vec();
    for number in [flags, 1, u16::from(has_data), 0, 0] {
        answer.extend(number.to_be_bytes());
    }
    answer.extend_from_slice(question);
    if has_data {
        // The name of the question, an address of the internet, for a minute, in four bytes.
        for number in [0xc00c, TYPE_A, 1, 0, 60, 4] {
            answer.extend(number.to_be_bytes());
        }
        answer.extend(address.octets());
    }
    Some(answer)
}
