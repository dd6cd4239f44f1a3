//! Metrics as text over HTTP: `GET /metrics`, and nothing else. `export`, `relay` and `serve` serve
//! theirs by this: OpenMetrics to whoever asks for it by `Accept`, as Prometheus does, and
//! otherwise the text format of Prometheus that came before it, which everything reads.
//!
//! Clients are strangers: none may keep a scraper out. A connection carries one request, which has
//! to come soon, and lives for a bounded time however slowly its client reads. When all places are
//! taken, the oldest client loses its place to the one that just came.

mod prometheus_text;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderMap, HeaderValue, VARY};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, LocalSet, spawn_local};

/// The media types of both formats.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What clients may take.
#[derive(Clone, Copy)]
struct Bounds {
    /// Connections at the same time.
    clients: usize,
    /// How long a request may take to arrive.
    request: Duration,
    /// How long a connection may live, its answer included.
    life: Duration,
}

/// Prometheus gives a scrape 10 s, unless it is configured otherwise.
const BOUNDS: Bounds =
    Bounds { clients: 64, request: Duration::from_secs(5), life: Duration::from_secs(15) };

/// Gives the metrics as OpenMetrics.
pub type Text = Rc<dyn Fn() -> Pin<Box<dyn Future<Output = String>>>>;

/// Serves until `ended` is ready.
pub async fn serve(listener: TcpListener, text: Text, ended: impl Future<Output = ()>) {
    serve_within(BOUNDS, listener, text, ended).await;
}

async fn serve_within(
    bounds: Bounds,
    listener: TcpListener,
    text: Text,
    ended: impl Future<Output = ()>,
) {
    LocalSet::new()
        .run_until(async {
            tokio::select! {
                () = accept(bounds, listener, text) => {}
                () = ended => {}
            }
        })
        .await;
}

/// Accepts clients for good.
async fn accept(bounds: Bounds, listener: TcpListener, text: Text) {
    // In the order in which they came.
    let mut clients: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Descriptors ran out, or the client has gone: trying again without a pause would only
            // burn the CPU.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        clients.retain(|client| !client.is_finished());
        if clients.len() >= bounds.clients
            && let Some(oldest) = clients.pop_front()
        {
            oldest.abort();
        }
        let answered = answer(stream, Rc::clone(&text), bounds.request);
        let client = spawn_local(async move {
            // A client that takes longer is cut.
            let _ = tokio::time::timeout(bounds.life, answered).await;
        });
        clients.push_back(client.abort_handle());
        // While many wait to be accepted, each still gets its turn before the next one comes.
        tokio::task::yield_now().await;
    }
}

/// Answers the request of one connection. Its errors are the client's.
async fn answer(stream: TcpStream, text: Text, request: Duration) {
    let service = service_fn(|request| {
        let text = Rc::clone(&text);
        async move { Ok::<_, Infallible>(respond(&request, &text).await) }
    });
    let _ = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(request)
        // Requests behind the first one would be answered for as long as their client lives.
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn respond(request: &Request<Incoming>, text: &Text) -> Response<Full<Bytes>> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let (status, kind, body) = match (request.uri().path(), is_read) {
        ("/metrics", true) if asks_for_open_metrics(request.headers()) => {
            (StatusCode::OK, OPEN_METRICS, text().await)
        }
        ("/metrics", true) => (StatusCode::OK, PROMETHEUS, prometheus_text::of(&text().await)),
        (_, false) => {
            (StatusCode::METHOD_NOT_ALLOWED, "text/plain", "GET /metrics is all there is\n".into())
        }
        _ => (StatusCode::NOT_FOUND, "text/plain", "the metrics are at /metrics\n".into()),
    };
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}

/// Whether one of the types that a client takes is that of OpenMetrics, by its name and not by `*`.
fn asks_for_open_metrics(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_meant = parts
            .next()
            .is_some_and(|kind| kind.eq_ignore_ascii_case("application/openmetrics-text"));
        // Of weight nothing: it is not taken (RFC 9110, 12.4.2).
        let is_refused = parts.any(|part| {
            let weight =
                part.strip_prefix(['q', 'Q']).and_then(|rest| rest.trim().strip_prefix('='));
            weight.is_some_and(|weight| weight.trim().parse() == Ok(0.0))
        });
        is_meant && !is_refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const GET: &[u8] =
        b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text\r\n\r\n";
    /// More than sockets hold, so that a client which does not read stops its answer.
    const LENGTH: usize = 32 << 20;
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Runs `client` against a server with `bounds`.
    fn with_server<F: Future<Output = ()>>(bounds: Bounds, client: impl FnOnce(SocketAddr) -> F) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let text: Text = Rc::new(|| Box::pin(async { "x".repeat(LENGTH) }));
            serve_within(bounds, listener, text, async {
                tokio::time::timeout(PATIENCE, client(address)).await.expect("it ends in time");
            })
            .await;
        });
    }

    async fn connect(address: SocketAddr, first: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(first).await.unwrap();
        stream
    }

    /// How much arrives until the connection ends, however it ends.
    async fn read_all(mut stream: TcpStream) -> usize {
        let mut page = Vec::new();
        let _ = stream.read_to_end(&mut page).await;
        page.len()
    }

    #[test]
    fn clients_that_say_nothing_or_read_nothing_keep_no_scraper_out() {
        // Nothing ends by its time here.
        let bounds = Bounds { clients: 4, request: 2 * PATIENCE, life: 2 * PATIENCE };
        for first in [&b""[..], b"GET /metrics HTTP/1.1\r\nX: ", GET, &GET.repeat(50)] {
            with_server(bounds, |address| async move {
                let mut held = Vec::new();
                for _ in 0..2 * bounds.clients {
                    held.push(connect(address, first).await);
                }
                for _ in 0..3 {
                    assert!(read_all(connect(address, GET).await).await > LENGTH);
                }
                // The oldest have lost their places.
                for lost in held.drain(..bounds.clients) {
                    assert!(read_all(lost).await < LENGTH);
                }
            });
        }
    }

    #[test]
    fn a_client_is_cut_when_its_time_is_over() {
        let short = Duration::from_millis(20);
        for (first, bounds) in [
            (&b""[..], Bounds { clients: 4, request: short, life: 2 * PATIENCE }),
            (b"", Bounds { clients: 4, request: 2 * PATIENCE, life: short }),
            (b"GET /metrics HTTP/1.1\r\n", Bounds { clients: 4, request: short, life: PATIENCE }),
        ] {
            with_server(bounds, |address| async move {
                assert!(read_all(connect(address, first).await).await < LENGTH);
            });
        }
    }

    #[test]
    fn open_metrics_is_for_those_who_ask_for_it() {
        let asks = |accept: &'static str| {
            let value = HeaderValue::from_static(accept);
            asks_for_open_metrics(&HeaderMap::from_iter([(ACCEPT, value)]))
        };
        // What Prometheus 2.42 sends, and its agents.
        assert!(asks(
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;\
             version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
        ));
        assert!(asks("text/html, Application/OpenMetrics-Text; Q = 0.1"));
        for other in ["*/*", "text/plain;version=0.0.4", "application/openmetrics-text;q=0", ""] {
            assert!(!asks(other), "{other}");
        }
        assert!(!asks_for_open_metrics(&HeaderMap::new()));
    }

    #[test]
    fn a_connection_carries_one_request() {
        with_server(BOUNDS, |address| async move {
            let two = read_all(connect(address, &GET.repeat(2)).await).await;
            assert!((LENGTH..2 * LENGTH).contains(&two), "{two}");
        });
    }
}
