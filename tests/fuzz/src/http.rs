//! HTTP byte by byte, so that nothing in between puts right what is wrong: a server that answers whatever it is told to, and a
//! client that sends whatever it likes.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Longer than anything here takes: who waits so long has no answer.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A server whose answer to every request is the same bytes, until they are exchanged; then it closes.
pub struct Answering {
    address: SocketAddr,
    answer: Arc<Mutex<Vec<u8>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Answering {
    /// Starts one.
    ///
    /// # Panics
    /// Where there is no port.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("a listener has an address");
        let answer = Arc::new(Mutex::new(vec![]));
        let stop = Arc::new(AtomicBool::new(false));
        let (its_answer, its_stop) = (Arc::clone(&answer), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if its_stop.load(Ordering::Relaxed) {
                    return;
                }
                let answer = its_answer
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clone();
                // A client that has heard enough is free to go.
                let _gone = stream.and_then(|stream| answer_one(stream, &answer));
            }
        });
        Self {
            address,
            answer,
            stop,
            thread: Some(thread),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it answers from now on.
    pub fn answer(&self, bytes: Vec<u8>) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = bytes;
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Its thread waits for a connection.
        if TcpStream::connect(self.address).is_ok()
            && let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            eprintln!("the answering server had panicked");
        }
    }
}

fn answer_one(mut stream: TcpStream, answer: &[u8]) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = vec![];
    let mut chunk = [0; 4096];
    while !is_whole(&request) {
        match stream.read(&mut chunk)? {
            0 => break,
            read => request.extend_from_slice(&chunk[..read]),
        }
    }
    stream.write_all(answer)?;
    stream.shutdown(Shutdown::Write)
}

/// Whether this is a request with all of the body that its header promises.
fn is_whole(request: &[u8]) -> bool {
    let Some(end) = request.windows(4).position(|four| four == b"\r\n\r\n") else {
        return false;
    };
    let header = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
    let length = header.lines().find_map(|line| {
        line.strip_prefix("content-length:")?
            .trim()
            .parse::<usize>()
            .ok()
    });
    request.len() >= end + 4 + length.unwrap_or(0)
}

/// An answer as a node gives it: this status, these further header lines, this body.
#[must_use]
pub fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Sends these bytes, and reads what comes until the other side has said all. The request must ask for the connection to be
/// closed. `None`: not a byte came.
pub fn ask(address: SocketAddr, request: &[u8], patience: Duration) -> io::Result<Option<Vec<u8>>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let written = stream.write_all(request);
    let mut answer = vec![];
    let read = stream.read_to_end(&mut answer);
    match (answer.is_empty(), written.and(read.map(drop))) {
        // Whoever refuses a request early may close before it has read all of it.
        (false, _) => Ok(Some(answer)),
        (true, Ok(())) => Ok(None),
        (true, Err(error)) => Err(error),
    }
}

/// The status of an answer, if it is one.
#[must_use]
pub fn status(answer: &[u8]) -> Option<u16> {
    let line = answer.strip_prefix(b"HTTP/1.1 ")?;
    std::str::from_utf8(line.get(..3)?).ok()?.parse().ok()
}
