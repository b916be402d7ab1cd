"""The same worker, unchanged, under the launchers that people use."""

import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest
import yaml
from clusters import separate_hosts, slurm
from jax._src.clusters.k8s_cluster import K8sCluster
from needs import need
from small_site import ROOT

JOBS = ROOT / "examples/jobs"
WORKER = ROOT / "examples/processes/two_processes.py"
PYTHON = sys.executable


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch):
    """No process that a test started, and no link or mount, outlives it."""

    def outside():
        links = sorted(path.name for path in Path("/sys/class/net").glob("*"))
        return links, Path("/proc/self/mountinfo").read_text()

    mark = f"CHAPTER3_TEST={os.urandom(8).hex()}"
    monkeypatch.setenv(*mark.split("="))
    before = outside()
    yield
    assert outside() == before
    assert started_with(mark) == []


def started_with(mark):
    """List the command lines of the processes that inherited a variable."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes())
        except OSError:
            continue  # it has ended, or is another user's
    return found


def seen(output):
    """Read what the processes reported: the values in the order of their numbers.

    Launchers forward the outputs of processes as they come, lines cut and joined.
    """
    values = {}
    for found in re.finditer(r"process (\d+) of 2: (?=\{)", output):
        values[found[1]], _ = json.JSONDecoder().raw_decode(output[found.end() :])
    assert sorted(values) == ["0", "1"], output
    return [values["0"], values["1"]]


def check(output):
    """Check that two processes of four devices each computed as one."""
    both = seen(output)
    for number, value in enumerate(both):
        assert (value["process"], value["processes"]) == (number, 2)
        assert len(value["devices"]) == 8 and len(value["local devices"]) == 4
        assert value["shard_map"] == value["jit"] == 36.0
    assert both[0]["w"] == both[1]["w"]


@pytest.fixture
def four_devices(monkeypatch):
    monkeypatch.setenv("JAX_NUM_CPU_DEVICES", "4")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.delenv("XLA_FLAGS", raising=False)


@pytest.fixture(params=["one machine", "separate hosts"])
def hosts(request):
    if request.param == "one machine":
        yield ()
    else:
        with separate_hosts() as both:
            yield both


def test_open_mpi(hosts, four_devices, monkeypatch, tmp_path):
    need("openmpi-bin", "mpirun")
    for permission in ("", "_CONFIRM"):
        monkeypatch.setenv(f"OMPI_ALLOW_RUN_AS_ROOT{permission}", "1")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    command = ["sh", str(JOBS / "openmpi.sh"), PYTHON, str(WORKER)]
    if hosts:
        monkeypatch.setenv("HOSTS", ",".join(host.name for host in hosts))
        # In place of ssh: `agent HOST COMMAND...` runs the command on the other host.
        agent = tmp_path / "agent"
        there = " ".join(hosts[1].command("sh", "-c"))
        agent.write_text(f'#!/bin/sh\nshift\nexec {there} "$*"\n')
        agent.chmod(0o755)
        monkeypatch.setenv("OMPI_MCA_plm_rsh_agent", str(agent))
        command = hosts[0].command(*command)
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    check(done.stdout)


def test_slurm(hosts, four_devices, monkeypatch):
    with slurm(monkeypatch, hosts) as running:
        one_node = () if hosts else ("--nodes=1", "--ntasks-per-node=2")
        job = (str(JOBS / "slurm.sbatch"), PYTHON, str(WORKER))
        state, output = running.submit(*one_node, *job)
        assert state == "COMPLETED", output
        check(output)
        apart = (f"--output={running.folder}/%t.out", PYTHON, str(WORKER))
        running.run("srun", *one_node, "--ntasks=2", *apart)
        check("".join((running.folder / f"{n}.out").read_text() for n in (0, 1)))
        # A job file that forgets srun starts one process, which nobody told who it is.
        forgets = f"--wrap={PYTHON} -c 'import jax; jax.distributed.initialize()'"
        state, output = running.submit(*one_node, "--ntasks=2", forgets)
        assert state == "FAILED"
        assert "ValueError: coordinator_address should be defined." in output


def test_what_is_started_is_stopped_when_a_test_fails(monkeypatch):
    with pytest.raises(ZeroDivisionError), slurm(monkeypatch) as running:
        folder = running.folder
        assert running.run("squeue", "-h") == ""
        raise ZeroDivisionError
    assert not folder.exists()


def test_without_the_program_it_says_what_is_missing(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"needs no-mpi .*apt install x"):
        need("x", "sh", "no-mpi")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="needs no-mpi"):
        need("x", "sh", "no-mpi")


@pytest.fixture
def manifest():
    documents = yaml.safe_load_all((JOBS / "kubernetes.yaml").read_text())
    return {document["kind"]: document for document in documents}


def attributes(**values):
    return types.SimpleNamespace(**values)


@pytest.fixture
def kubernetes(manifest, monkeypatch):
    """What JAX would see in a pod: the API's answers, made from the manifest."""
    job, service = manifest["Job"], manifest["Service"]
    labels = {"job-name": job["metadata"]["name"]}
    asked = set()

    def listed(resource, item):
        asked.add(("list", resource))
        return attributes(items=[item])

    pod = attributes(
        metadata=attributes(
            name="chapter3-1",
            labels=labels,
            owner_references=[attributes(controller=True, kind="Job")],
        ),
        spec=attributes(subdomain=job["spec"]["template"]["spec"].get("subdomain")),
    )
    headless = attributes(
        metadata=attributes(name=service["metadata"]["name"]),
        spec=attributes(
            cluster_ip=service["spec"]["clusterIP"],
            selector=service["spec"]["selector"],
        ),
    )

    def read_job(name, namespace):
        asked.add(("get", "jobs"))
        assert name == job["metadata"]["name"]
        return attributes(
            metadata=attributes(name=name, labels=labels),
            spec=attributes(parallelism=job["spec"]["parallelism"]),
        )

    core = attributes(
        list_namespaced_pod=lambda **_: listed("pods", pod),
        list_namespaced_service=lambda *_: listed("services", headless),
    )
    monkeypatch.setitem(
        sys.modules,
        "kubernetes",
        attributes(
            config=attributes(load_incluster_config=lambda: None),
            client=attributes(
                CoreV1Api=lambda: core,
                BatchV1Api=lambda: attributes(read_namespaced_job=read_job),
                exceptions=attributes(ApiException=RuntimeError),
            ),
        ),
    )
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("HOSTNAME", "localhost")
    monkeypatch.setattr(K8sCluster, "_namespace", lambda: "default")
    if job["spec"]["completionMode"] == "Indexed":
        monkeypatch.setenv("JOB_COMPLETION_INDEX", "1")
    for cached in (K8sCluster._pod, K8sCluster._job, K8sCluster._headless_svc):
        cached.__func__.cache_clear()
    K8sCluster._controller.__func__.cache_clear()
    return asked


