#!/usr/bin/env python3
"""Breaks every line of given sources in many small ways, and says which of them no test notices.

    tests/sweep.py build PATH...    instruments a copy of HEAD (below PATH: crates/net/src), builds all tests
    tests/sweep.py cover            runs each test alone: what does it reach, how long does it take
    tests/sweep.py run [PATH...]    runs each mutant against tests that reach it
    tests/sweep.py all ID...        the same against every test that reaches it
    tests/sweep.py show [PATH...]   lists the mutants that survived

`cargo xtask mutants` breaks rules that somebody wrote down; this breaks what nobody thought of. One build has
all mutants: each is an `if` on a number from the environment, so trying one takes as long as its tests. What
survives is read by a person: much of it is equivalent, or concerns speed only, or what no user can see.

Needs the Python packages tree-sitter and tree-sitter-rust. Everything is below target/sweep. Settings, from
the environment: SWEEP_JOBS (2), SWEEP_TESTS (tests per mutant, 8), SWEEP_SECONDS (of the longest test, 3).
"""

import collections, concurrent.futures, json, os, pathlib, re, signal, subprocess, sys, time

HOME = pathlib.Path(__file__).resolve().parent.parent
WORK = HOME / "target" / "sweep"
TREE = WORK / "tree"
MUTANTS, REFUSED, TESTS, VERDICTS = (
    WORK / f for f in ("mutants.json", "refused.json", "tests.json", "verdicts.jsonl")
)
BINARIES = WORK / "binaries.json"
JOBS, TESTS_MAX, SECONDS_MAX = (
    int(os.environ.get(f"SWEEP_{n}", d)) for n, d in (("JOBS", 2), ("TESTS", 8), ("SECONDS", 3))
)


def pairs(text):
    """Each word and what comes in its place."""
    words = text.split()
    return dict(zip(words[::2], words[1::2], strict=True))


OPERATORS = pairs("+ - - + * / / * % / < <= > >= <= < >= > == != != == && || || && | & & | << >> >> <<")
# Either operand may be forgotten.
DROPS = set("+ - * / % && || | &".split())
METHODS = pairs(
    """max min any all first last is_some is_none saturating_sub saturating_add is_ok is_err wrapping_add
    wrapping_sub is_some_and is_none_or fetch_add fetch_sub min_by_key max_by_key starts_with ends_with
    checked_sub checked_add trim_start trim_end union intersection floor ceil"""
)
METHODS |= {other: name for name, other in METHODS.items()}
METHODS |= pairs("saturating_mul saturating_add div_ceil saturating_mul")
# What they are called on may be forgotten, or what they are given.
FORGOTTEN = set(
    """max min union difference intersection saturating_sub saturating_add saturating_mul rev skip take filter
    chain or or_else and clamp div_ceil is_multiple_of round""".split()
)
PRINTS = set("write writeln format format_args print println eprint eprintln panic".split())
PRINTED = {it + "!" for it in PRINTS}
# Parsed as calls of the same length, so that what they are given is seen.
AS_CALL = re.compile(rb"\b(" + "|".join(sorted(PRINTS)).encode() + rb")!\(")
CAPTURE = re.compile(r"(?<!\{)\{([a-z_]\w*)(?=[:}])")
# Not expressions of a running program, or patterns.
LEFT_ALONE = set(
    """const_item static_item macro_definition attribute_item inner_attribute_item type_arguments array_type
    enum_item struct_item union_item use_declaration match_pattern or_pattern tuple_pattern range_pattern
    const_block type_item where_clause type_parameters tuple_struct_pattern struct_pattern slice_pattern
    captured_pattern line_comment block_comment ref_pattern reference_pattern trait_bounds generic_type
    lifetime function_signature_item visibility_modifier parameters closure_parameters""".split()
)

PLACES = ("field_expression", "index_expression", "reference_expression", "arguments")

