"""What people do with the official client: create, read, update, delete, pages, watches, conflicts."""

import json
import sys
import threading

from kubernetes import client, config, watch
from kubernetes.client.rest import ApiException

KUBECONFIG, NAMESPACE = sys.argv[1:]
GROUP, VERSION, PLURAL = "5spot.finos.org", "v1alpha1", "scheduledmachines"

config.load_kube_config(KUBECONFIG)
core, custom = client.CoreV1Api(), client.CustomObjectsApi()


def config_map(name, labels=None, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels=labels), data=data)


def refused(code, reason, call, *arguments, **options):
    """The answer to a call that has to be refused."""
    try:
        call(*arguments, **options)
    except ApiException as error:
        status = json.loads(error.body)
        assert (error.status, status["reason"]) == (code, reason), error
        return status
    raise AssertionError(f"{call.__name__} was not refused")


def built_in_objects():
    made = core.create_namespaced_config_map(NAMESPACE, config_map("a", x="1"))
    assert made.metadata.uid and made.metadata.creation_timestamp.tzinfo, made
    refused(409, "AlreadyExists", core.create_namespaced_config_map, NAMESPACE, config_map("a"))
    assert core.read_namespaced_config_map("a", NAMESPACE).data == {"x": "1"}
    made.data["y"] = "2"
    replaced = core.replace_namespaced_config_map("a", NAMESPACE, made)
    assert replaced.data == {"x": "1", "y": "2"}, replaced
    conflict = refused(409, "Conflict", core.replace_namespaced_config_map, "a", NAMESPACE, made)
    assert "the object has been modified" in conflict["message"], conflict
    patched = core.patch_namespaced_config_map("a", NAMESPACE, {"data": {"x": None}})
    assert patched.data == {"y": "2"}, patched
    core.delete_namespaced_config_map("a", NAMESPACE)
    refused(404, "NotFound", core.read_namespaced_config_map, "a", NAMESPACE)


def custom_objects():
    place = {"group": GROUP, "version": VERSION, "namespace": NAMESPACE, "plural": PLURAL}

    def part(group, kind):
        return {"apiVersion": f"{group}.cluster.x-k8s.io/v1beta2", "kind": kind, "spec": {}}

    body = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "ScheduledMachine",
        "metadata": {"name": "python"},
        "spec": {
            "clusterName": "prod",
            "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "UTC"},
            "bootstrapSpec": part("bootstrap", "K0sWorkerConfig"),
            "infrastructureSpec": part("infrastructure", "RemoteMachine"),
        },
    }
    made = custom.create_namespaced_custom_object(body=body, **place)
    assert made["spec"]["priority"] == 50, "defaults are filled in"
    one = {**place, "name": "python"}
    patched = custom.patch_namespaced_custom_object(body={"spec": {"priority": 70}}, **one)
    assert patched["metadata"]["generation"] == 2, patched
    status = custom.patch_namespaced_custom_object_status(body={"status": {"phase": "Active"}}, **one)
    assert (status["status"]["phase"], status["metadata"]["generation"]) == ("Active", 2), status
    bad = {"spec": {"schedule": {"daysOfWeek": ["someday"]}}}
    invalid = refused(422, "Invalid", custom.patch_namespaced_custom_object, body=bad, **one)
    assert "must be a weekday" in invalid["message"], invalid
    assert invalid["details"]["causes"][0]["field"] == "spec.schedule.daysOfWeek[0]", invalid
    assert len(custom.list_namespaced_custom_object(**place)["items"]) == 1
    custom.delete_namespaced_custom_object(**one)
    refused(404, "NotFound", custom.get_namespaced_custom_object, **one)


def pages():
    for number in range(25):
        core.create_namespaced_config_map(NAMESPACE, config_map(f"page-{number:02}", {"pages": "yes"}))
    sizes, names, token = [], [], None
    while token != "":
        page = core.list_namespaced_config_map(
            NAMESPACE, label_selector="pages=yes", limit=10, _continue=token
        )
        sizes.append(len(page.items))
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue or ""
    assert sizes == [10, 10, 5], sizes
    assert names == [f"page-{number:02}" for number in range(25)], names
    core.delete_collection_namespaced_config_map(NAMESPACE, label_selector="pages=yes")
    assert not core.list_namespaced_config_map(NAMESPACE, label_selector="pages=yes").items


def watches():
    begun = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version

    def write():
        core.create_namespaced_config_map(NAMESPACE, config_map("seen", {"seen": "yes"}, x="1"))
        core.patch_namespaced_config_map("seen", NAMESPACE, {"data": {"x": "2"}})
        core.delete_namespaced_config_map("seen", NAMESPACE)

    writer = threading.Thread(target=write)
    writer.start()
    seen, watcher = [], watch.Watch()
    for event in watcher.stream(
        core.list_namespaced_config_map,
        NAMESPACE,
        label_selector="seen=yes",
        resource_version=begun,
        timeout_seconds=60,
    ):
        seen.append((event["type"], event["object"].data["x"]))
        if event["type"] == "DELETED":
            watcher.stop()
    writer.join()
    assert seen == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")], seen


built_in_objects()
custom_objects()
pages()
watches()
print("create, read, update, delete, pages, watch, conflict: well")
