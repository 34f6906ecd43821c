"""Writes the API reference from the signatures and descriptions in the package's source.

python python/tools/reference.py [FILE]     prints the page without FILE
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python/paceline"

SECTIONS: list[tuple[str, str, list[str]]] = [
    ("Make runs", "runs.py", ["run", "repeat", "compare", "reproduce"]),
    ("Every result", "result.py", ["Result"]),
    ("Results", "runs.py", ["Run", "Runs", "Comparison", "ComparisonTable", "Reproduction"]),
    ("Series and tables", "tables.py", ["Series", "Table"]),
    ("Stored results", "results.py", ["load", "Results"]),
    ("Scenarios", "scenario.py", ["Scenario", "scenarios"]),
    ("Choices", "choices.py", ["choose", "Choice"]),
    ("Explanations of calls", "explanations.py", ["explain", "Explanation", "fit"]),
    ("Suites", "suites.py", ["suite", "SuiteResult"]),
    ("Sweeps", "sweeps.py", ["sweep", "SweepFile", "SweepResult", "sweeps"]),
    (
        "Controllers",
        "controllers.py",
        ["register", "Controller", "Parameter", "SendHalf", "ReceiveHalf", "controllers"],
    ),
    (
        "What halves receive and return",
        "_paceline.pyi",
        [
            "Setup",
            "Bounds",
            "Decision",
            "Feedback",
            "RoundTrip",
            "ReceiverReport",
            "Message",
            "SentPacket",
            "StreamState",
            "QueuedFrame",
            "Arrivals",
        ],
    ),
    ("Send media under a controller", "endpoints.py", ["Sender", "Receiver"]),
    (
        "What senders and receivers exchange with a program",
        "_paceline.pyi",
        ["Transmit", "PacketHead", "SenderEvent", "Report", "ProbeCluster"],
    ),
    ("Test a controller: `paceline.testing`", "testing.py", ["Sender", "Receiver"]),
    ("Reinforcement learning: `paceline.gym`", "gym.py", ["Env", "VectorEnv", "Task", "evaluate", "as_controller", "Score", "Quantity"]),
    (
        "Calibration: `paceline.calibration`",
        "calibration.py",
        ["calibrate", "Calibration", "Search", "Score", "Constant"],
    ),
    ("Searches: `paceline.search`", "search.py", ["search", "Found"]),
    ("Path schedules: `paceline.schedules`", "schedules.py", ["Schedule", "Step", "Tcp", "Bound"]),
    (
        "Exceptions",
        "errors.py",
        [
            "PacelineError",
            "InputError",
            "ArgumentError",
            "ScenarioError",
            "RunError",
            "WorldUnavailable",
            "SweepError",
            "SeriesError",
            "ResultsError",
            "PackageMissing",
        ],
    ),
]

INTRODUCTION = """# Python

This page lists every public name of the package `paceline`, from its source. The tutorial
[Compare two algorithms, in Python](../tutorials/python-compare.md) explains how they work together. Names without a module
are in `paceline` itself. Rates are in bit/s, sizes in bytes, and times in the unit at the end of the name.

Results are mappings of the documents that the command prints with `--json`. Every result has the members of
[`Result`](#result): the table of results, `to_pandas()` and `to_polars()` (extras `pandas` and `polars`), `plot()` (extra
`plot`), and the text of the command, which `print` shows.
"""


def page() -> str:
    """Returns the page."""
    parts = [INTRODUCTION]
    for title, file, names in SECTIONS:
        defined = definitions(PACKAGE / file)
        parts.append(f"## {title}\n")
        for name in names:
            node = defined[name]
            parts.append(function(node) if isinstance(node, ast.FunctionDef) else class_(node, defined))
    return "\n".join(parts)


def definitions(path: Path) -> dict[str, ast.FunctionDef | ast.ClassDef]:
    """Returns the functions and classes of a file."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def function(node: ast.FunctionDef) -> str:
    """Describes a function."""
    return f"### `{node.name}`\n\n```py\n{signature(node)}\n```\n\n{prose(node)}\n"


def class_(node: ast.ClassDef, defined: dict[str, ast.FunctionDef | ast.ClassDef]) -> str:
    """Describes a class with its public members, and those of its private base classes."""
    bases = [ast.unparse(base) for base in node.bases]
    shown = [base for base in bases if not base.startswith("_") and "gymnasium" not in base]
    heading = f"### `{node.name}`" + (f"\n\nA {', '.join(f'`{base}`' for base in shown)}." if shown else "")
    text = f"{heading}\n\n{prose(node)}\n"
    constructor = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name in ("__init__", "__new__")]
    known = {**defined, **{f"_paceline.{name}": of for name, of in definitions(PACKAGE / "_paceline.pyi").items()}}
    private = [known[base] for base in bases if base.startswith("_") and base in known]
    if constructor and node.name not in HIDDEN_CONSTRUCTORS:
        made = signature(constructor[0], node.name)
        text += f"\n```py\n{made}\n```\n"
        own = ast.get_docstring(constructor[0])
        text += f"\n{joined(own)}\n" if own else ""
    lines = [line for of in [node, *private] for line in members(of)]
    return text + ("\n" + "\n".join(lines) + "\n" if lines else "")


