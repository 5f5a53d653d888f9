//! A proxy between a client and PostgreSQL that strikes at commits: it cuts the connection just before a COMMIT or between the
//! COMMIT and its answer, or holds the answer back. It stays at one port wherever the server goes.
//!
//! It reads the messages of the wire protocol (PostgreSQL, "Message Formats"), without TLS, just far enough to know which
//! statements a transaction holds and which message commits it: a COMMIT, or, outside of a transaction, whatever runs a
//! statement.

use std::collections::HashMap;
use std::io::{self, BufReader, Read, Write};
use std::mem;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

use crate::postgres::Database;
use crate::wait::until;

/// What a client may send in place of a startup message, to ask for encryption; it is answered with `N`: none.
const ENCRYPTION_REQUESTS: [u32; 2] = [80_877_103, 80_877_104];

/// What is done to a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strike {
    /// The connection is cut, and the server never sees the COMMIT.
    CutBefore,
    /// The server sees the COMMIT, and the connection is cut when it has answered. The client never sees the answer.
    CutAfter,
    /// The server sees the COMMIT, and its answer is held until [`Proxy::release`] or until the connection ends.
    HoldAnswer,
}

/// Which commits are struck.
#[derive(Debug, Clone)]
pub struct CommitRule {
    strike: Strike,
    call: String,
    passes: u32,
    times: u32,
    struck: u32,
}

impl CommitRule {
    /// Every commit of whatever kind.
    #[must_use]
    pub const fn new(strike: Strike) -> Self {
        Self {
            strike,
            call: String::new(),
            passes: 0,
            times: u32::MAX,
            struck: 0,
        }
    }

    /// Only those of transactions with a statement that holds this text, such as `claim_batch`.
    #[must_use]
    pub fn of(mut self, call: &str) -> Self {
        call.clone_into(&mut self.call);
        self
    }

    /// So many of them pass first.
    #[must_use]
    pub const fn after(mut self, passes: u32) -> Self {
        self.passes = passes;
        self
    }

    /// So many of them and no more.
    #[must_use]
    pub const fn times(mut self, times: u32) -> Self {
        self.times = times;
        self
    }

    /// The strike at a commit of these statements, if there is one; counts it either way.
    fn judge(&mut self, statements: &[String]) -> Option<Strike> {
        let meant = statements
            .iter()
            .any(|statement| statement.contains(&self.call));
        if !meant || self.times == 0 {
            return None;
        }
        if self.passes > 0 {
            self.passes -= 1;
            return None;
        }
        self.times -= 1;
        Some(self.strike)
    }
}

/// A rule that was added: its place in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleId(usize);

/// The proxy. Its connections end with it.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    server_port: u16,
    rules: Vec<CommitRule>,
    refuses: bool,
    closed: bool,
    /// Answers that are held back now.
    held: u32,
    /// How often held answers were let go.
    releases: u64,
    /// Both ends of each connection, by its number.
    connections: HashMap<u64, [TcpStream; 2]>,
    next_connection: u64,
}

