//! The real program beside hostile tenants: what it takes in memory, file descriptors and log, and that it answers.

use crate::process::{GUARD, line_of, program};
use crate::served::get;
use crate::serving::api;
use crate::stopping::kubeconfig;
use five_spot_apiserver::{ApiServer, HttpServer};
use five_spot_hostile::{Attack, HostileServer, resident_bytes_of};
use serde_json::{Value, json};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;
use tokio::time::{Instant, timeout};

/// The most memory for four hostile clusters: the budget of each, and what the program takes by itself.
const MEMORY: usize = 320 << 20;

/// The time that the attacks have. Before there were limits one took gigabytes within two seconds.
const ATTACKED: Duration = Duration::from_secs(8);

struct Running {
    child: Child,
    health: u16,
    metrics: u16,
    logged: Arc<AtomicUsize>,
    _home: tempfile::TempDir,
}

impl Running {
    async fn start(server: &HttpServer) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let mut command = program(home.path());
        command
            .env("KUBECONFIG", kubeconfig(home.path(), &format!("http://{}", server.address())))
            .args(["--metrics-port=0", "--health-port=0", "--workload-cidr=127.0.0.0/8"])
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let logged = Arc::new(AtomicUsize::new(0));
        let serving = async {
            while let Some(line) = lines.next_line().await.expect("text") {
                let line = line_of(&line);
                if line["fields"]["message"] == "Serving metrics and health" {
                    return line["fields"].clone();
                }
            }
            panic!("it ended");
        };
        let serving = timeout(GUARD, serving).await.expect("it serves");
        let port = |name: &str| serving[name].as_u64().and_then(|port| port.try_into().ok()).expect("a port");
        let count = logged.clone();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                count.fetch_add(line.len() + 1, Ordering::Relaxed);
            }
        });
        Self { health: port("health_port"), metrics: port("metrics_port"), child, logged, _home: home }
    }

    fn id(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.id())).expect("it runs").count()
    }

    async fn metric(&self, name: &str) -> f64 {
        let (_, page) = get(self.metrics, "/metrics").await;
        let lines = page.lines().filter(|line| line.starts_with(name));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }
}

fn lend(api: &ApiServer, name: &str, secret: &str) {
    let object = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedule": {"daysOfWeek": ["mon-sun"]},
            "clusterName": "shop",
            "kubeconfigSecretRef": {"name": secret, "key": "value"},
            "bootstrapSpec": {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2", "kind": "K0sWorkerConfig", "spec": {},
            },
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "RemoteMachine",
                "spec": {"address": "10.0.0.1", "port": 22},
            },
        },
    });
    api.create("/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduledmachines", &object);
}

fn create_secret(api: &ApiServer, mut secret: Value) {
    secret["metadata"]["namespace"] = "default".into();
    api.create("/api/v1/namespaces/default/secrets", &secret);
}