SWITCH = """
#[doc(hidden)]
#[allow(warnings)]
pub mod sweep_switch {
    extern crate std;
    use std::sync::atomic::{AtomicU32, AtomicU8, Ordering::Relaxed};
    static CHOSEN: AtomicU32 = AtomicU32::new(u32::MAX);
    static SEEN: [AtomicU8; COUNT] = [const { AtomicU8::new(0) }; COUNT];
    static NOTES: AtomicU8 = AtomicU8::new(0);
    #[cold]
    fn begin() -> u32 {
        NOTES.store(std::env::var_os("SWEEP_REACHED").is_some() as u8, Relaxed);
        let chosen = std::env::var("SWEEP_MUTANT").ok().and_then(|id| id.parse().ok()).unwrap_or(0);
        CHOSEN.store(chosen, Relaxed);
        chosen
    }
    #[inline(never)]
    pub fn on(id: u32) -> bool {
        let mut chosen = CHOSEN.load(Relaxed);
        if chosen == u32::MAX {
            chosen = begin();
        }
        if NOTES.load(Relaxed) == 1 && SEEN[id as usize].swap(1, Relaxed) == 0 {
            use std::io::Write;
            let path = std::env::var_os("SWEEP_REACHED").unwrap_or_default();
            if let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(path) {
                let _ = file.write_all(std::format!("{id}\\n").as_bytes());
            }
        }
        chosen == id
    }
}
"""


def load(path, default=None):
    return json.loads(path.read_text()) if path.exists() else default


