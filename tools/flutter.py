"""Compares the source of the Dart bindings (Clients/flutter) with countersign.h, without running them, because Dart is not installed.

Functions and callbacks must have the header's types, for dart:ffi and for Dart, and statuses the header's values. Each
call of a client must be a method of its mode, with members that the header names. Names in the examples must exist in
the imported library. If tree-sitter can be installed, each file must parse, which checks less than a compiler.
"""
import re
import sys

from .common import ROOT

HEADER = (ROOT / "Sources/SDK/CCountersign/include/countersign.h").read_text()
PACKAGE = ROOT / "Clients/flutter/lib"
EXAMPLES = ROOT / "Clients/flutter/example"
MODES = ("signed_user", "access_token", "bloomreach")

# The types of dart:ffi for the header's types, and Dart's types for the types of dart:ffi.
NATIVE = {
    "void": "Void", "const char *": "Pointer<Utf8>", "char *": "Pointer<Utf8>", "char **": "Pointer<Pointer<Utf8>>",
    "void *": "Pointer<Void>", "size_t": "Size", "size_t *": "Pointer<Size>", "uint64_t": "Uint64", "countersign_status": "Int32",
    "countersign_client *": "Pointer<Client>",
    **{f"countersign_{name}": f"Pointer<NativeFunction<{name.capitalize()}Callback>>" for name in ("result", "event", "provider")},
}
DART = {"Void": "void", "Size": "int", "Uint64": "int", "Int32": "int"}

# The samples of the README, each as a program.
SAMPLES = ["".join(parts) for parts in (
    (*re.findall(r"^import .*\n", code, re.M), "void main() async {\n", re.sub(r"^import .*\n", "", code, flags=re.M), "}\n")
    for code in re.findall(r"```dart\n(.*?)```", (ROOT / "Clients/flutter/README.md").read_text(), re.S))]

problems = []


def expect(what, expected, found):
    if expected != found:
        problems.append(f"{what}: the header has {expected}, the bindings have {found}")


def split(parameters):
    """The types of dart:ffi for a list of parameters in C."""
    if parameters.strip() == "void":
        return []
    found = []
    for parameter in parameters.split(","):
        kind = re.match(r"\s*(.*?[\s*])\w+\s*$", parameter, re.S)[1]
        found.append(NATIVE[re.sub(r"\s*(\*+)", r" \1", " ".join(kind.split())).strip()])
    return found


def of_header():
    """The header's functions and callbacks, each with the types of its result and parameters in dart:ffi, and the statuses."""
    code = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.S)
    callbacks = {name.capitalize() + "Callback": ("Void", split(parameters)) for name, parameters in re.findall(
        r"typedef void \(\*countersign_(\w+)\)\((.*?)\);", code, re.S)}
    code = re.sub(r"typedef [^;]*;", "", code)
    functions = {name: (NATIVE[" ".join(kind.split())], split(parameters)) for kind, name, parameters in re.findall(
        r"^([a-z][\w ]*?\**)\s*(countersign_\w+)\(([^)]*)\);", code.replace(" *countersign_", " * countersign_"), re.M)}
    statuses = dict(re.findall(r"#define COUNTERSIGN_(\w+) (\d+)", code))
    return functions, callbacks, statuses


def of_bindings():
    code = re.sub(r"//.*", "", (PACKAGE / "src/bindings.dart").read_text())
    types = {}
    for name, result, parameters in re.findall(r"typedef (\w+) =\s*(.*?) Function\((.*?)\);", code, re.S):
        # No type has a comma within angle brackets.
        types[name] = (result, [re.sub(r"\s+\w+$", "", one.strip()) for one in parameters.split(",") if one.strip()])
    looked_up = {symbol: (native, dart) for native, dart, symbol in re.findall(
        r"lookupFunction<(\w+), (\w+)>\('(\w+)'\)", code)}
    statuses = dict(re.findall(r"(\w+) = (\d)", re.search(r"const (.*?);", code, re.S)[1]))
    return types, looked_up, statuses


def check_functions():
    functions, callbacks, statuses = of_header()
    types, looked_up, codes = of_bindings()
    if len(functions) != 8 or len(callbacks) != 3:
        problems.append(f"the header was not understood: {sorted(functions)}, {sorted(callbacks)}")
    expect("functions", sorted(functions), sorted(looked_up))
    for symbol in functions.keys() & looked_up.keys():
        native, dart = looked_up[symbol]
        expect(symbol, functions[symbol], types.get(native))
        result, parameters = functions[symbol]
        expect(f"{symbol} in Dart", (DART.get(result, result), [DART.get(one, one) for one in parameters]), types.get(dart))
    for name, signature in callbacks.items():
        expect(name, signature, types.get(name))
    expect("statuses", {name.lower(): value for name, value in statuses.items()}, codes)


