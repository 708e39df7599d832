"""What a machine says about time in events alone: no objective counts it, and a result says so.

Comes in: a machine. Goes out: a sentence, or nothing.
"""

from __future__ import annotations

from ..machine.levels import Machine


def uncounted(machine: Machine) -> tuple[str, ...]:
    """A note that names what of the machine no objective counts; nothing if there is none."""
    memories = machine.memories
    named = {
        "setup": [memory.name for memory in memories if memory.setup] + [u.name for u in machine.units if u.setup],
        "prefetch": [memory.name for memory in memories if memory.prefetch],
        "release": [memory.name for memory in memories if memory.release == "start"],
        "through": [memory.name for memory in memories if memory.through],
    }
    found = ["startup"] if machine.startup else []
    found += [f"{key} of {', '.join(names)}" for key, names in named.items() if names]
    if not found:
        return ()
    room = "; of prefetch the room counts" if named["prefetch"] else ""
    return (f"machine {machine.name}, {'; '.join(found)}: counted in time in events alone, by no objective{room}",)