class Source:
    """One file: its text with every mutant in it."""

    def __init__(self, path, parser, fields, refused, mutants):
        self.path, self.fields, self.refused, self.mutants = path, fields, refused, mutants
        self.bytes = subprocess.run(
            ["git", "show", f"HEAD:{path}"], cwd=HOME, capture_output=True, check=True
        ).stdout
        self.root = parser.parse(AS_CALL.sub(rb"\1_(", self.bytes)).root_node
        self.parameters = []

    def raw(self, node):
        return self.bytes[node.start_byte : node.end_byte].decode()

    def between(self, begin, end):
        return self.bytes[begin:end].decode()

    def number(self, node, kind, what):
        """A new mutant's number; None if the compiler has refused it before."""
        line, column = node.start_point[0] + 1, node.start_point[1] + 1
        key = f"{self.path}:{line}:{column}:{kind}"
        if key in self.refused:
            return None
        self.mutants.append(
            {"id": len(self.mutants) + 1, "key": key, "file": self.path, "line": line, "what": what}
        )
        return len(self.mutants)

    def wrap(self, node, kind, what, other, text):
        number = self.number(node, kind, what)
        if number is None:
            return text
        chosen = f"if crate::sweep_switch::on({number}) {{ {other} }} else {{ {text} }}"
        return f"/*<{number}*/({chosen})/*{number}>*/"

    def statement(self, node, kind, what, other, text):
        number = self.number(node, kind, what)
        if number is None:
            return text
        chosen = f"if crate::sweep_switch::on({number}) {{ {other} }} else {{ {text} }}"
        return f"/*<{number}*/{chosen}/*{number}>*/"

    def children(self, node):
        """The text of a node with that of its children replaced; tests are left as they are."""
        out, at, attributes = [], node.start_byte, ""
        for child in node.children:
            out.append(self.between(at, child.start_byte))
            at = child.end_byte
            if child.type == "attribute_item":
                attributes += self.raw(child)
                out.append(self.raw(child))
                continue
            is_test = re.search(r"cfg\([^)]*\b(test|loom)\b|#\[test\]", attributes)
            out.append(self.raw(child) if is_test else self.text(child, node))
            if child.type not in ("line_comment", "block_comment"):
                attributes = ""
        return "".join(out) + self.between(at, node.end_byte)

    def around(self, node, *names):
        """The text of a node with that of the named children replaced, and of no others."""
        out, at = "", node.start_byte
        for child in sorted(
            filter(None, (node.child_by_field_name(name) for name in names)),
            key=lambda it: it.start_byte,
        ):
            out += self.between(at, child.start_byte) + self.text(child, node)
            at = child.end_byte
        return out + self.between(at, node.end_byte)

    def siblings(self, name):
        """Fields of the same type in a structure that has a field of this name: the next in each."""
        found = []
        for fields in self.fields.get(name, []):
            others = [field for field in fields if field != name.removesuffix("()")]
            found += [field for field in (others[:2] if others else []) if field not in found]
        return found[:3]

    def text(self, node, parent=None):
        kind, raw = node.type, self.raw(node)
        if kind in LEFT_ALONE or not node.is_named:
            return raw
        return getattr(self, f"on_{kind}", self.on_other)(node, parent, raw)

    def on_other(self, node, parent, raw):
        return self.children(node)

    def on_function_item(self, node, parent, raw):
        modifiers = [self.raw(child) for child in node.children if child.type == "function_modifiers"]
        body = node.child_by_field_name("body")
        if body is None or any(re.search(r"\bconst\b", words) for words in modifiers):
            return raw
        kinds = collections.defaultdict(list)
        for child in node.child_by_field_name("parameters").children:
            pattern, of = (child.child_by_field_name(name) for name in ("pattern", "type"))
            if pattern is not None and of is not None and pattern.type == "identifier":
                kinds[self.raw(of)].append(self.raw(pattern))
        self.parameters.append(
            {name: names for names in kinds.values() if len(names) > 1 for name in names}
        )
        text = self.children(body)
        self.parameters.pop()
        returns, name = (
            node.child_by_field_name("return_type"),
            self.raw(node.child_by_field_name("name")),
        )
        answer = "return;" if returns is None else "return Default::default();"
        if returns is None or self.raw(returns) != "!" and "impl " not in self.raw(returns):
            number = self.number(node, "body", f"{name}: {answer}")
            if number is not None:
                text = (
                    f"{{/*<{number}*/if crate::sweep_switch::on({number}) {{ {answer} }}/*{number}>*/"
                    + text[1:]
                )
        return self.between(node.start_byte, body.start_byte) + text

    def on_let_declaration(self, node, parent, raw):
        return self.around(node, "value", "alternative")

    def on_closure_expression(self, node, parent, raw):
        return self.around(node, "body")

    def on_let_condition(self, node, parent, raw):
        return self.around(node, "value")

    def on_for_expression(self, node, parent, raw):
        return self.around(node, "value", "body")

    def on_type_cast_expression(self, node, parent, raw):
        return self.around(node, "value")

    def on_assignment_expression(self, node, parent, raw):
        return self.around(node, "right")

    def on_compound_assignment_expr(self, node, parent, raw):
        return self.around(node, "right")

    def on_array_expression(self, node, parent, raw):
        return raw if node.child_by_field_name("length") is not None else self.children(node)

    def on_match_arm(self, node, parent, raw):
        pattern, value = (node.child_by_field_name(name) for name in ("pattern", "value"))
        guard = pattern.child_by_field_name("condition")
        if guard is None or guard.type in ("let_condition", "let_chain"):
            return self.around(node, "value")
        between = self.between(guard.end_byte, value.start_byte)
        before = self.between(node.start_byte, guard.start_byte) + self.text(guard, node)
        return before + between + self.text(value, node) + self.between(value.end_byte, node.end_byte)

    def on_expression_statement(self, node, parent, raw):
        inner = node.children[0]
        if inner.type not in ("compound_assignment_expr", "assignment_expression", "call_expression"):
            return self.children(node)
        text = self.text(inner, node) + self.between(inner.end_byte, node.end_byte)
        place = inner.child_by_field_name("left")
        if inner.type == "call_expression":
            place = inner.child_by_field_name("function").child_by_field_name("value")
        if place is not None and place.type == "field_expression":
            field = place.child_by_field_name("field")
            for other in self.siblings(self.raw(field)):
                change = (
                    self.between(node.start_byte, field.start_byte)
                    + other
                    + self.between(field.end_byte, node.end_byte)
                )
                text = self.statement(node, f"place.{other}", f"of {other}: {raw[:60]}", change, text)
        return self.statement(node, "left out", f"left out: {raw[:60]}", "", text)

    def on_binary_expression(self, node, parent, raw):
        left, right = (node.child_by_field_name(name) for name in ("left", "right"))
        operator = self.raw(node.child_by_field_name("operator"))
        text = (
            self.text(left, node)
            + self.between(left.end_byte, right.start_byte)
            + self.text(right, node)
        )
        if re.search(r"\blet\b[^{]*=", raw.split("{")[0]):
            return text
        if operator in DROPS:
            text = self.wrap(
                node, "left of " + operator, f"only {self.raw(left)[:50]}", self.raw(left), text
            )
            text = self.wrap(
                node, "right of " + operator, f"only {self.raw(right)[:50]}", self.raw(right), text
            )
        if operator in OPERATORS:
            other = OPERATORS[operator]
            change = f"{self.raw(left)} {other} {self.raw(right)}"
            text = self.wrap(node, operator, f"{operator} -> {other}", change, text)
        return text

    def on_unary_expression(self, node, parent, raw):
        operator, inner = node.children[0].type, node.children[-1]
        text = operator + self.text(inner, node)
        if operator in "!-" and inner.type not in ("integer_literal", "float_literal"):
            return self.wrap(node, operator, f"without {operator}", self.raw(inner), text)
        return text

    def on_integer_literal(self, node, parent, raw):
        found = re.fullmatch(r"([0-9_]+)([iu](?:8|16|32|64|128|size))?", raw)
        if not found or parent is not None and parent.type == "field_expression":
            return raw
        value = int(found[1].replace("_", "")) + 1
        return self.wrap(node, "number", f"{raw} -> {value}", f"{value}{found[2] or ''}", raw)

    def on_boolean_literal(self, node, parent, raw):
        return self.wrap(node, "truth", f"not {raw}", "false" if raw == "true" else "true", raw)

    def on_string_literal(self, node, parent, raw):
        return (
            self.wrap(node, "text", f"another text: {raw[:50]}", raw[:-1] + '~"', raw)
            if raw.startswith('"')
            else raw
        )

    def on_print(self, node, function, arguments):
        """A macro that prints: its text, what is captured in it, what it is given."""
        given = [child for child in arguments.children if child.is_named]
        at = next((at for at, child in enumerate(given) if child.type == "string_literal"), None)
        name = self.between(function.start_byte, arguments.start_byte)
        if at is None or not self.raw(given[at]).startswith('"'):
            return name + self.children(arguments)
        form, others = given[at], given[at + 1 :]

        def instead(first, last, change):
            return self.between(node.start_byte, first) + change + self.between(last, node.end_byte)

        text, end = name + self.between(arguments.start_byte, form.end_byte), form.end_byte
        for child in others:
            text += self.between(end, child.start_byte) + self.text(child, arguments)
            end = child.end_byte
        text += self.between(end, node.end_byte)
        raw = self.raw(form)
        text = self.wrap(
            node,
            "printed",
            f"another text: {raw[:50]}",
            instead(form.end_byte - 1, form.end_byte - 1, "~"),
            text,
        )
        captures = list(CAPTURE.finditer(raw))
        for index, found in enumerate(captures):
            others_of = [it[1] for it in captures[index + 1 :] + captures[:index] if it[1] != found[1]]
            if others_of:
                change = raw[: found.start(1)] + others_of[0] + raw[found.end(1) :]
                text = self.wrap(
                    node,
                    f"captured.{index}",
                    f"prints {others_of[0]}, not {found[1]}",
                    instead(form.start_byte, form.end_byte, change),
                    text,
                )
        for index, (one, other) in enumerate(zip(others, others[1:])):
            text = self.wrap(
                node,
                f"printed.{index}",
                f"prints {self.raw(other)[:40]}, not {self.raw(one)[:40]}",
                instead(one.start_byte, one.end_byte, self.raw(other)),
                text,
            )
        return text

    def on_condition(self, node):
        condition = node.child_by_field_name("condition")
        text = self.text(condition, node)
        if condition.type in ("call_expression", "field_expression", "identifier", "macro_invocation"):
            text = self.wrap(condition, "not", "the contrary", "!" + self.raw(condition), text)
        out, at = self.between(node.start_byte, condition.start_byte) + text, condition.end_byte
        for child in node.children:
            if child.start_byte >= condition.end_byte:
                out += self.between(at, child.start_byte) + self.text(child, node)
                at = child.end_byte
        return out + self.between(at, node.end_byte)

    def on_if_expression(self, node, parent, raw):
        return self.on_condition(node)

    def on_while_expression(self, node, parent, raw):
        return self.on_condition(node)

    def on_field_initializer(self, node, parent, raw):
        field, value = (node.child_by_field_name(name) for name in ("field", "value"))
        text = self.wrap(
            value, "nothing", f"{self.raw(field)}: Default", "Default::default()", self.text(value, node)
        )
        return self.between(node.start_byte, value.start_byte) + text

    def on_shorthand_field_initializer(self, node, parent, raw):
        name = self.raw(node.children[-1])
        text = self.wrap(
            node, "nothing", f"{name}: Default", "Default::default()", self.identifier(node, name)
        )
        return f"{self.between(node.start_byte, node.children[-1].start_byte)}{name}: {text}"

    def on_call_expression(self, node, parent, raw):
        function, arguments = (node.child_by_field_name(name) for name in ("function", "arguments"))
        if self.raw(function).split("::")[-1] in PRINTED:
            return self.on_print(node, function, arguments)
        text = self.text(function, node) + self.children(arguments)
        given = [child for child in arguments.children if child.is_named]
        for index, (one, other) in enumerate(zip(given, given[1:])):
            if self.raw(one) != self.raw(other) and "closure" not in one.type + other.type:
                change = self.between(node.start_byte, one.start_byte) + self.raw(other)
                change += self.between(one.end_byte, other.start_byte) + self.raw(one)
                change += self.between(other.end_byte, node.end_byte)
                what = f"exchanged: {self.raw(one)[:30]} and {self.raw(other)[:30]}"
                text = self.wrap(node, f"exchanged.{index}", what, change, text)
        if function.type != "field_expression":
            return text
        if not given:
            for other in self.siblings(self.raw(function.child_by_field_name("field")) + "()"):
                field = function.child_by_field_name("field")
                change = self.between(node.start_byte, field.start_byte) + other + "()"
                text = self.wrap(node, f"method.{other}", f"{self.raw(field)} -> {other}", change, text)
        receiver, name = (self.raw(function.child_by_field_name(part)) for part in ("value", "field"))
        if name in FORGOTTEN:
            text = self.wrap(node, "without " + name, f"without .{name}(..)", receiver, text)
            if len(given) == 1:
                text = self.wrap(
                    node, "only of " + name, f"only what .{name}(..) is given", self.raw(given[0]), text
                )
        if name in METHODS:
            change = self.between(function.start_byte, function.child_by_field_name("field").start_byte)
            change += METHODS[name] + self.raw(arguments)
            text = self.wrap(node, name, f"{name} -> {METHODS[name]}", change, text)
        return text

    def on_field_expression(self, node, parent, raw):
        value, field = (node.child_by_field_name(name) for name in ("value", "field"))
        text = self.text(value, node) + self.between(value.end_byte, node.end_byte)
        if parent is None or parent.type == "call_expression":
            return text
        # What is looked at through a reference has to stay a place.
        is_place = parent.type in PLACES
        for other in self.siblings(self.raw(field)):
            change = self.between(node.start_byte, field.start_byte) + other
            kind, what = f"field.{other}", f"{self.raw(field)} -> {other}"
            if is_place:
                text = self.wrap(node, kind, what, "&" + change, "&" + text)
                text = f"(*{text})" if text[0] != "&" else text[1:]
            else:
                text = self.wrap(node, kind, what, change, text)
        return text

    def identifier(self, node, name):
        names = self.parameters[-1].get(name, []) if self.parameters else []
        text = name
        for other in [it for it in names if it != name][:2]:
            text = self.wrap(node, f"parameter.{other}", f"{name} -> {other}", other, text)
        return text

    def on_identifier(self, node, parent, raw):
        is_value = parent is not None and parent.type in (
            "arguments",
            "binary_expression",
            "field_initializer",
            "type_cast_expression",
        )
        return self.identifier(node, raw) if is_value else raw

    def on_reference_expression(self, node, parent, raw):
        value = node.child_by_field_name("value")
        return raw if value.type.endswith("_literal") else self.around(node, "value")


