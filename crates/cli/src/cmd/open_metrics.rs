//! Metrics as OpenMetrics text over HTTP: `GET /metrics`, and nothing else. `export` and `relay`
//! serve theirs so.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{LocalSet, spawn_local};

/// The media type of OpenMetrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Scrapers at once; more wait in the kernel's backlog.
const SCRAPERS: usize = 16;
/// How long a request may take to arrive, and a connection may idle.
const REQUEST: Duration = Duration::from_secs(30);

/// Gives the text that a scrape gets.
pub type Text = Rc<dyn Fn() -> Pin<Box<dyn Future<Output = String>>>>;

/// Serves until `ended` is ready.
pub async fn serve(listener: TcpListener, text: Text, ended: impl Future<Output = ()>) {
    let places = std::sync::Arc::new(Semaphore::new(SCRAPERS));
    let accepting = async {
        loop {
            let place = places.clone().acquire_owned().await.expect("it is never closed");
            match listener.accept().await {
                Ok((stream, _)) => {
                    let text = Rc::clone(&text);
                    spawn_local(async move {
                        answer(stream, text).await;
                        drop(place);
                    });
                }
                // Descriptors ran out, or the peer is gone: trying again at once would only burn
                // the CPU.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    LocalSet::new()
        .run_until(async {
            tokio::select! {
                () = accepting => {}
                () = ended => {}
            }
        })
        .await;
}

/// Answers the requests of one connection. Its errors are the peer's.
async fn answer(stream: TcpStream, text: Text) {
    let service = service_fn(|request| {
        let text = Rc::clone(&text);
        async move { Ok::<_, Infallible>(respond(&request, &text).await) }
    });
    let _ = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn respond(request: &Request<Incoming>, text: &Text) -> Response<Full<Bytes>> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let (status, kind, body) = match (request.uri().path(), is_read) {
        ("/metrics", true) => (StatusCode::OK, OPEN_METRICS, text().await),
        (_, false) => {
            (StatusCode::METHOD_NOT_ALLOWED, "text/plain", "GET /metrics is all there is\n".into())
        }
        _ => (StatusCode::NOT_FOUND, "text/plain", "the metrics are at /metrics\n".into()),
    };
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}
