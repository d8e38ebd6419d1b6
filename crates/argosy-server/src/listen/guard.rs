//! How long the other end of a connection may take, kept around the socket.
//!
//! A connection is *busy* while a request is being answered; then only a write that makes no progress
//! has a limit. It is *in a head* from a request's first byte until the request is complete; and *idle*
//! in between.

use super::Limits;
use axum::body::Body;
use bytes::Bytes;
use futures_util::task::AtomicWaker;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// What the requests of one connection are doing.
#[derive(Default)]
pub(super) struct Activity {
    in_flight: AtomicUsize,
    /// How many there were so far.
    begun: AtomicUsize,
    /// The connection, which must look at its timer when the last request ends.
    connection: AtomicWaker,
}

impl Activity {
    /// A request has arrived.
    pub(super) fn begin(activity: &Arc<Self>) -> Busy {
        activity.in_flight.fetch_add(1, Ordering::AcqRel);
        activity.begun.fetch_add(1, Ordering::AcqRel);
        Busy(Arc::clone(activity))
    }
}

/// A request that is being answered, until it is dropped.
pub(super) struct Busy(Arc<Activity>);

impl Busy {
    /// The same body; the request counts as being answered until it is sent.
    pub(super) fn until_sent(self, body: Body) -> Sending {
        Sending { body, _busy: self }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if self.0.in_flight.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.connection.wake();
        }
    }
}

/// The body of an answer.
pub(super) struct Sending {
    body: Body,
    _busy: Busy,
}

impl HttpBody for Sending {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// How an HTTP/2 connection begins. HTTP/2 clients send small frames on idle connections, so for them
/// bytes do not mean that a request has begun.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What the other end is expected to do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// Complete the head of a request.
    Head,
    /// Send another request, or close.
    Next,
}

/// A stream that ends when the other end takes too long.
pub(super) struct Guarded<S> {
    stream: S,
    activity: Arc<Activity>,
    head_max: Duration,
    idle_max: Duration,
    write_stall_max: Duration,
    /// How many bytes of `PREFACE` the connection began with; `None` once they differed.
    preface: Option<usize>,
    /// `Activity::begun` when this last looked.
    begun: usize,
    /// Whether bytes have come since the last request was complete.
    in_head: bool,
    /// Whether the first line of a head is still coming.
    in_line: bool,
    reading: Option<(Expected, Pin<Box<Sleep>>)>,
    writing: Option<Pin<Box<Sleep>>>,
}

impl<S> Guarded<S> {
    pub(super) fn new(stream: S, activity: Arc<Activity>, limits: &Limits) -> Self {
        Self {
            stream,
            activity,
            head_max: limits.head_max,
            idle_max: limits.idle_max,
            write_stall_max: limits.write_stall_max,
            preface: Some(0),
            begun: 0,
            // The first head is due from the start: there is no reason to connect and say nothing.
            in_head: true,
            in_line: true,
            reading: None,
            writing: None,
        }
    }

    fn expected(&mut self) -> Option<Expected> {
        if 0 < self.activity.in_flight.load(Ordering::Acquire) {
            return None;
        }
        let begun = self.activity.begun.load(Ordering::Acquire);
        if begun != self.begun {
            self.begun = begun;
            self.in_head = false;
            self.reading = None;
        }
        let http2 = self.preface == Some(PREFACE.len());
        Some(if self.in_head && !http2 { Expected::Head } else { Expected::Next })
    }

    fn received(&mut self, bytes: &[u8]) {
        if let Some(seen) = self.preface
            && seen < PREFACE.len()
        {
            let rest = PREFACE.get(seen..).unwrap_or_default();
            let len = rest.len().min(bytes.len());
            self.preface = (rest.get(..len) == bytes.get(..len)).then_some(seen + len);
        }
        if self.expected().is_some() {
            self.in_line |= !self.in_head;
            self.in_head = true;
        }
    }

    /// Makes a double quote in a request's first line a single one.
    ///
    /// People type `?status.phase="Not%20Ready"`, and `curl` sends the quotes as they are; hyper
    /// answers such a line with an empty 400 before any code of ours could help. Everything that
    /// reads a quoted value here takes either kind of quote.
    fn mend(&mut self, bytes: &mut [u8]) {
        if !self.in_line || self.preface.is_some_and(|seen| 0 < seen) {
            return;
        }
        for byte in bytes {
            match byte {
                b'"' => *byte = b'\'',
                b'\n' => {
                    self.in_line = false;
                    return;
                }
                _ => {}
            }
        }
    }

    /// Nothing has arrived: has the other end had its time?
    fn poll_deadline(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Registered before looking: a request that ends in between wakes us again.
        self.activity.connection.register(context.waker());
        let Some(expected) = self.expected() else {
            self.reading = None;
            return Poll::Pending;
        };
        let max = match expected {
            Expected::Head => self.head_max,
            Expected::Next => self.idle_max,
        };
        let (_, timer) = match self.reading.take() {
            Some((same, timer)) if same == expected => self.reading.insert((same, timer)),
            _ => self.reading.insert((expected, Box::pin(sleep(max)))),
        };
        match (timer.as_mut().poll(context), expected) {
            (Poll::Pending, _) => Poll::Pending,
            (Poll::Ready(()), Expected::Head) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            // As if the client had closed it: nobody did anything wrong.
            (Poll::Ready(()), Expected::Next) => Poll::Ready(Ok(())),
        }
    }

    /// The other end takes nothing: has it had its time? `written` is what the stream says.
    fn poll_stall<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.writing = None;
            return written;
        }
        let max = self.write_stall_max;
        let timer = self.writing.get_or_insert_with(|| Box::pin(sleep(max)));
        timer.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Pending => self.poll_deadline(context),
            Poll::Ready(read) => {
                let bytes = buffer.filled_mut().get_mut(before..).unwrap_or_default();
                self.received(bytes);
                self.mend(bytes);
                Poll::Ready(read)
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.poll_stall(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.poll_stall(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.poll_stall(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.stream).poll_shutdown(context);
        self.poll_stall(context, closed)
    }
}