impl Proxy {
    /// A proxy in front of this database's server that does nothing yet but carry.
    ///
    /// # Panics
    /// Where no port is free.
    #[must_use]
    pub fn to(database: &Database) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                server_port: database.port(),
                rules: vec![],
                refuses: false,
                closed: false,
                held: 0,
                releases: 0,
                connections: HashMap::new(),
                next_connection: 0,
            }),
            changed: Condvar::new(),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &accepting));
        Self { port, shared }
    }

    /// Where it takes connections, on 127.0.0.1.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// From now on commits are struck by this rule too. A commit that several rules mean gets the first one's strike.
    pub fn add(&self, rule: CommitRule) -> RuleId {
        let mut state = self.shared.lock();
        state.rules.push(rule);
        RuleId(state.rules.len() - 1)
    }

    /// No rule strikes any more; what was struck is still known.
    pub fn be_sound(&self) {
        for rule in &mut self.shared.lock().rules {
            rule.times = 0;
        }
    }

    /// How often this rule has struck. A strike after the COMMIT counts once the server has answered: what it did is done.
    #[must_use]
    pub fn struck(&self, RuleId(index): RuleId) -> u32 {
        self.shared.lock().rules[index].struck
    }

    /// Waits until this rule has struck so often.
    pub fn wait_until_struck(&self, rule: RuleId, times: u32) {
        until("the proxy strikes", || {
            (self.struck(rule) >= times).then_some(())
        });
    }

    /// How many answers are held back now.
    #[must_use]
    pub fn held(&self) -> u32 {
        self.shared.lock().held
    }

    /// Lets the held answers go.
    pub fn release(&self) {
        self.shared.lock().releases += 1;
        self.shared.changed.notify_all();
    }

    /// Cuts every connection now.
    pub fn cut_all(&self) {
        for ends in self.shared.lock().connections.values() {
            close(ends);
        }
    }

    /// Whether new connections are refused: taken, and closed at once, as by a server that is gone.
    pub fn refuse(&self, refuses: bool) {
        self.shared.lock().refuses = refuses;
    }

    /// New connections go to this database's server, which may be another or the same at another port.
    pub fn lead_to(&self, database: &Database) {
        self.shared.lock().server_port = database.port();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        {
            let mut state = self.shared.lock();
            state.closed = true;
            state.connections.values().for_each(close);
        }
        // Wakes whoever accepts; that there is nobody any more is as good.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

/// Both ends see it close; one that has closed already is as good.
fn close(ends: &[TcpStream; 2]) {
    for end in ends {
        let _ = end.shutdown(Shutdown::Both);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .expect("nobody panics while holding this lock")
    }

    fn judge(&self, statements: &[String]) -> Option<(RuleId, Strike)> {
        let mut state = self.lock();
        let mut verdicts = state.rules.iter_mut().enumerate();
        verdicts.find_map(|(index, rule)| Some((RuleId(index), rule.judge(statements)?)))
    }

    fn count(&self, RuleId(index): RuleId) {
        self.lock().rules[index].struck += 1;
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming() {
        let (server_port, refuses) = {
            let state = shared.lock();
            if state.closed {
                return;
            }
            (state.server_port, state.refuses)
        };
        let Ok(client) = client else { continue };
        if refuses {
            continue;
        }
        let shared = Arc::clone(shared);
        // A connection that breaks, breaks: both ends see it close.
        thread::spawn(move || Connection::carry(client, server_port, shared));
    }
}

/// One client's connection.
struct Connection {
    shared: Arc<Shared>,
    client: TcpStream,
    server: TcpStream,
    /// What is to become of the next answer.
    answer: Mutex<Option<(RuleId, Strike)>>,
    ended: AtomicBool,
}

/// What the client has told so far of its present transaction.
#[derive(Default)]
struct Told {
    /// Prepared statements, by their names.
    prepared: HashMap<String, String>,
    statements: Vec<String>,
    in_transaction: bool,
    executed: bool,
}

impl Connection {
    fn carry(client: TcpStream, server_port: u16, shared: Arc<Shared>) -> io::Result<()> {
        let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server_port))?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let number = {
            let ends = [client.try_clone()?, server.try_clone()?];
            let mut state = shared.lock();
            if state.closed {
                return Ok(());
            }
            let number = state.next_connection;
            state.next_connection += 1;
            state.connections.insert(number, ends);
            number
        };
        let connection = Self {
            shared,
            client,
            server,
            answer: Mutex::new(None),
            ended: AtomicBool::new(false),
        };
        let carried = thread::scope(|scope| {
            let back = scope.spawn(|| {
                let ended = connection.carry_answers();
                connection.close();
                ended
            });
            let forth = connection.carry_questions();
            connection.close();
            forth.and(
                back.join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            )
        });
        connection.shared.lock().connections.remove(&number);
        carried
    }

    fn close(&self) {
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
        self.ended.store(true, Ordering::SeqCst);
        // Who holds an answer back is at its wait, or has yet to look whether this has ended.
        drop(self.shared.lock());
        self.shared.changed.notify_all();
    }

    fn carry_questions(&self) -> io::Result<()> {
        let mut from = BufReader::new(&self.client);
        let mut to = &self.server;
        loop {
            let startup = read_message(&mut from, 0)?;
            let code = u32::from_be_bytes(startup[4..8].try_into().expect("4 bytes"));
            if !ENCRYPTION_REQUESTS.contains(&code) {
                to.write_all(&startup)?;
                break;
            }
            (&self.client).write_all(b"N")?;
        }
        let mut told = Told::default();
        loop {
            let message = read_message(&mut from, 1)?;
            if told.commits(&message) {
                let statements = mem::take(&mut told.statements);
                if let Some((rule, strike)) = self.shared.judge(&statements) {
                    if strike == Strike::CutBefore {
                        self.shared.count(rule);
                        return Ok(());
                    }
                    *self.answer() = Some((rule, strike));
                }
            }
            to.write_all(&message)?;
        }
    }

    fn carry_answers(&self) -> io::Result<()> {
        let mut from = BufReader::with_capacity(64 * 1024, &self.server);
        let mut to = io::BufWriter::with_capacity(64 * 1024, &self.client);
        loop {
            if from.buffer().is_empty() {
                to.flush()?;
            }
            let mut answer = read_message(&mut from, 1)?;
            let struck = self.answer().take();
            if let Some((rule, strike)) = struck {
                // The answer ends with ReadyForQuery, or with the connection; then, if at all, it is committed.
                let ended = read_to_ready(&mut from, &mut answer);
                self.shared.count(rule);
                ended?;
                if strike == Strike::CutAfter {
                    return Ok(());
                }
                self.hold();
            }
            to.write_all(&answer)?;
        }
    }

    fn answer(&self) -> MutexGuard<'_, Option<(RuleId, Strike)>> {
        self.answer
            .lock()
            .expect("nobody panics while holding this lock")
    }

    /// Waits until answers are let go.
    fn hold(&self) {
        let mut state = self.shared.lock();
        let before = state.releases;
        state.held += 1;
        while state.releases == before && !self.ended.load(Ordering::SeqCst) {
            state = self
                .shared
                .changed
                .wait(state)
                .expect("nobody panics while holding this lock");
        }
        state.held -= 1;
    }
}