def sources(paths):
    """The files below `paths`, without tests and roots of crates."""
    listed = subprocess.run(
        ["git", "ls-files", *paths], cwd=HOME, capture_output=True, text=True, check=True
    ).stdout.split()
    parts = ("test", "tests", "models", "benches")
    return [
        it
        for it in listed
        if it.endswith(".rs")
        and not it.endswith("/lib.rs")
        and not any(part in parts for part in pathlib.Path(it).with_suffix("").parts)
    ]


def fields_of(files, parser):
    """Of each name of a field (or method()): those of the same type beside it, wherever it is one."""
    found = collections.defaultdict(list)

    def look(node, text):
        if node.type == "field_declaration_list":
            kinds = collections.defaultdict(list)
            for child in node.children:
                if child.type == "field_declaration":
                    name, of = (child.child_by_field_name(part) for part in ("name", "type"))
                    kinds[text[of.start_byte : of.end_byte]].append(
                        text[name.start_byte : name.end_byte].decode()
                    )
            for names in kinds.values():
                for at, name in enumerate(names):
                    found[name].append(names[at:] + names[:at])
        if node.type == "impl_item":
            kinds = collections.defaultdict(list)
            for child in (
                node.child_by_field_name("body").children if node.child_by_field_name("body") else ()
            ):
                if child.type == "function_item" and child.child_by_field_name("return_type"):
                    name, given, of = (
                        text[it.start_byte : it.end_byte].decode()
                        for it in map(child.child_by_field_name, ("name", "parameters", "return_type"))
                    )
                    if given in ("(self)", "(&self)"):
                        kinds[of].append(name)
            for names in kinds.values():
                for at, name in enumerate(names):
                    found[name + "()"].append(names[at:] + names[:at])
        for child in node.children:
            look(child, text)

    for path in files:
        text = (HOME / path).read_bytes()
        look(parser.parse(text).root_node, text)
    return found