#[tokio::test]
async fn hostile_clusters_take_bounded_memory_and_the_program_answers() {
    let (api, server) = api().await;
    let mut hostile = Vec::new();
    for attack in [Attack::EndlessBody, Attack::EndlessLine, Attack::EndlessPages, Attack::TinyObjects] {
        let cluster = HostileServer::start_tls(attack.clone()).await.expect("a port");
        let name = format!("hostile-{}", hostile.len());
        create_secret(&api, cluster.secret(&name));
        lend(&api, &name, &name);
        hostile.push((attack, cluster));
    }
    let running = Running::start(&server).await;
    let (began, mut most) = (Instant::now(), 0);
    while began.elapsed() < ATTACKED {
        most = most.max(resident_bytes_of(running.id()).expect("it runs"));
        let health =
            timeout(Duration::from_secs(5), get(running.health, "/health")).await.expect("an answer");
        assert_eq!(health.0, 200, "{}", health.1);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for (attack, cluster) in &hostile {
        println!("{attack:?}: {} kB in {} connections", cluster.sent() >> 10, cluster.connections());
        assert!(cluster.connections() > 0, "{attack:?} was never reached");
    }
    let logged = running.logged.load(Ordering::Relaxed);
    println!("memory at most {} kB, {} kB of log", most >> 10, logged >> 10);
    assert!(most < MEMORY, "{most} bytes");
    assert!(logged < 1 << 20, "{logged} bytes of log");
}

#[tokio::test]
async fn objects_that_name_missing_secrets_open_no_connections() {
    let (api, server) = api().await;
    let count = 1_500;
    for number in 0..count {
        lend(&api, &format!("m{number}"), &format!("missing-{number}"));
    }
    let running = Running::start(&server).await;
    let finished = async {
        while running.metric("fivespot_reconciliations_total").await < f64::from(count) {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    timeout(GUARD, finished).await.expect("every object is reconciled");
    let (open, reconciles) = (running.descriptors(), running.metric("fivespot_reconciliations_total").await);
    let logged = running.logged.load(Ordering::Relaxed);
    println!("{open} descriptors, {reconciles} reconciles, {} kB of log for {count} objects", logged >> 10);
    assert!(open < 100, "{open} descriptors for {count} objects");
    assert!(reconciles < 6.0 * f64::from(count), "{reconciles} reconciles for {count} objects");
    let (seen, limit) = (running.metric("process_open_fds").await, running.metric("process_max_fds").await);
    assert!(seen >= 3.0 && seen < limit, "{seen} of {limit}");
}

#[tokio::test]
async fn large_secrets_are_not_kept() {
    let (api, server) = api().await;
    // One is named, so that the Secrets of the namespace are watched.
    lend(&api, "m0", "large-0");
    let running = Running::start(&server).await;
    let reconciled = async {
        while running.metric("fivespot_reconciliations_total").await < 1.0 {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    timeout(GUARD, reconciled).await.expect("the object is reconciled");
    let before = resident_bytes_of(running.id()).expect("it runs");
    let data = "eHh4".repeat((1 << 20) / 4);
    for number in 0..100 {
        let metadata = json!({"name": format!("large-{number}")});
        create_secret(
            &api,
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"junk": data}}),
        );
    }
    let (begin, mut most) = (Instant::now(), 0);
    while begin.elapsed() < ATTACKED {
        most = most.max(resident_bytes_of(running.id()).expect("it runs"));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let growth = most.saturating_sub(before);
    println!("100 Secrets of 1 MB: {} kB before, {} kB more", before >> 10, growth >> 10);
    assert!(growth < 50 << 20, "{growth} bytes");
}

/// The first answer with this status, and its text.
async fn answered(running: &Running, path: &str, status: u16) -> String {
    let answer = async {
        loop {
            let (code, text) = get(running.health, path).await;
            if code == status {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    timeout(GUARD, answer).await.unwrap_or_else(|_| panic!("{path} is never {status}"))
}

#[tokio::test]
async fn a_program_near_its_limit_of_descriptors_says_so() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let (_api, server) = api().await;
    let running = Running::start(&server).await;
    answered(&running, "/ready", 200).await;
    let pid = Pid::from_raw(i32::try_from(running.id()).expect("a number"));
    let open = running.descriptors() as u64;
    // Enough for probes, and so few that more than 90 percent are open.
    let near = Rlimit {
        current: Some(open + open / 12),
        maximum: rustix::process::getrlimit(Resource::Nofile).maximum,
    };
    let before = prlimit(pid, Resource::Nofile, near).expect("it is our child");
    let text = answered(&running, "/ready", 503).await;
    assert!(text.contains("file descriptors are open"), "{text}");
    let (code, text) = get(running.health, "/health").await;
    assert_eq!(code, 200, "{text}");
    prlimit(pid, Resource::Nofile, before).expect("it is our child");
    answered(&running, "/ready", 200).await;
}
