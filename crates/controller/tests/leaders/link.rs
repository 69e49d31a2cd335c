//! The connection between one replica and the API server: it can fail, hang, and refuse as the admission policy does.

use bytes::Bytes;
use five_spot_apiserver::{ApiServer, ApiService, BoxError, Clock, ResponseBody};
use futures::future::BoxFuture;
use futures::stream;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, StreamBody};
use kube::client::Body;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::sync::watch;

/// The state of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Requests and answers pass.
    #[default]
    Open,
    /// Nothing passes in either direction until it is open again.
    Hanging,
    /// Such writes, and everything about Leases, do not pass until it is open again: the process was stopped right
    /// before they were sent.
    Holding(Kind),
    /// Requests are carried out, and their answers are lost.
    Mute,
    /// Requests fail.
    Down,
    /// The process is gone: nothing that it has sent and that has not arrived will.
    Dead,
}

/// A kind of write that the policy is about, or anything about Leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A Machine is made or changed.
    ApplyMachine,
    /// A Machine is deleted.
    DeleteMachine,
    /// A `ScheduledMachine` or its status is changed.
    Update,
    /// Anything about Leases.
    Lease,
}

impl Kind {
    fn of(method: &Method, path: &str) -> Option<Self> {
        let is_write = *method != Method::GET;
        // Leases that claim machines are writes like any other: only they are created while a replica leads.
        let is_claim = path.contains("/5spot-machine-") || *method == Method::POST;
        if path.contains("/leases") {
            return (!is_claim).then_some(Self::Lease);
        }
        if path.contains("/scheduledmachines") && is_write {
            return Some(Self::Update);
        }
        let of_machine = if *method == Method::DELETE { Self::DeleteMachine } else { Self::ApplyMachine };
        (path.contains("/machines") && is_write).then_some(of_machine)
    }
}

/// A write that the API server has carried out.
#[derive(Clone, Debug)]
pub struct Landed {
    pub pod: String,
    pub method: Method,
    pub path: String,
    pub code: u16,
    /// The holder of the Lease at that moment.
    pub holder: String,
}

/// The state that all links share.
#[derive(Clone)]
pub struct Server {
    pub api: ApiServer,
    pub clock: Clock,
    /// True if the admission policy of `deploy/ha` is in force.
    pub is_fenced: bool,
    pub landed: Arc<Mutex<Vec<Landed>>>,
    /// Writes that the policy has refused.
    pub refused: Arc<Mutex<usize>>,
}

impl Server {
    /// The holder of the Lease.
    pub async fn holder(&self) -> String {
        let path = "/apis/coordination.k8s.io/v1/namespaces/5spot-system/leases/5spot-leader";
        let request = Request::get(path).body(Vec::new()).expect("a request");
        let lease: Result<Value, _> = self.api.client("5spot-system").request(request).await;
        let holder = lease.ok().and_then(|lease| Some(lease["spec"]["holderIdentity"].as_str()?.to_owned()));
        holder.unwrap_or_default()
    }
}

/// A link.
#[derive(Clone)]
pub struct Link {
    pub server: Server,
    pub service: ApiService,
    pub pod: String,
    pub state: watch::Receiver<State>,
}

async fn passes(mut state: watch::Receiver<State>, kind: Option<Kind>) -> Result<(), BoxError> {
    let moves = |state: &State| match state {
        State::Hanging => false,
        State::Holding(held) => kind.is_none_or(|kind| kind != *held && kind != Kind::Lease),
        State::Open | State::Mute | State::Down | State::Dead => true,
    };
    let now = state.wait_for(moves).await.map_or(State::Dead, |state| *state);
    match now {
        State::Open | State::Mute | State::Hanging | State::Holding(_) => Ok(()),
        State::Down => Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into()),
        State::Dead => std::future::pending().await,
    }
}

impl Link {
    async fn answer(self, request: Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let (state, kind) = (self.state.clone(), Kind::of(&method, &path));
        passes(state.clone(), kind).await?;
        // What has left the process is carried out, whether or not anybody waits for the answer.
        let is_mute = *state.borrow() == State::Mute;
        let answer = tokio::spawn(self.carry_out(request, method, path, kind)).await??;
        if is_mute {
            return std::future::pending().await;
        }
        passes(state.clone(), kind).await?;
        Ok(answer.map(|body| {
            let frames = stream::unfold((body, state), move |(mut body, state)| async move {
                let frame = body.frame().await?;
                let frame = passes(state.clone(), kind).await.and(frame);
                Some((frame, (body, state)))
            });
            StreamBody::new(frames).boxed_unsync()
        }))
    }

    async fn carry_out(
        mut self,
        request: Request<Body>,
        method: Method,
        path: String,
        kind: Option<Kind>,
    ) -> Result<Response<ResponseBody>, BoxError> {
        let is_write = method != Method::GET;
        let holder = if is_write { self.server.holder().await } else { String::new() };
        let is_fenced = self.server.is_fenced && kind.is_some_and(|kind| kind != Kind::Lease) && is_write;
        if is_fenced && !holder.starts_with(&format!("{}_", self.pod)) {
            *self.server.refused.lock().expect("no panic") += 1;
            return Ok(refusal(&self.pod, &holder));
        }
        let answer = tower::Service::call(&mut self.service, request).await?;
        if is_write {
            let (pod, code) = (self.pod.clone(), answer.status().as_u16());
            let landed = Landed { pod, method, path, code, holder };
            self.server.landed.lock().expect("no panic").push(landed);
        }
        Ok(answer)
    }
}

fn refusal(pod: &str, holder: &str) -> Response<ResponseBody> {
    let message = format!(
        "ValidatingAdmissionPolicy '5spot-fence' with binding '5spot-fence' denied request: pod {pod} does not hold the \
         Lease (holder: {holder})"
    );
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "message": message,
        "reason": "Invalid", "code": 422,
    });
    let body = Full::new(Bytes::from(status.to_string())).map_err(|never: Infallible| match never {});
    Response::builder()
        .status(StatusCode::UNPROCESSABLE_ENTITY)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body.boxed_unsync())
        .expect("the parts are valid")
}

impl tower::Service<Request<Body>> for Link {
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}