def test_the_kubernetes_manifest_is_what_the_detection_needs(manifest, kubernetes):
    found = K8sCluster.auto_detect_unset_distributed_params(
        None, None, None, None, None, None
    )
    # Pod 0 of an indexed job is JOB-0, and in a headless service JOB-0.SERVICE.
    assert found == ("chapter3-0.chapter3:55527", 2, 1, None)
    service, job = manifest["Service"]["spec"], manifest["Job"]["spec"]
    assert service["publishNotReadyAddresses"] and service["clusterIP"] == "None"
    assert job["completions"] == job["parallelism"]
    pod = job["template"]["spec"]
    (container,) = pod["containers"]
    assert (ROOT / container["command"][1]).is_file()
    # The account may ask for what was asked for, and no more.
    account = manifest["ServiceAccount"]["metadata"]["name"]
    binding = manifest["RoleBinding"]
    assert pod["serviceAccountName"] == account == binding["subjects"][0]["name"]
    assert binding["roleRef"]["name"] == manifest["Role"]["metadata"]["name"]
    allowed = {
        (verb, resource)
        for rule in manifest["Role"]["rules"]
        for verb in rule["verbs"]
        for resource in rule["resources"]
    }
    assert kubernetes <= allowed <= kubernetes | {("list", "services")}


def test_a_manifest_without_the_subdomain_is_refused(manifest, kubernetes):
    K8sCluster.is_env_present()
    K8sCluster._pod().spec.subdomain = None
    with pytest.raises(RuntimeError, match="add the\nfollowing to the job spec"):
        K8sCluster.get_coordinator_address(None, None)


@pytest.mark.parametrize("path", sorted(JOBS.glob("*")), ids=lambda path: path.name)
def test_job_files_can_be_read_by_a_shell_and_name_what_exists(path):
    text = path.read_text()
    for name in re.findall(r"examples/\S+\.py", text):
        assert (ROOT / name).is_file()
    assert path.name in text, "how to use it is written in it"
    if path.suffix in (".sh", ".sbatch"):
        subprocess.run(["bash", "-n", str(path)], check=True)


def test_the_tpu_job_starts_the_command_on_all_hosts(tmp_path):
    gcloud = tmp_path / "gcloud"
    gcloud.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    gcloud.chmod(0o755)
    told = subprocess.run(
        ["sh", str(JOBS / "tpu-pod.sh"), "python3", "train.py"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "TPU": "slice", "ZONE": "z"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert told[:5] == ["compute", "tpus", "tpu-vm", "ssh", "slice"]
    assert told[5:] == ["--zone=z", "--worker=all", "--command=python3 train.py"]


def test_a_process_that_is_left_is_found():
    mark = f"CHAPTER3_TEST={os.environ['CHAPTER3_TEST']}"
    with subprocess.Popen(["sleep", "60"]) as left:
        assert started_with(mark) == [b"sleep\x0060\x00"]
        left.kill()