def instrument(files):
    """Writes the files with all mutants into the copy; returns how many there are."""
    import tree_sitter, tree_sitter_rust

    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language()))
    refused, mutants = set(load(REFUSED, [])), []
    crates = sorted({"/".join(path.split("/")[:2]) for path in files})
    fields = {crate: fields_of(sources([crate]), parser) for crate in crates}
    for path in files:
        source = Source(path, parser, fields["/".join(path.split("/")[:2])], refused, mutants)
        (TREE / path).write_text(source.text(source.root))
    for crate in crates:
        for root in (TREE / crate / "src" / name for name in ("lib.rs", "main.rs")):
            if root.exists():
                text = root.read_text().split(
                    "\n#[doc(hidden)]\n#[allow(warnings)]\npub mod sweep_switch"
                )[0]
                root.write_text(text + SWITCH.replace("COUNT", str(len(mutants) + 1)))
    MUTANTS.write_text(json.dumps(mutants))
    return len(mutants)


def spans(message):
    for span in sorted(message["spans"], key=lambda it: not it["is_primary"]):
        while span:
            yield span
            span = (span.get("expansion") or {}).get("span")
    for child in message["children"]:
        yield from spans(child)


def refuse(errors):
    """Marks the mutants that do not compile: the innermost around an error, or all of its line."""
    by_id = {it["id"]: it["key"] for it in load(MUTANTS)}
    refused, regions = set(load(REFUSED, [])), {}
    before = len(refused)

    def marked(name):
        if name not in regions:
            path, begun, found = TREE / name, {}, []
            text = path.read_bytes() if path.exists() else b""
            for mark in re.finditer(rb"/\*<(\d+)\*/|/\*(\d+)>\*/", text):
                if mark[1]:
                    begun[int(mark[1])] = mark.start()
                else:
                    found.append((begun.pop(int(mark[2])), mark.end(), int(mark[2])))
            regions[name] = (text, found)
        return regions[name]

    for error in errors:
        around = []
        for span in spans(error):
            _, found = marked(span["file_name"])
            begin, end = span["byte_start"], span["byte_end"]
            around = [
                (last - first, number) for first, last, number in found if first <= begin and end <= last
            ]
            if around:
                refused.add(by_id[min(around)[1]])
                break
        if not around:
            for span in spans(error):
                text, found = marked(span["file_name"])
                first = text.rfind(b"\n", 0, span["byte_start"]) + 1
                last = text.find(b"\n", span["byte_end"]) % (len(text) + 1)
                near = {by_id[number] for begin, end, number in found if begin < last and end > first}
                if near:
                    refused |= near
                    break
    REFUSED.write_text(json.dumps(sorted(refused)))
    return len(refused) - before


