"""What a pass does to tasks that are stuck, and what it leaves alone."""

from __future__ import annotations

import pytest

from cogrid.errors import Exit, UnreachableError
from cogrid.model.worker import Offer, OfferState, WorkerState
from cogrid.reaper.one_pass import dry_run, one_pass
from tests.reaper.stage import MODEL, Stage, held
from tests.servers import Server

ESXI = "tasks:cpu:esxi"
CPU = f"tasks:cpu:shared:{MODEL}"
GPU = f"tasks:gpu:shared:{MODEL}"
SENTENCE = (
    "no alternative worker can serve model 'gemma3:1b' (reason=dead_worker); "
    "single point of failure"
)


def texts(stage: Stage) -> list[str]:
    return [line.text for line in stage.sweep().lines]


def dumps(stage: Stage) -> dict[bytes, bytes]:
    return {key: stage.redis.dump(key) for key in stage.redis.scan_iter()}


def test_a_ghosts_task_goes_to_another_pool(stage: Stage) -> None:
    stage.worker("ai-core", pool="gpu")
    stage.hello("esxi")
    stage.renew("esxi")
    stage.submit("cb305e3a", ESXI)
    stage.let_pass(17.2)
    stage.renew("esxi")
    stage.renew("ai-core")
    stage.poll("ai-core")
    (line,) = stage.sweep().lines
    assert line.text.startswith(
        "[reaper] REQUEUE task=cb305e3a worker_id=esxi reason=ghost_pending "
        'evidence="registered, never polled for 17.'
    )
    assert line.text.endswith(f's" queue={GPU} homes=ai-core')
    assert stage.task("cb305e3a")["state"] == "pending"
    assert [task.id for task in stage.claim("ai-core", GPU)] == ["cb305e3a"]


def test_a_dead_workers_waiting_task_moves_and_its_run_is_taken_back(stage: Stage) -> None:
    stage.worker("esxi")
    stage.submit("first", ESXI, streamed=False)
    (run,) = stage.claim("esxi", ESXI)
    stage.submit("second", ESXI)
    stage.let_pass(21)
    stage.worker("ai-core", pool="gpu", slots=2)
    report = stage.sweep()
    assert [(line.task, line.reason, line.queue) for line in report.lines] == [
        ("first", "dead_worker", GPU),
        ("second", "dead_worker", GPU),
    ]
    assert stage.task("first")["recoveries"] == "1"
    assert "recoveries" not in stage.task("second")
    assert stage.finish("esxi", run).status == "lost"
    assert stage.task("first")["state"] == "pending"


def test_the_incident_without_a_second_worker(stage: Stage) -> None:
    stage.hello("esxi")
    stage.renew("esxi")
    stage.submit("cb305e3a", ESXI)
    stage.sweep()
    stage.let_pass(20.1)
    assert "reason=dead_worker" in texts(stage)[0]
    stage.let_pass(7.1)
    (line,) = stage.sweep().lines
    assert line.text == f"[reaper] FAIL task=cb305e3a: {SENTENCE}"
    assert f"ollama pull {MODEL}" in line.hint
    end = stage.end("cb305e3a")
    assert (end["state"], end["code"], end["message"]) == ("failed", "no_home", SENTENCE)


def test_a_deleted_hash_moves_waiting_tasks_at_once(stage: Stage) -> None:
    stage.worker("esxi", slots=2)
    stage.worker("ai-core", pool="gpu")
    stage.submit("runs", ESXI)
    stage.claim("esxi", ESXI)
    stage.submit("waits", ESXI)
    stage.redis.delete(stage.keys.worker("esxi"))
    (line,) = stage.sweep().lines
    assert (line.task, line.reason, line.queue) == ("waits", "dead_worker", GPU)
    assert stage.task("runs")["state"] == "running"


def test_a_deleted_hash_of_the_only_worker_fails_nothing(stage: Stage) -> None:
    stage.worker("esxi", slots=2)
    stage.submit("runs", ESXI)
    (run,) = stage.claim("esxi", ESXI)
    stage.submit("waits", ESXI)
    stage.redis.delete(stage.keys.worker("esxi"))
    assert [line.edge for line in stage.sweep().lines] == ["requeue"]
    # Long after the stamp of its model, but its lease runs: it has yet to say what it serves.
    stage.let_pass(8)
    assert stage.sweep().lines == ()
    stage.hello("esxi")
    assert stage.sweep().lines == ()
    stage.renew("esxi", held=(held(run),))
    assert stage.finish("esxi", run).status == "ok"
    assert [task.id for task in stage.claim("esxi", ESXI, CPU)] == ["waits"]


