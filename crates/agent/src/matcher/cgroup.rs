//! The decision whether a process belongs to a Kubernetes pod, from its `/proc/<pid>/cgroup`.
//!
//! Layouts that are told apart (`<uid>` with dashes or underscores, `<id>` 64 hexadecimal digits):
//! - cgroup v1 and v2 with the cgroupfs driver: `/kubepods/burstable/pod<uid>/<id>`;
//! - the systemd driver: `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice/cri-containerd-<id>.scope`
//!   (CRI-O: `crio-<id>.scope`, also with a cgroup below it), also below another root, as in `kubelet-kubepods.slice`;
//! - containerd where the kubelet names no parent: `/k8s.io/<id>`;
//! - all of these relative to the cgroup namespace of the agent, where the part that says `kubepods` is missing:
//!   `/../../pod<uid>/<id>`, and `/../<id>` for another container of the agent's own pod.

/// The cgroup namespace from which the agent reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CgroupView {
    /// The namespace of the host: paths are absolute.
    Host,
    /// A namespace of the agent's own container: paths are relative to its cgroup.
    Container,
}

/// Prefixes of the cgroups that container runtimes make for the kubelet. Docker's own containers are not among them:
/// those of the owner of a machine are the owner's programs.
const RUNTIME_PREFIXES: [&[u8]; 4] = [b"cri-containerd-", b"crio-", b"cri-o-", b"cri-dockerd-"];

/// The containerd namespace of the kubelet's containers, which is also the parent of their cgroups by default.
const CONTAINERD_NAMESPACE: &[u8] = b"k8s.io";

/// The length of a UID.
const UID_BYTES: usize = 36;

/// True if the content of a `/proc/<pid>/cgroup` is that of a process in a pod.
pub fn is_in_pod(content: &[u8], view: CgroupView) -> bool {
    let paths = || content.split(|byte| *byte == b'\n').filter_map(path);
    paths().any(is_pod_path) || (view == CgroupView::Container && is_in_own_pod(paths()))
}

/// The path in a line `hierarchy:controllers:path`. The path may contain colons.
fn path(line: &[u8]) -> Option<&[u8]> {
    line.splitn(3, |byte| *byte == b':').nth(2).filter(|path| path.starts_with(b"/"))
}

fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|component| !component.is_empty())
}

fn is_pod_path(path: &[u8]) -> bool {
    components(path).any(|component| {
        has_kubepods(component)
            || has_pod_uid(component)
            || component == CONTAINERD_NAMESPACE
            || RUNTIME_PREFIXES.iter().any(|prefix| component.starts_with(prefix))
    })
}

/// True for `kubepods`, `kubepods.slice`, `kubepods-burstable.slice`, `kubelet-kubepods.slice`.
fn has_kubepods(component: &[u8]) -> bool {
    component.split(|byte| *byte == b'-').any(|part| part.starts_with(b"kubepods"))
}

/// True if `pod` and a UID, or the 32 hexadecimal digits of a static pod, stand in it as a part of their own.
fn has_pod_uid(component: &[u8]) -> bool {
    let component = component.strip_suffix(b".slice").unwrap_or(component);
    let starts = component.windows(3).enumerate().filter(|(_, window)| *window == b"pod");
    starts
        .filter(|(start, _)| *start == 0 || component[start - 1] == b'-')
        .any(|(start, _)| is_uid(&component[start + 3..]))
}

/// True for a UID with dashes (systemd: underscores) and for the hash that names a static pod.
fn is_uid(text: &[u8]) -> bool {
    let is_hash = text.len() == 32 && text.iter().all(u8::is_ascii_hexdigit);
    is_hash
        || text.len() == UID_BYTES
            && text.iter().enumerate().all(|(index, byte)| match index {
                8 | 13 | 18 | 23 => matches!(byte, b'-' | b'_'),
                _ => byte.is_ascii_hexdigit(),
            })
}

/// True if every hierarchy shows the process in the agent's own container or right beside it.
fn is_in_own_pod<'a>(paths: impl Iterator<Item = &'a [u8]>) -> bool {
    let mut any = false;
    for path in paths {
        any = true;
        let above = components(path).take_while(|component| *component == b"..").count();
        if above > 1 {
            return false;
        }
    }
    any
}