impl Told {
    /// Notes what a message says; whether the server commits when it has read it.
    fn commits(&mut self, message: &[u8]) -> bool {
        let mut strings = message[5..].split(|byte| *byte == 0);
        let mut string =
            || String::from_utf8_lossy(strings.next().unwrap_or_default()).into_owned();
        match message[0] {
            // Query: its text.
            b'Q' => {
                let statement = string();
                self.runs(statement)
            }
            // Parse: the statement's name, its text.
            b'P' => {
                let name = string();
                let statement = string();
                self.prepared.insert(name, statement);
                false
            }
            // Bind: the portal's name, the statement's.
            b'B' => {
                string();
                let bound = self.prepared.get(&string()).cloned();
                self.statements.extend(bound);
                false
            }
            // Execute.
            b'E' => {
                self.executed = true;
                false
            }
            // Sync: outside of a transaction, it ends the one that the executed statement was.
            b'S' => mem::take(&mut self.executed) && !self.in_transaction,
            _ => false,
        }
    }

    /// Notes a statement that is run at once; whether it commits.
    fn runs(&mut self, statement: String) -> bool {
        let lower = statement.trim_start().to_ascii_lowercase();
        let begins_with = |words: &[&str]| words.iter().any(|word| lower.starts_with(word));
        if begins_with(&["begin", "start transaction"]) {
            self.in_transaction = true;
            self.statements.clear();
            return false;
        }
        if begins_with(&["rollback", "abort"]) && !begins_with(&["rollback to"]) {
            self.in_transaction = false;
            self.statements.clear();
            return false;
        }
        if begins_with(&["commit", "end"]) {
            self.in_transaction = false;
            return true;
        }
        self.statements.push(statement);
        !self.in_transaction
    }
}

/// A message: its type, where it has one, its length and what it says. The length counts itself, and not the type.
fn read_message(from: &mut impl Read, type_bytes: usize) -> io::Result<Vec<u8>> {
    let mut message = vec![0; type_bytes + 4];
    from.read_exact(&mut message)?;
    let length = u32::from_be_bytes(message[type_bytes..].try_into().expect("4 bytes"));
    let read = message.len();
    message.resize((length as usize + type_bytes).max(read), 0);
    from.read_exact(&mut message[read..])?;
    Ok(message)
}

/// Reads on until an answer is whole: from the message at its beginning to ReadyForQuery.
fn read_to_ready(from: &mut impl Read, answer: &mut Vec<u8>) -> io::Result<()> {
    let mut kind = answer[0];
    while kind != b'Z' {
        let message = read_message(from, 1)?;
        kind = message[0];
        answer.extend(message);
    }
    Ok(())
}
