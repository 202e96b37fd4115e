"""A schedule in the terminal: a table of operations, and units over cycles."""

from __future__ import annotations

from tile_core.sched import body_order, stage_orders
from tile_core.sched.document import Body
from tile_sched.buffers.rings import in_flight
from tile_sched.graph.bounds import bounds
from tile_sched.pressure import peak
from tile_sched.view.lanes import labels, lanes


def summary(body: Body) -> str:
    """One line: interval and what bounds it, stages, registers."""
    found = bounds(body.graph, body.model)
    schedule = body.schedule
    why = "" if found is None else f", at least {found.mii} ({found.reason})"
    kind = "" if body.graph.is_loop else ", straight-line"
    return (
        f"{body.name}: II {schedule.ii}{why}, {schedule.num_stages} stages, "
        f"{in_flight(body.graph, schedule)} iterations in flight, "
        f"{peak(body.graph, schedule)} registers{kind} [{body.scheduler}, {body.model.target}]"
    )


def table(body: Body) -> str:
    """Operations in the order in which the body issues them."""
    pairs, short = stage_orders(body.schedule), labels(body)
    rows = [("", "start", "stage", "order", "latency", "operation", "holds", "where")]
    for op in body_order(body.graph, body.schedule):
        node = body.graph.ops[op]
        uses = " ".join(f"{use.resource}:{use.cycles}" for use in node.footprint)
        rows.append((
            short[op], str(body.schedule.start[op]), str(pairs[op][0]), str(pairs[op][1]),
            str(node.latency), node.name, uses, node.where,
        ))  # fmt: skip
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    numbers = (1, 2, 3, 4)
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column in numbers else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def chart(body: Body, width: int = 72) -> str:
    """Units over the cycles of one interval, in `width` characters.

    A letter is the operation (see `table`) that holds the unit for most of a character's cycles;
    a dot says that it is free. Upper case is work of the iteration that begins here, lower case of
    an earlier one.
    """
    ii = body.schedule.ii
    columns = min(width, ii)
    found, short = lanes(body), labels(body)
    margin = max((len(name) for name in found), default=0)
    lines = [f"{'':{margin}}  0{f'{ii}':>{max(1, columns - 1)}}"]
    for name, bars in found.items():
        cells = []
        for column in range(columns):
            first, last = column * ii / columns, (column + 1) * ii / columns
            best, most = ".", 0.0
            for bar in bars:
                shared = min(last, bar.last) - max(first, bar.first)
                if shared > most:
                    text = short[bar.op][-1]
                    best, most = (text if bar.stage else text.upper()), shared
            cells.append(best)
        busy = sum(bar.last - bar.first for bar in bars)
        capacity = body.model.capacity(name)
        lines.append(f"{name:{margin}}  {''.join(cells)}  {100 * busy / ii / capacity:.0f} %")
    return "\n".join(lines)


def comparison(bodies: list[tuple[Body, Body]]) -> str:
    """Two schedulers, body by body: interval, stages, registers, cycles of a hundred iterations."""
    if not bodies:
        return ""
    first, second = bodies[0][0].scheduler, bodies[0][1].scheduler
    rows = [("body", "", first, second, "ratio")]
    for one, other in bodies:
        for name, left, right in (
            ("II", one.schedule.ii, other.schedule.ii),
            ("stages", one.schedule.num_stages, other.schedule.num_stages),
            ("registers", peak(one.graph, one.schedule), peak(other.graph, other.schedule)),
            ("cycles", predicted_cycles(one), predicted_cycles(other)),
        ):
            ratio = f"{right / left:.2f}" if left else "-"
            rows.append((one.name if name == "II" else "", name, str(left), str(right), ratio))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column > 1 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


#: Iterations that times are compared at where the number is not known.
ITERATIONS = 100


def predicted_cycles(body: Body) -> int:
    """Cycles of the whole loop: an interval per iteration, and the last one to its end."""
    schedule = body.schedule
    length = max(
        (at + max(op.latency, op.duration)
         for at, op in zip(schedule.start, body.graph.ops, strict=True)),
        default=0,
    )  # fmt: skip
    trips = body.graph.trip_count
    count = 1 if not body.graph.is_loop else ITERATIONS if trips is None else trips
    return 0 if not count else schedule.ii * (count - 1) + length
