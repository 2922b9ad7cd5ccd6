"""The command line: parse, call, print. A user's mistake is one sentence on stderr and exit code 2."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated, Any

from nescio._validation import InputError, NumericalError

try:
    import typer
except ModuleNotFoundError:
    raise SystemExit("The command line needs typer and polars: pip install 'nescio[cli]'.") from None

from typer.core import TyperGroup

from nescio.cli.bench import bench
from nescio.cli.bench_images import detect, images
from nescio.cli.check import check
from nescio.cli.data import data
from nescio.cli.demo import demo
from nescio.cli.export import export
from nescio.cli.fit import fit
from nescio.cli.predict import predict
from nescio.cli.reproduce import reproduce

__all__ = ["app", "detect", "images", "main"]

FAULT, MISTAKE, INTERRUPTED, CLOSED = 1, 2, 130, 141  # the last two: 128 and the number of the signal


class Commands(TyperGroup):
    """All commands, with one way to end: in a sentence, never in a traceback for what a user did."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return self._run(ctx)
        except InputError as error:
            raise _end(f"Error: {error}", MISTAKE) from None
        except BrokenPipeError:
            raise _fall_silent() from None
        except OSError as error:
            raise _end(f"Error: {error.strerror or error}; no file was left half-written.", MISTAKE) from None
        except NumericalError as error:
            raise _end(f"Error: {error}", FAULT) from None
        except MemoryError:
            raise _end("Error: there is not enough memory; try fewer rows or members.", FAULT) from None
        except KeyboardInterrupt:
            raise _end("Interrupted; no file was left half-written.", INTERRUPTED) from None

    def _run(self, ctx: Any) -> Any:
        """Run it, and print what was noted on the way, however it ends."""
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            try:
                return super().invoke(ctx)
            finally:
                for note in dict.fromkeys(str(note.message) for note in notes):
                    typer.echo(f"Note: {note}", err=True)


def _end(sentence: str, code: int) -> typer.Exit:
    typer.echo(sentence, err=True)
    return typer.Exit(code)


def _fall_silent() -> typer.Exit:
    """End as other programs do when their reader has gone (``| head``), and write nothing more to it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())  # what is left in the buffer would be written, and fail, at the very end
    return typer.Exit(CLOSED)


app = typer.Typer(
    name="nescio",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Regression that knows what it does not know, on your own tables (CSV or Parquet).",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from nescio import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="The version.")
    ] = False,
) -> None:
    """Options of the program itself."""


app.command()(demo)
app.command()(fit)
app.command()(predict)
app.command()(check)
app.command()(reproduce)
app.command()(export)
app.add_typer(data)
app.add_typer(bench)


def main() -> None:
    """The console script."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
