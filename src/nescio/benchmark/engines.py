"""Where the stacks of a benchmark run: this machine, a Dask cluster or a Ray cluster, all through joblib."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky import process_executor

from nescio._validation import InputError, check_integer, check_one_of

__all__ = ["ENGINES", "Engine", "open_engine"]

ENGINES = ("local", "dask", "ray")
IDLE = 30  # seconds after which workers go that wait for work: those whose coordinator was killed, above all
LEAK = 4 * 2**30  # bytes by which a worker may grow

Engine = Callable[[Callable[..., Any], Sequence[Any]], Iterator[tuple[int, Any]]]
"""Takes a function and its arguments, and yields ``(number, result)`` as they are finished, in any order.

It raises what broke the pool of workers; the function itself should not raise.
"""


@contextmanager
def open_engine(engine: str, jobs: int = 2, address: str | None = None) -> Iterator[Engine]:
    """The engine of this name, with ``jobs`` workers here, or all workers of the cluster at ``address``."""
    check_one_of("engine", engine, ENGINES)
    check_integer("jobs", jobs, least=1)
    if engine == "local":
        if address is not None:
            raise InputError("an address needs a cluster; add --engine dask or --engine ray.")
        with parallel_config(backend="loky", n_jobs=jobs, idle_worker_timeout=IDLE):
            yield _engine("2*n_jobs")
    elif engine == "dask":
        with _dask_client(jobs, address) as client, parallel_config(backend=_dask_backend(client)):
            yield _engine("all")
    else:
        with _ray_session(jobs, address) as workers, parallel_config(backend=_ray_backend(), n_jobs=workers):
            yield _engine("2*n_jobs")


def _engine(pre_dispatch: str) -> Engine:
    def run(function: Callable[..., Any], arguments: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        pool = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch=pre_dispatch)
        return pool(delayed(_numbered)(function, number, argument) for number, argument in enumerate(arguments))

    return run


def _numbered(function: Callable[..., Any], number: int, argument: Any) -> tuple[int, Any]:
    # Loky takes 300 MB more than after the first stack for a leak and starts another worker, which would have to
    # compile its steps again: they are what most of it is.
    process_executor._MAX_MEMORY_LEAK_SIZE = LEAK
    return number, function(argument)


@contextmanager
def _dask_client(jobs: int, address: str | None) -> Iterator[Any]:
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        raise InputError("--engine dask needs dask: pip install 'nescio[dask]'.") from error
    try:
        if address is None:
            client = Client(n_workers=jobs, threads_per_worker=1, dashboard_address=None)
        else:
            client = Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise InputError(f"there is no Dask scheduler at '{address}': {error}.") from error
    with client:
        yield client


def _dask_backend(client: Any) -> Any:
    """Joblib's own, but for two things that it does when workers are lost.

    Where a stack has brought down one worker after another Dask gives it up, and joblib would wait for its result for
    ever: it tells its callback of results only. And with a single worker left, joblib would run the rest in this
    process.
    """
    from joblib._dask import DaskDistributedBackend

    class Backend(DaskDistributedBackend):
        def effective_n_jobs(self, n_jobs: int) -> int:
            return max(super().effective_n_jobs(n_jobs), 2)

        def submit(self, func: Any, callback: Any = None) -> Any:
            future = super().submit(func, callback)
            future.add_done_callback(lambda done: callback(done.exception()) if done.exception() else None)
            return future

        def retrieve_result_callback(self, out: Any) -> Any:
            if isinstance(out, BaseException):
                raise out
            return super().retrieve_result_callback(out)

    return Backend(client=client, wait_for_workers_timeout=60)


@contextmanager
def _ray_session(jobs: int, address: str | None) -> Iterator[int]:
    try:
        import ray
    except ModuleNotFoundError as error:
        raise InputError("--engine ray needs ray: pip install 'nescio[ray]'.") from error
    try:
        if address is None:
            ray.init(num_cpus=max(jobs, 2), include_dashboard=False, log_to_driver=False)
        else:
            ray.init(address=address, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InputError(f"there is no Ray cluster at '{address}': {error}.") from error
    try:
        yield jobs if address is None else max(int(ray.cluster_resources().get("CPU", 1)), 1)
    finally:
        ray.shutdown()


def _ray_backend() -> Any:
    """Ray's own, which can hand out results as they come: its callbacks do all that joblib asks for that."""
    from ray.util.joblib.ray_backend import RayBackend

    class Backend(RayBackend):
        supports_return_generator = True

    return Backend()