def test_a_busy_worker_is_left_alone(stage: Stage) -> None:
    stage.worker("esxi")
    stage.worker("ai-core", "other", pool="gpu")
    stage.submit("runs", ESXI)
    (run,) = stage.claim("esxi", ESXI)
    for number in range(15):
        stage.submit(f"own{number}", ESXI)
        stage.submit(f"shared{number}")
    stage.let_pass(120)
    stage.renew("esxi", held=(held(run, silent_s=90, allowed_s=300),))
    stage.renew("ai-core")
    stage.poll("esxi")
    stage.poll("ai-core")
    assert stage.sweep().lines == ()
    # Just freed: its last poll is old, the slot is not.
    stage.let_pass(60)
    stage.renew("esxi", held=(held(run, silent_s=90, allowed_s=300),))
    stage.renew("ai-core")
    stage.poll("ai-core")
    stage.finish("esxi", run)
    assert stage.sweep().lines == ()


def test_a_zombie_goes_to_another_homes_own_queue(stage: Stage) -> None:
    stage.worker("esxi")
    stage.worker("ai-core", pool="gpu")
    stage.submit("cb305e3a", streamed=False)
    (run,) = stage.claim("esxi", CPU, allowed_s=10)
    stage.let_pass(12)
    for name in ("esxi", "ai-core"):
        stage.renew(name)
        stage.poll(name)
    (line,) = stage.sweep().lines
    assert (line.reason, line.queue) == ("zombie_running", "tasks:gpu:ai-core")
    assert line.evidence.startswith("running for 12.")
    assert "progress overdue for 2." in line.evidence
    assert stage.renew("esxi", held=(held(run),)).lost == ("cb305e3a",)


def test_a_zombie_of_the_only_home_goes_to_the_shared_queue(stage: Stage) -> None:
    stage.worker("esxi")
    stage.submit("cb305e3a")
    stage.claim("esxi", CPU, allowed_s=10)
    stage.let_pass(11)
    stage.renew("esxi")
    stage.poll("esxi")
    assert [line.queue for line in stage.sweep().lines] == [CPU]


def test_a_broken_stream_fails_and_says_so(stage: Stage) -> None:
    stage.worker("esxi")
    stage.worker("ai-core", pool="gpu")
    stage.submit("cb305e3a")
    (run,) = stage.claim("esxi", CPU)
    stage.say(run)
    stage.let_pass(21)
    stage.renew("ai-core")
    assert dry_run(stage.store, stage.limits, stage.routing).lines[0].edge == "fail"
    (line,) = stage.sweep().lines
    assert line.edge == "fail"
    end = stage.end("cb305e3a")
    assert end["code"] == "broken_stream"
    assert end["message"] == line.message
    for word in (MODEL, "esxi", "dead_worker"):
        assert word in end["message"]


def test_recoveries_are_spent(stage: Stage) -> None:
    stage.worker("esxi")
    stage.submit("cb305e3a", max_recoveries=1)
    for _ in range(2):
        assert stage.claim("esxi", CPU, allowed_s=10)
        stage.let_pass(11)
        stage.renew("esxi")
        stage.poll("esxi")
        lines = stage.sweep().lines
        stage.renew("esxi")  # names nothing: the revoked run is stopped
    assert [line.edge for line in lines] == ["dead"]
    end = stage.end("cb305e3a")
    assert (end["state"], end["code"]) == ("dead", "recoveries_spent")
    assert "taken back from a worker 2 times, the last one was esxi" in end["message"]


def test_a_restarted_workers_run_is_taken_back_at_once(stage: Stage) -> None:
    stage.worker("esxi")
    stage.submit("cb305e3a", streamed=False)
    stage.claim("esxi", CPU)
    stage.redis.hset(stage.keys.reaper, "hold_until", 1 << 50)  # a hold does not delay this
    stage.hello("esxi", process=2)
    (line,) = stage.sweep().lines
    assert (line.reason, line.queue) == ("restarted", CPU)


def test_a_failed_attempt_waits_and_then_goes_elsewhere(stage: Stage) -> None:
    stage.worker("esxi")
    stage.worker("ai-core", pool="gpu")
    stage.submit("cb305e3a")
    (run,) = stage.claim("esxi", CPU)
    stage.finish("esxi", run, "failed", retry=True, backoff_ms=900, message="no", code="x")
    assert stage.sweep().lines == ()
    stage.let_pass(1)
    assert texts(stage) == [
        "[reaper] PROMOTE task=cb305e3a queue=tasks:gpu:ai-core homes=esxi,ai-core"
    ]
    assert stage.task("cb305e3a")["state"] == "pending"