def methods_of(mode):
    """The methods that the header documents for a mode, each with the members of its arguments, or None if the header lists no members."""
    text = re.search(r"/\*((?:(?!\*/).)*?)\*/\s*countersign_client \*countersign_open_" + mode, HEADER, re.S)[1]
    text = re.sub(r"\n \*", "\n", text)
    found = {}
    for names, members in re.findall(r"^   (\w+(?:, \w+)*)\s+(\{(?:[^{}]|\{[^{}]*\})*\})", text.split("Methods")[1], re.M):
        for name in names.split(", "):
            found[name] = None if "..." in re.sub(r"\{\.\.\.\}", "", members) else set(re.findall(r'"(\w+)"', members))
    shared = re.search(r"^   (\w+(?:, \w+)+)   as for a signed user", text, re.M)
    return {**found, **dict.fromkeys(shared[1].split(", ") if shared else [], set())}


def check_calls():
    code = (PACKAGE / "src/clients.dart").read_text()
    classes = re.split(r"^final class ", code, flags=re.M)[1:]
    expect("modes", sorted(MODES), sorted(re.search(r"super\('(\w+)'", one)[1] for one in classes))
    for one in classes:
        mode = re.search(r"super\('(\w+)'", one)[1]
        methods = methods_of(mode)
        if len(methods) < 8:
            problems.append(f"the header's methods of {mode} were not understood: {sorted(methods)}")
        for name, arguments in re.findall(r"[ (]call\('(\w+)'(?:, (\{.*?\}))?", one, re.S):
            if name not in methods:
                problems.append(f"{mode}: the header has no method {name}")
            elif methods[name] is not None and (unknown := set(re.findall(r"'(\w+)':", arguments)) - methods[name]):
                problems.append(f"{mode}: {name} has no {', '.join(sorted(unknown))}")
    if "'keepsTexts': true" not in (PACKAGE / "src/handle.dart").read_text() or '"keepsTexts": true' not in HEADER:
        problems.append("a Dart listener runs after its callback has returned, so the client must set keepsTexts")
    # The SDK must read each configuration key of Exponea's plugin.
    reader = (ROOT / "Sources/SDK/CountersignBloomreach/BloomreachConfiguration+Map.swift").read_text()
    for key in re.findall(r"'(\w+)':", (PACKAGE / "exponea.dart").read_text()):
        if f'"{key}"' not in reader:
            problems.append(f"exponea.dart: the SDK reads no {key}")


def check_examples():
    """Checks methods and named arguments in the vendors' samples and in the README."""
    examples = sorted(EXAMPLES.glob("*.dart"))
    expect("examples", ["braze.dart", "exponea.dart"], [path.name for path in examples])
    for path in examples:
        code, library = path.read_text(), (PACKAGE / path.name).read_text()
        for method in re.findall(r"\b(?:braze|_plugin)\.(\w+)\(", code):
            if not re.search(rf"\b{method}\(", library):
                problems.append(f"{path.name}: the library has no method {method}")
        for argument in re.findall(r"[(,]\s+(\w+): ", code):
            if not re.search(rf"(this\.|\w\? ){argument}\b", library):
                problems.append(f"{path.name}: the library has no argument {argument}")
    library = "".join(path.read_text() for path in sorted(PACKAGE.rglob("*.dart")))
    for code in SAMPLES:
        for name in re.findall(r"(?:\.|await |= |const )(\w+)(?:\(| = )", code) + re.findall(r"[(,]\s*(\w+): ", code):
            if not re.search(rf"\b{name}\b", library):
                problems.append(f"README.md: the library has no {name}")


def check_syntax():
    import tree_sitter
    import tree_sitter_dart

    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_dart.language()))
    files = [(path.relative_to(ROOT), path.read_bytes()) for path in sorted([*PACKAGE.rglob("*.dart"), *EXAMPLES.glob("*.dart")])]
    for path, code in files + [("README.md, sample", sample.encode()) for sample in SAMPLES]:
        pending = [parser.parse(code).root_node]
        while pending:
            node = pending.pop()
            if node.is_error or node.is_missing:
                problems.append(f"{path}:{node.start_point[0] + 1}: does not parse as Dart")
            elif node.has_error:
                pending += node.children


def main(arguments):
    check_functions()
    check_calls()
    check_examples()
    try:
        check_syntax()
    except ImportError:
        print("flutter: skipped, without tree-sitter the syntax is not checked", file=sys.stderr)
    for problem in problems:
        print(f"flutter: {problem}", file=sys.stderr)
    if not problems:
        print("flutter: the bindings agree with countersign.h")
    return 1 if problems else 0