def cargo(*words):
    environment = os.environ | {
        "RUSTFLAGS": "-Awarnings --cap-lints allow",
        "CARGO_INCREMENTAL": "0",
        "CARGO_TARGET_DIR": str(WORK / "target"),
    }
    command = ["cargo", *words, "--locked", "--message-format=json"]
    ran = subprocess.run(
        command, cwd=TREE, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    errors = [
        it["message"]
        for it in lines
        if it.get("reason") == "compiler-message" and it["message"]["level"] == "error"
    ]
    return ran.returncode, lines, errors


def build(paths):
    files = sources(paths)
    if not files:
        sys.exit(f"sweep: no sources in {' '.join(paths) or 'nothing'}; name folders of crates")
    if not TREE.exists():
        WORK.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "worktree", "prune"], cwd=HOME, check=True)
        subprocess.run(
            ["git", "worktree", "add", "-q", "--detach", str(TREE), "HEAD"], cwd=HOME, check=True
        )
    subprocess.run(
        [
            "git",
            "checkout",
            "-q",
            "--force",
            "--detach",
            subprocess.run(
                ["git", "rev-parse", "HEAD"], cwd=HOME, capture_output=True, text=True
            ).stdout.strip(),
        ],
        cwd=TREE,
        check=True,
    )
    REFUSED.unlink(missing_ok=True)
    packages = [
        word
        for crate in sorted((TREE / "crates").iterdir())
        if (crate / "Cargo.toml").exists()
        for word in ("-p", re.search(r'name = "(.*)"', (crate / "Cargo.toml").read_text())[1])
    ]
    while True:
        print(f"{instrument(files)} mutants", flush=True)
        code, _, errors = cargo("check", "--keep-going", "--tests", "--bins", *packages)
        if code == 0:
            break
        if refuse(errors) == 0:
            sys.exit(
                "sweep: the copy does not compile: "
                + (errors[0]["rendered"] if errors else "see cargo check in " + str(TREE))
            )
    code, lines, _ = cargo("build", "--tests", "--bins", *packages)
    if code != 0:
        sys.exit(f"sweep: the copy does not build; see cargo build --tests in {TREE}")
    found = [
        (it["package_id"], it["executable"])
        for it in lines
        if it.get("reason") == "compiler-artifact" and it.get("executable") and it["profile"]["test"]
    ]
    BINARIES.write_text(
        json.dumps(
            [
                (re.search(r"crates/([^#/]+)", package)[1], path)
                for package, path in found
                if "crates/" in package
            ]
        )
    )
    for path in (TESTS, VERDICTS):
        path.unlink(missing_ok=True)