def test_a_waiting_task_without_a_home_fails(stage: Stage) -> None:
    stage.worker("esxi")
    stage.submit("cb305e3a")
    (run,) = stage.claim("esxi", CPU)
    stage.finish("esxi", run, "failed", retry=True, backoff_ms=900, message="no", code="x")
    stage.sweep()
    stage.let_pass(28)
    assert [line.message for line in stage.sweep().lines] == [SENTENCE]


def test_a_queue_limit_ends_a_wait(stage: Stage) -> None:
    stage.worker("esxi")
    stage.submit("runs")
    stage.claim("esxi", CPU, allowed_s=1000)
    stage.submit("cb305e3a")
    stage.let_pass(300.5)
    stage.renew("esxi")
    stage.poll("esxi")
    (line,) = stage.sweep().lines
    assert line.edge == "expire"
    end = stage.end("cb305e3a")
    assert (end["state"], end["code"]) == ("expired", "queue_timeout")
    assert end["message"] == line.message
    assert "within 30" in line.message


def test_an_orphan_is_cancelled(stage: Stage) -> None:
    stage.worker("esxi")
    stage.submit("runs")
    (run,) = stage.claim("esxi", CPU)
    stage.let_pass(61, listening=False)
    stage.renew("esxi", held=(held(run),))
    (line,) = stage.sweep().lines
    assert line.text == "[reaper] CANCEL task=runs: nobody has listened for 60 s"
    assert stage.end("runs")["code"] == "orphaned"


def test_a_clients_lease_of_no_task_is_dropped_once(stage: Stage) -> None:
    stage.settle()
    stage.redis.zadd(stage.keys.clients, {"never-was": 1})
    assert stage.sweep().lines == ()
    assert stage.redis.zcard(stage.keys.clients) == 0
    stage.sweep()
    assert stage.edges("repaired") == ["never-was"]


def test_a_draining_and_a_starting_worker_keep_no_queue(stage: Stage) -> None:
    stage.worker("ai-core", pool="gpu")
    for name in ("a", "b"):
        stage.worker(name)
        stage.submit(name, f"tasks:cpu:{name}")
    stage.renew("a", WorkerState.AWAY)
    stage.hello("b", process=2)
    lines = stage.sweep().lines
    assert {(line.task, line.reason, line.evidence) for line in lines} == {
        ("a", "not_ready", "it is away"),
        ("b", "not_ready", "it is starting"),
    }
    assert {line.queue for line in lines} == {GPU}


def test_a_wish_to_drain_counts_from_its_word_on(stage: Stage) -> None:
    stage.worker("ai-core", pool="gpu")
    stage.worker("esxi")
    stage.submit("cb305e3a", ESXI)
    stage.redis.hset(stage.keys.worker("esxi"), "wanted", '{"state":"drain"}')
    assert [line.queue for line in stage.sweep().lines] == [GPU]


def test_a_worker_in_another_pool_has_left_its_old_queue(stage: Stage) -> None:
    stage.worker("esxi")
    stage.submit("cb305e3a", ESXI)
    stage.hello("esxi", process=2, pool="gpu")
    stage.renew("esxi")
    (line,) = stage.sweep().lines
    assert (line.evidence, line.queue) == ("it is in pool gpu now", GPU)


def test_only_as_many_leave_a_full_worker_as_there_are_free_slots(stage: Stage) -> None:
    stage.worker("esxi")
    stage.worker("ai-core", pool="gpu", slots=2)
    stage.submit("runs", ESXI)
    stage.claim("esxi", ESXI)
    for number in range(5):
        stage.submit(f"t{number}", ESXI)
    assert stage.sweep().lines == ()
    stage.let_pass(1.1)
    lines = stage.sweep().lines
    assert [(line.task, line.reason) for line in lines] == [
        ("t0", "worker_full"), ("t1", "worker_full")
    ]  # fmt: skip
    assert stage.sweep().lines == ()