HIDDEN_CONSTRUCTORS = {
    "Run",
    "Runs",
    "Comparison",
    "ComparisonTable",
    "Reproduction",
    "Result",
    "Results",
    "SweepResult",
    "Table",
    "ScenarioError",
    "WorldUnavailable",
}
"""Classes that programs do not make themselves."""


def members(node: ast.ClassDef | ast.FunctionDef) -> list[str]:
    """Returns a line for each public member of a class."""
    lines = []
    bodies = [node.body]
    bodies += [n.body for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
    for body in bodies:
        for at, member in enumerate(body):
            name = attribute(member)
            if name is not None and not name.startswith("_"):
                described = description(body, at)
                annotation = getattr(member, "annotation", None)
                kind = f": {ast.unparse(annotation)}" if annotation is not None else ""
                value = getattr(member, "value", None)
                default = f" = {ast.unparse(value)}" if value is not None and body is node.body and short(value) else ""
                if described or body is node.body:
                    lines.append(f"* `{name}{kind}{default}`" + (f": {described}" if described else ""))
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
            decorators = {ast.unparse(d) for d in member.decorator_list}
            if "property" in decorators:
                kind = f": {ast.unparse(member.returns)}" if member.returns else ""
                lines.append(f"* `{member.name}{kind}`: {prose(member)}")
            else:
                lines.append(f"* `{signature(member, None, line=True)}`: {prose(member)}")
    return lines


def attribute(node: ast.stmt) -> str | None:
    """Returns the name of an attribute that a statement defines."""
    if isinstance(node, ast.AnnAssign):
        target = node.target
    elif isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
    else:
        return None
    if isinstance(target, ast.Name):
        return target.id
    is_own = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
    return target.attr if is_own else None  # type: ignore[union-attr]


def short(value: ast.expr) -> bool:
    """Returns whether a default is worth showing."""
    return isinstance(value, ast.Constant)


def description(body: list[ast.stmt], at: int) -> str:
    """Returns the text below an attribute."""
    below = body[at + 1] if at + 1 < len(body) else None
    is_text = (
        isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str)
    )
    return joined(below.value.value) if is_text else ""  # type: ignore[union-attr, arg-type]


def signature(node: ast.FunctionDef, name: str | None = None, *, line: bool = False) -> str:
    """Returns the signature of a function, with an argument in each line if it is long."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    if positional and positional[0].arg in ("self", "cls"):
        positional = positional[1:]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    shown = [one(a, d) for a, d in zip(positional, defaults[-len(positional) :] if positional else [], strict=True)]
    if arguments.vararg:
        shown.append(f"*{one(arguments.vararg, None)}")
    elif arguments.kwonlyargs:
        shown.append("*")
    shown += [one(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    if arguments.kwarg:
        shown.append(f"**{one(arguments.kwarg, None)}")
    called, returns = name or node.name, f" -> {ast.unparse(node.returns)}" if node.returns and name is None else ""
    whole = f"{called}({', '.join(shown)}){returns}"
    if line or len(whole) <= 100:
        return whole
    return f"{called}(\n" + "".join(f"    {argument},\n" for argument in shown) + f"){returns}"


def one(argument: ast.arg, default: ast.expr | None) -> str:
    """Returns an argument with its type and default."""
    text = argument.arg + (f": {ast.unparse(argument.annotation)}" if argument.annotation else "")
    return text + (f" = {ast.unparse(default)}" if default is not None else "")


def prose(node: ast.FunctionDef | ast.ClassDef) -> str:
    """Returns a description without line breaks within paragraphs."""
    return joined(ast.get_docstring(node) or "")


def joined(text: str) -> str:
    """Joins the lines of each paragraph; examples keep theirs."""
    import inspect

    paragraphs = inspect.cleandoc(text).split("\n\n")

    def one(paragraph: str) -> str:
        if paragraph.startswith((">>>", "    ")):
            return "```text\n" + paragraph + "\n```"
        return " ".join(paragraph.split("\n"))

    return "\n\n".join(one(paragraph) for paragraph in paragraphs)


def main() -> None:
    text = page()
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
