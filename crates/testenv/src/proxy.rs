//! A proxy between a client and an API server whose connections can be closed or made to hang, without effect on other
//! clients.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd as _;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The state of the connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// All data pass.
    Open,
    /// Connections are closed, including new ones, as if the server were down.
    Cut,
    /// Connections stay open but no data pass, as if packets were dropped. Data that were sent meanwhile
    /// arrive when the proxy is open again.
    Hung,
}

/// A proxy on loopback. Dropping it closes all connections.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    line: watch::Sender<Line>,
    acceptor: JoinHandle<()>,
}

impl Proxy {
    /// Listens on a free port and forwards all data to `target`, a port on loopback.
    pub async fn start(target: u16) -> io::Result<Self> {
        Self::start_at(Ipv4Addr::LOCALHOST, target).await
    }

    /// The same on another address of this machine, such as that of the pod network.
    pub async fn start_at(address: Ipv4Addr, target: u16) -> io::Result<Self> {
        Self::accept(TcpListener::bind((address, 0)).await?, target)
    }

    /// The same on an address in the network namespace of a process. Connections to `target` are made on this machine, so that
    /// the namespace needs no other way to it.
    pub fn start_in(process: u32, address: SocketAddrV4, target: u16) -> io::Result<Self> {
        let listen = move || -> io::Result<std::net::TcpListener> {
            let namespace = File::open(format!("/proc/{process}/ns/net"))?;
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            let listener = std::net::TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        // A thread of its own, which ends there: a socket stays in the namespace that it was made in.
        let listener: io::Result<_> = std::thread::spawn(listen)
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread panicked")));
        Self::accept(TcpListener::from_std(listener?)?, target)
    }

    fn accept(listener: TcpListener, target: u16) -> io::Result<Self> {
        let port = listener.local_addr()?.port();
        let (line, state) = watch::channel(Line::Open);
        let acceptor = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // One task per connection, which ends with either side or when the proxy is closed.
                tokio::spawn(connection(client, target, state.clone()));
            }
        });
        Ok(Self { port, line, acceptor })
    }

    /// Closes all connections and returns when the port is free.
    pub async fn close(mut self) {
        self.acceptor.abort();
        // It was aborted.
        let _ = (&mut self.acceptor).await;
    }

    /// The address for a client, instead of that of the API server.
    pub fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// The port that the proxy listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Changes the state of existing and new connections.
    pub fn set(&self, line: Line) {
        self.line.send_replace(line);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.acceptor.abort();
        self.line.send_replace(Line::Cut);
    }
}

async fn connection(client: TcpStream, target: u16, line: watch::Receiver<Line>) {
    if *line.borrow() == Line::Cut {
        return;
    }
    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, target)).await else {
        return;
    };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    // If either direction ends, the connection ends: HTTP does not use half-open connections.
    tokio::select! {
        () = pass(from_client, to_server, line.clone()) => {}
        () = pass(from_server, to_client, line) => {}
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut line: watch::Receiver<Line>) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let now = *line.borrow_and_update();
        match now {
            Line::Cut => return,
            Line::Hung => {
                if line.changed().await.is_err() {
                    return;
                }
            }
            Line::Open => {
                let read = tokio::select! {
                    changed = line.changed() => if changed.is_err() { return } else { continue },
                    read = from.read(&mut buffer) => read,
                };
                let Ok(count @ 1..) = read else { return };
                // If the state changes between reading and writing, the data are held back or dropped.
                if line.wait_for(|line| *line != Line::Hung).await.map_or(Line::Cut, |line| *line)
                    == Line::Cut
                {
                    return;
                }
                if to.write_all(&buffer[..count]).await.is_err() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::time::Duration;

    use super::*;

    /// An echo server.
    async fn echo() -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("bind");
        let port = listener.local_addr().expect("an address").port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = stream.split();
                    let _ = tokio::io::copy(&mut read, &mut write).await;
                });
            }
        });
        port
    }

    async fn exchange(stream: &mut TcpStream, word: &[u8; 4]) -> io::Result<[u8; 4]> {
        stream.write_all(word).await?;
        let mut received = [0; 4];
        stream.read_exact(&mut received).await?;
        Ok(received)
    }

    #[tokio::test]
    async fn an_open_line_passes_and_a_cut_one_closes() {
        let proxy = Proxy::start(echo().await).await.expect("a proxy");
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port)).await.expect("connect");
        assert_eq!(&exchange(&mut stream, b"ping").await.expect("echo"), b"ping");
        proxy.set(Line::Cut);
        assert_eq!(stream.read(&mut [0; 1]).await.unwrap_or(0), 0, "closed");
        let mut refused = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port)).await.expect("connect");
        assert!(exchange(&mut refused, b"ping").await.is_err());
        proxy.set(Line::Open);
        let mut again = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port)).await.expect("connect");
        assert_eq!(&exchange(&mut again, b"ping").await.expect("echo"), b"ping");
    }

    /// A process in a network namespace of its own, in which loopback is up. It ends with the test.
    struct Elsewhere(std::process::Child);

    impl Elsewhere {
        fn start() -> Self {
            let script = "ip link set dev lo up && echo up && exec cat";
            let mut command = std::process::Command::new("unshare");
            command.args(["--net", "sh", "-c", script]);
            let piped = command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
            let mut child = piped.spawn().expect("unshare");
            let mut line = [0; 3];
            child.stdout.as_mut().expect("piped").read_exact(&mut line).expect("a namespace");
            Self(child)
        }
    }

    impl Drop for Elsewhere {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// Sends a word from the network namespace of a process, and returns the answer.
    fn ask_from(process: u32, port: u16) -> io::Result<[u8; 4]> {
        use std::io::{Read as _, Write as _};
        let namespace = File::open(format!("/proc/{process}/ns/net"))?;
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        let mut stream = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.write_all(b"ping")?;
        let mut received = [0; 4];
        stream.read_exact(&mut received)?;
        Ok(received)
    }

    #[tokio::test]
    async fn a_proxy_listens_in_the_network_of_another_process() {
        let elsewhere = Elsewhere::start();
        let process = elsewhere.0.id();
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 443);
        let target = echo().await;
        // Twice: the port is free when the first is closed.
        for _ in 0..2 {
            let proxy = Proxy::start_in(process, address, target).expect("a proxy");
            let (sender, receiver) = tokio::sync::oneshot::channel();
            // A thread of its own, because it stays in the namespace.
            std::thread::spawn(move || sender.send(ask_from(process, 443)));
            assert_eq!(&receiver.await.expect("a thread").expect("an answer"), b"ping");
            proxy.close().await;
        }
    }

    #[tokio::test]
    async fn a_hung_proxy_keeps_data_until_it_opens() {
        let proxy = Proxy::start(echo().await).await.expect("a proxy");
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port)).await.expect("connect");
        assert_eq!(&exchange(&mut stream, b"ping").await.expect("echo"), b"ping");
        proxy.set(Line::Hung);
        let silence = tokio::time::timeout(Duration::from_millis(100), exchange(&mut stream, b"pong")).await;
        assert!(silence.is_err(), "nothing passes");
        proxy.set(Line::Open);
        let mut received = [0; 4];
        stream.read_exact(&mut received).await.expect("what was held back");
        assert_eq!(&received, b"pong");
    }
}