def test_a_shared_head_goes_to_a_free_worker_of_another_pool(stage: Stage) -> None:
    stage.worker("esxi")
    stage.submit("runs")
    stage.claim("esxi", CPU)
    stage.submit("t0")
    stage.submit("t1")
    stage.worker("ai-core", pool="gpu")
    assert stage.sweep().lines == ()
    stage.let_pass(2.1)
    assert [(line.task, line.reason, line.queue) for line in stage.sweep().lines] == [
        ("t0", "better_pool", GPU)
    ]


def test_a_model_quarantined_everywhere_fails_by_that_name(stage: Stage) -> None:
    stage.worker("esxi")
    stage.submit("cb305e3a")
    now_ms = int(stage.redis.time()[0]) * 1000
    for since_s in (50, 61):
        offer = Offer(MODEL, OfferState.QUARANTINED, since_ms=now_ms - since_s * 1000)
        stage.let_pass(8)
        stage.renew("esxi", offers=(offer,))
        stage.poll("esxi")
        lines = stage.sweep().lines
        if since_s == 50:
            assert lines == ()
            stage.let_pass(8)
    assert [line.reason for line in lines] == ["quarantined"]
    assert "(reason=quarantined)" in lines[0].message


def test_fifty_tasks_are_spread_over_the_homes(stage: Stage) -> None:
    stage.worker("esxi", slots=50)
    for number in range(50):
        stage.submit(f"t{number}", streamed=False)
    taken = 0
    while taken < 50:
        taken += len(stage.claim("esxi", CPU, free=50, allowed_s=5))
    for name in ("a", "b", "c"):
        stage.worker(name, pool="gpu", slots=4)
    stage.let_pass(6)
    for name in ("esxi", "a", "b", "c"):
        stage.renew(name)
        stage.poll(name)
    queues = [line.queue for line in stage.sweep().lines]
    depths = {queue: queues.count(queue) for queue in set(queues)}
    assert set(depths) == {"tasks:gpu:a", "tasks:gpu:b", "tasks:gpu:c"}
    assert max(depths.values()) - min(depths.values()) <= 1


def test_markers_of_shared_queues_are_armed(stage: Stage) -> None:
    stage.worker("esxi")
    stage.submit("cb305e3a")
    stage.redis.delete(stage.keys.wake(CPU))
    stage.sweep()
    assert stage.redis.zcard(stage.keys.wake(CPU)) == 1


def test_models_with_a_home_are_stamped(stage: Stage) -> None:
    stage.worker("esxi", MODEL, "llama3.2:1b")
    stage.redis.delete(stage.keys.models)
    stage.sweep()
    assert set(stage.redis.zrange(stage.keys.models, 0, -1)) == {MODEL.encode(), b"llama3.2:1b"}


def test_a_name_without_hash_and_lease_is_forgotten(stage: Stage) -> None:
    stage.worker("esxi")
    stage.worker("ai-core")
    stage.redis.delete(stage.keys.worker("esxi"))
    assert stage.sweep().lines == ()
    stage.let_pass(21)
    assert texts(stage) == [
        '[reaper] FORGET worker_id=esxi evidence="no lease, no hash, holds nothing"'
    ]
    # A dead worker whose hash is there is for the operator.
    assert stage.redis.zrange(stage.keys.workers, 0, -1) == [b"ai-core"]


def test_what_no_task_confirms_is_dropped(stage: Stage) -> None:
    stage.worker("esxi")
    stage.submit("cb305e3a", "tasks:cpu:esxi")
    stage.let_pass(21)
    stage.redis.zadd(stage.keys.queue(ESXI), {"nobody": 1})
    stage.redis.sadd(stage.keys.worker_tasks("esxi"), "nothing")
    stage.redis.zadd(stage.keys.due, {"none": 1})
    stage.redis.zadd(stage.keys.clients, {"gone": 1})
    stage.sweep()
    assert stage.redis.exists(stage.keys.queue(ESXI), stage.keys.worker_tasks("esxi")) == 0
    assert stage.redis.zrange(stage.keys.due, 0, -1) == [b"cb305e3a"]
    assert stage.redis.zrange(stage.keys.clients, 0, -1) == [b"cb305e3a"]
    assert sorted(stage.edges("repaired")) == ["gone", "nobody", "none", "nothing"]


def test_a_newer_schema_is_refused(stage: Stage) -> None:
    stage.redis.hset(stage.keys.reaper, "schema", 2)
    with pytest.raises(UnreachableError, match="newer cogrid \\(schema 2") as caught:
        stage.sweep()
    assert caught.value.exit_code == Exit.UNREACHABLE
    with pytest.raises(UnreachableError, match="newer cogrid"):
        dry_run(stage.store, stage.limits, stage.routing)
    stage.redis.hset(stage.keys.reaper, "schema", 1)