def run_tests(binary, crate, names, seconds, **settings):
    home = TREE / "crates" / crate
    environment = os.environ | {
        "RUST_BACKTRACE": "0",
        "INSTA_UPDATE": "no",
        "CARGO_MANIFEST_DIR": str(home),
    }
    libraries = (
        subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True).stdout.strip()
        + "/lib"
    )
    environment |= {"LD_LIBRARY_PATH": f"{WORK}/target/debug/deps:{libraries}"} | settings
    begun = time.time()
    process = subprocess.Popen(
        [binary, "--exact", *names, "--test-threads=1"],
        cwd=home,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        failed = process.wait(timeout=seconds) != 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        failed = True
    return failed, time.time() - begun


def cover():
    def one(test):
        crate, binary, name = test
        notes = WORK / f"reached-{abs(hash((binary, name)))}"
        failed, seconds = run_tests(binary, crate, [name], 60, SWEEP_REACHED=str(notes))
        if failed and seconds < 60:
            # What fails beside another test may pass alone.
            failed, seconds = run_tests(binary, crate, [name], 60, SWEEP_REACHED=str(notes))
        reached = sorted({int(line) for line in notes.read_text().split()}) if notes.exists() else []
        notes.unlink(missing_ok=True)
        return {
            "crate": crate,
            "binary": binary,
            "name": name,
            "failed": failed,
            "seconds": seconds,
            "reached": reached,
        }

    tests = []
    for crate, binary in load(BINARIES):
        listed = subprocess.run(
            [binary, "--list", "--format", "terse"],
            cwd=TREE / "crates" / crate,
            capture_output=True,
            text=True,
        )
        tests += [
            (crate, binary, line[:-6]) for line in listed.stdout.splitlines() if line.endswith(": test")
        ]
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        found = list(pool.map(one, tests))
    TESTS.write_text(json.dumps(found))
    left_out = [it["name"] for it in found if it["failed"]]
    print(f"{len(found)} tests; failed or longer than a minute: {' '.join(left_out) or 'none'}")


def verdict(mutant, tests, count, seconds):
    reaching = [it for it in tests if mutant["id"] in it["reached"]]
    if not reaching:
        return "unreached"
    crate = mutant["file"].split("/")[1]
    near = sorted(
        (it for it in reaching if it["seconds"] <= seconds),
        key=lambda it: (it["crate"] != crate, it["seconds"] * (50 + len(it["reached"]))),
    )[:count]
    while near:
        group = [it for it in near if it["binary"] == near[0]["binary"]][:4]
        near = [it for it in near if it not in group]
        limit = 8 + 4 * sum(it["seconds"] for it in group)
        names = [it["name"] for it in group]
        if run_tests(
            group[0]["binary"], group[0]["crate"], names, limit, SWEEP_MUTANT=str(mutant["id"])
        )[0]:
            return "killed"
    return "survived"


def run(chosen, count, seconds):
    tests = [it | {"reached": set(it["reached"])} for it in load(TESTS) if not it["failed"]]
    counts, begun = collections.Counter(), time.time()
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool, VERDICTS.open("a") as out:
        for mutant, found in zip(
            chosen, pool.map(lambda it: verdict(it, tests, count, seconds), chosen)
        ):
            out.write(json.dumps(mutant | {"verdict": found}) + "\n")
            counts[found] += 1
            if counts.total() % 250 == 0 or counts.total() == len(chosen):
                out.flush()
                print(
                    f"{counts.total()} of {len(chosen)}: {dict(counts)} ({time.time() - begun:.0f} s)",
                    flush=True,
                )


def verdicts():
    lines = VERDICTS.read_text().splitlines() if VERDICTS.exists() else []
    return {it["key"]: it for it in map(json.loads, lines)}


def is_below(found, paths):
    return not paths or any(found["file"].startswith(path) for path in paths)


def show(paths):
    for found in sorted(verdicts().values(), key=lambda it: (it["file"], it["line"])):
        if found["verdict"] != "killed" and is_below(found, paths):
            line = (HOME / found["file"]).read_text().splitlines()[found["line"] - 1].strip()
            place = f"{found['id']} {found['file']}:{found['line']}"
            print(f"{place} {found['verdict']}: {found['what']} | {line[:90]}")


def main():
    command, words = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("", [])
    if command == "build" and words:
        build(words)
    elif command == "cover":
        cover()
    elif command == "run":
        known = verdicts()
        wanted = [it for it in load(MUTANTS) if it["key"] not in known and is_below(it, words)]
        run(wanted, TESTS_MAX, SECONDS_MAX)
    elif command == "all" and words:
        run([it for it in load(MUTANTS) if str(it["id"]) in words], 10_000, 60)
    elif command == "show":
        show(words)
    else:
        sys.exit(__doc__)


main()
