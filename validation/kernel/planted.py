#!/usr/bin/env python3
"""Shows that the proofs can fail: plants a bug in copies of the programs and expects it found.

    planted.py [--kernel SERIES] [--sequences N] [--only WORD]

For each bug: the C sources are copied and changed in one place, the guest program is built from
the copy (SHORTLANE_BPF_SOURCE), and a virtual machine runs the proof, which must fail by a
difference between kernel and core; or, of a program that the verifier refuses, by the name of a
file that has the verifier's log. Fails itself if a bug is not found.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SOURCES = ROOT / "crates/engine/bpf"

# Of the program that marks packets, which has a proof of its own.
MARKS = "marks"
# What is broken, the discipline to look at, the file, the line as it is and as it becomes.
BUGS = [
    (
        "one packet too many is short",
        "efd",
        "accounting.h",
        "? cost : 0) < q->config->threshold;",
        "? cost : 0) <= q->config->threshold;",
    ),
    (
        "a full queue pushes out the head of the long lane, not its tail",
        "efd",
        "lanes.h",
        "slot = slot_at(q, SL_LOW, low->tail - 1);\n"
        "\tif (!slot)\n\t\treturn false;\n\tlow->tail--;",
        "slot = slot_at(q, SL_LOW, low->head);\n\tif (!slot)\n\t\treturn false;\n\tlow->head++;",
    ),
    (
        "the entry of a flow whose last packet was pushed out stays",
        "efd",
        "lanes.h",
        "\tleft(q, slot->flow);\n\trecord(q, SL_EVENT_PUSHED_OUT",
        "\trecord(q, SL_EVENT_PUSHED_OUT",
    ),
    (
        "a first fragment is taken for a whole packet",
        "sb-ko",
        "headers.h",
        "(u32)ip[6] << 8 | ip[7]) & 0x3fff;",
        "(u32)ip[6] << 8 | ip[7]) & 0x1fff;",
    ),
    (
        "a flow is new up to twice the age",
        "fq-lanes",
        "fq_lanes/rules.h",
        "#define NEW_BELOW 3000",
        "#define NEW_BELOW 6000",
    ),
    (
        "of idle time an eighth is credited",
        "fq-lanes",
        "fq_lanes/idle.h",
        "(u64)idle->last << FQL_BITS);",
        "(u64)idle->last << FQL_BITS) >> 3;",
    ),
    (
        "the host with most bytes makes room, whatever the limit counts",
        "fq-lanes",
        "fq_lanes/queue.h",
        "\treturn in_unit_of_limit(&fq->q, host->bytes, host->segments);\n",
        "\treturn host->bytes;\n",
    ),
    (
        "a thin flow loses its last packet to another host",
        "fq-lanes",
        "fq_lanes/queue.h",
        "(is_thin(fattest->bytes) && is_short(flow_at(fq, fattest->index)))",
        "false",
    ),
    (
        "a flow loses its last packet while others of its host have more",
        "fq-lanes",
        "fq_lanes/queue.h",
        "\t\t\tif (!is_short(flow))\n\t\t\t\treturn index;\n",
        "\t\t\tif (!is_short(flow))\n\t\t\t\treturn FQL_NONE;\n",
    ),
    (
        "a host that becomes backlogged has a whole quantum",
        "fq-lanes",
        "fq_lanes/stage.h",
        "if (of == OF_FLOWS || member->deficit <= 0)",
        "if (true)",
    ),
    (
        "marks: what short flows send does not count for their share",
        MARKS,
        "marks.bpf.c",
        "\tstate->class_until = now + filled;\n",
        "\tstate->class_until = filled;\n",
    ),
    (
        "marks: a long flow that was idle stays long",
        MARKS,
        "marks.bpf.c",
        "\t\tflow->is_long = 0;\n",
        "",
    ),
    (
        "marks: a first fragment is taken for a whole packet",
        MARKS,
        "marks.bpf.c",
        "two[3] & bpf_htons(0x3fff)",
        "two[3] & bpf_htons(0x1fff)",
    ),
    (
        "a program that the kernel's verifier refuses",
        "efd",
        "lanes.h",
        "slot = slot_at(q, SL_LOW, low->tail - 1);\n"
        "\tif (!slot)\n\t\treturn false;\n\tlow->tail--;",
        "slot = slot_at(q, SL_LOW, low->tail - 1);\n\tlow->tail--;",
    ),
]
# What the proof says that has found one: a difference, or where the verifier's log is.
SIGNS = (
    "kernel:",
    "flow entries",
    # Of marks: a packet in another class; other flows.
    " instead of ",
    " flows in the table, ",
    "refused the qdisc: its log is in",
)
# The proof, and whether the log that it may name is there.
PROOF = """kernel-guest {} --sequences {} && exit
grep -h processed /tmp/shortlane-verifier-*.log >&2
exit 1"""


def plant(bug: tuple[str, ...], into: Path) -> None:
    """A copy of the sources with the bug."""
    what, _, name, right, wrong = bug
    shutil.copytree(SOURCES, into, dirs_exist_ok=True)
    path = into / name
    text = path.read_text()
    if text.count(right) != 1:
        sys.exit(f"planted.py: '{what}': its line stands {text.count(right)} times in {name}")
    path.write_text(text.replace(right, wrong))


def build(sources: Path | None, into: Path) -> None:
    """The guest program, built from these sources."""
    environment = {**os.environ}
    if sources:
        environment["SHORTLANE_BPF_SOURCE"] = str(sources)
    command = ["cargo", "build", "-q", "--workspace", "--bin", "kernel-guest"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    shutil.copy2(ROOT / "target/debug/kernel-guest", into)


def prove(program: Path, discipline: str, options: argparse.Namespace) -> tuple[str, bool]:
    """What a machine says that runs the proof, and whether it passed."""
    command = [sys.executable, HERE / "vm.py", "run", "--kernel", options.kernel]
    command += ["--program", program, "--timeout", "600", "--", "sh", "-c"]
    proof = "proof-marks" if discipline == MARKS else f"proof --discipline {discipline}"
    command += [PROOF.format(proof, options.sequences)]
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    return done.stdout.decode(errors="replace"), done.returncode == 0


def main() -> None:
    """Every bug, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", default="newest", help="which one to boot; see vm.py list")
    parser.add_argument("--sequences", type=int, default=100, help="most to try for each bug")
    parser.add_argument("--only", default="", help="a word of the bugs to plant")
    options = parser.parse_args()
    bugs = [bug for bug in BUGS if options.only in bug[0]]
    if not bugs:
        parser.error(f"no bug has '{options.only}' in its name")
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        program = scratch / "kernel-guest"
        try:
            for number, bug in enumerate(bugs):
                sources = scratch / f"bpf{number}"
                plant(bug, sources)
                build(sources, program)
                said, passed = prove(program, bug[1], options)
                lines = [line for line in said.splitlines() if "FAILED" in line]
                found = not passed and any(sign in line for line in lines for sign in SIGNS)
                kept = any("processed" in line for line in said.splitlines())
                found = found and kept == any(SIGNS[-1] in line for line in lines)
                print(f"{'found' if found else 'NOT FOUND'}: {bug[0]}", flush=True)
                print("\n".join(f"    {line[:600]}" for line in lines or said.splitlines()[-5:]))
                if not found:
                    missed.append(bug[0])
        finally:
            # What is in the target directory is to be the real program again.
            build(None, program)
    if missed:
        sys.exit(f"planted.py: not found: {'; '.join(missed)}")


if __name__ == "__main__":
    main()