def test_one_refused_act_does_not_hide_the_others(stage: Stage) -> None:
    stage.worker("a")
    stage.worker("b")
    stage.submit("a", "tasks:cpu:a", model="bad")
    stage.submit("b", "tasks:cpu:b")
    stage.redis.lpush(stage.keys.queue("tasks:cpu:shared:bad"), "somebody's")
    stage.let_pass(21)
    report = stage.sweep()
    assert [line.task for line in report.lines] == ["b"]
    assert len(report.problems) == 1
    assert "tasks:cpu:shared:bad is a list, not cogrid's zset" in report.problems[0]
    stage.redis.delete(stage.keys.queue("tasks:cpu:shared:bad"))


def test_a_dry_run_says_the_same_and_writes_nothing(stage: Stage) -> None:
    stage.worker("esxi")
    stage.submit("runs", ESXI, streamed=False)
    stage.claim("esxi", ESXI)
    stage.submit("waits", ESXI)
    stage.let_pass(21)
    before = dumps(stage)
    planned = dry_run(stage.store, stage.limits, stage.routing)
    assert dumps(stage) == before
    assert [(line.edge, line.task) for line in planned.lines] == [
        (line.edge, line.task) for line in stage.sweep().lines
    ]
    assert len(planned.lines) == 2


def test_every_act_on_every_server(every_server: Server) -> None:
    stage = Stage(every_server, prefix="{cogrid}:")
    stage.settle()
    for name in ("esxi", "new"):
        stage.worker(name, slots=2)
    stage.hello("ghost")
    stage.renew("ghost")
    stage.submit("runs", ESXI, streamed=False)
    stage.submit("failed", ESXI)
    for run in stage.claim("esxi", ESXI, free=2) + stage.claim("esxi", ESXI):
        if run.id == "failed":
            stage.finish("esxi", run, "failed", retry=True, backoff_ms=1, message="no", code="x")
    stage.submit("waits", ESXI)
    stage.submit("haunted", "tasks:cpu:ghost")
    stage.submit("nobody", model="gone")
    stage.submit("late", queue_timeout_ms=1)
    stage.submit("left")
    stage.let_pass(21)
    stage.redis.zadd(stage.keys.clients, {"left": 1})
    stage.redis.zadd(stage.keys.models, {"gone": 1})
    stage.redis.delete(stage.keys.worker("new"))
    for name in ("ghost", "ai-core"):
        if name == "ai-core":
            stage.worker(name, pool="gpu", slots=4)
        stage.renew(name)
    report = stage.sweep()
    assert report.problems == ()
    assert {line.task or line.worker: line.edge for line in report.lines} == {
        "runs": "requeue", "failed": "promote", "waits": "requeue", "haunted": "requeue",
        "nobody": "fail", "late": "expire", "left": "cancel", "new": "forget",
    }  # fmt: skip
    assert stage.sweep().lines == ()
    stage.close()


def test_a_pass_over_everything_drops_what_no_task_confirms(stage: Stage) -> None:
    """Beside workers and in queues that are well, too; what is confirmed stays."""
    stage.worker("esxi", slots=2)
    stage.submit("runs")
    stage.claim("esxi", CPU)
    stage.submit("waits")
    stage.redis.zadd(CPU, {"nobody": 1, "runs": 2})
    stage.redis.sadd("worker:esxi:tasks", "nobody", "waits")
    stage.sweep()
    assert stage.redis.zcard(CPU) == 3, "an ordinary pass looks only where something is wrong"
    one_pass(stage.store, stage.limits, stage.routing, whole=True)
    assert stage.redis.zrange(CPU, 0, -1) == [b"waits"]
    assert stage.redis.smembers("worker:esxi:tasks") == {b"runs"}


def test_what_waits_without_a_home_in_a_living_workers_queue_fails(stage: Stage) -> None:
    stage.worker("esxi", "llama3.2:1b")
    stage.submit("lost", "tasks:cpu:esxi", "gone:1b")
    stage.submit("fine", "tasks:cpu:esxi", "llama3.2:1b")
    stage.let_pass(8)
    stage.renew("esxi")
    stage.poll("esxi")
    report = one_pass(stage.store, stage.limits, stage.routing, whole=True)
    assert [(line.edge, line.task) for line in report.lines] == [("fail", "lost")]
    assert stage.task("fine")["state"] == "pending"
