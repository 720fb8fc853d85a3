#!/usr/bin/env python3
"""Explicit-state model of the stall protocol of docs/design/PROTOCOL.md,
sections 2 to 5, sequentially consistent, one atomic step per lock-held section.

Lanes 0 (X) and 1 (M) may freeze for ever at ANY step (a long callback, or taken off their CPU outside a
lock); lane 2 (W) keeps turning. A foreign thread F arms E on X's base and re-arms A once, at any moment.
Safety  : no timer concurrent with itself; arms == completed + running + pending, for every timer, always.
Liveness: from EVERY reachable state, if only W goes on, every due timer runs (except one whose own
callback is frozen).
Usage: stall_model.py [small] [walk=N] [LIMIT of states] [mutant ...]; `small` can be exhausted.
Mutants: no_revoke private_list remote_held no_is_idle exit_unlocked no_self_check no_blocked_retry.
"""

import sys

SMALL = "small" in sys.argv[1:]
from collections import deque

T = 2 if SMALL else 3
GM = 2 if SMALL else 8
A, B, C, D, E = range(5)
NT = 5
NAMES = "ABCDE"
MUT = set()


# state: (now, bases, tms, lanes, arms, done, fpc)
# base: (wheel tuple of sorted (t,due), expired tuple, runner or None (lane,gen), gen, is_idle)
# tm  : (idle, ev or None, remote lane or None)
# lane: (pc, b, g, t, priv); record = running timer (t, b) when pc is C1 or C2; priv = own list (mutant)
def nxt(base):
    w, x, r, g, i = base
    if x:
        return 0
    return min((d for _, d in w), default=None)


def recs(S):
    return [(i, l[3], l[1]) for i, l in enumerate(S[3]) if l[0] in ("C1", "C2")]


def setb(S, b, base):
    L = list(S[1])
    L[b] = base
    return (S[0], tuple(L)) + S[2:]


def sett(S, b, tm):
    L = list(S[2])
    L[b] = tm
    return S[:2] + (tuple(L),) + S[3:]


def setl(S, i, l):
    L = list(S[3])
    L[i] = l
    return S[:3] + (tuple(L),) + S[4:]


def publish(S, b):
    idle, ev, rem = S[2][b]
    if not idle:
        return S
    if "remote_held" in MUT and rem is not None:
        return S  # kernel: handler re-publishes at its end
    return sett(S, b, (idle, nxt(S[1][b]), rem))


def collect(S, b):
    w, x, r, g, i = S[1][b]
    now = S[0]
    due = tuple(t for t, d in sorted(w, key=lambda p: (p[1], p[0])) if d <= now)
    return setb(S, b, (tuple(p for p in w if p[1] > now), x + due, r, g, i))


def arm(S, i, u, due):
    """Arms u from lane i (None: foreign thread): on the base where it runs, else its own (foreign: X)."""
    tb = i if i is not None else 0
    for l, t, b in recs(S):
        if t == u:
            tb = b
    pend = False
    for b in range(3):
        w, x, r, g, idl = S[1][b]
        if any(t == u for t, _ in w) or u in x:
            pend = True
            S = setb(S, b, (tuple(p for p in w if p[0] != u), tuple(t for t in x if t != u), r, g, idl))
    w, x, r, g, idl = S[1][tb]
    S = setb(S, tb, (tuple(sorted(w + ((u, due),))), x, r, g, idl))
    if not pend:
        a = list(S[4])
        a[u] += 1
        S = S[:4] + (tuple(a),) + S[5:]
    if idl:
        S = publish(S, tb)
    return S


def take(S, i, b):
    """become runner of base b if nobody is and something is expired"""
    w, x, r, g, idl = S[1][b]
    if x and r is None:
        g = (g + 1) % GM
        return setb(S, b, (w, x, (i, g), g, idl)), g
    return S, None


def stuck_overdue(S, y):
    now = S[0]
    w, x, r, g, idl = S[1][y]
    if x or any(d <= now for _, d in w):
        return True
    return any(S[1][b][2] is not None and S[1][b][2][0] == y and S[1][b][1] for b in range(3)) or any(
        S[2][b][2] == y for b in range(3)
    )


def revoke(S, y):
    if "no_revoke" in MUT:
        return S
    for b in range(3):
        w, x, r, g, idl = S[1][b]
        if r is not None and r[0] == y:
            S = setb(S, b, (w, x, None, g, idl))
            S = publish(S, b)
    return S


def mark(S, y):
    idle, ev, rem = S[2][y]
    if not idle:
        S = sett(S, y, (True, None, rem))
        if "no_is_idle" not in MUT:
            w, x, r, g, _ = S[1][y]
            S = setb(S, y, (w, x, r, g, True))
        S = revoke(S, y)
        S = publish(S, y)
    else:
        S = revoke(S, y)
    return S


def step(S, i, healthy_only=False):
    """successors of lane i's next step; healthy_only: W alone, deterministic"""
    now, bases, tms, lanes, arms, done, fpc = S
    pc, b, g, t, priv = lanes[i]
    out = []
    if pc == "T0":
        if tms[i][0]:
            S2 = sett(S, i, (False, None, tms[i][2]))
            if "exit_unlocked" in MUT:
                out.append(setl(S2, i, ("T0b", 0, 0, 0, ())))
            else:
                w, x, r, gg, _ = S2[1][i]
                out.append(setl(setb(S2, i, (w, x, r, gg, False)), i, ("T1", 0, 0, 0, ())))
            if not healthy_only:
                out.append(setl(S, i, ("T1", 0, 0, 0, ())))  # relaxed load missed the mark this turn
        else:
            out.append(setl(S, i, ("T1", 0, 0, 0, ())))
    elif pc == "T0b":
        w, x, r, gg, _ = S[1][i]
        out.append(setl(setb(S, i, (w, x, r, gg, False)), i, ("T1", 0, 0, 0, ())))
    elif pc == "T1":
        S2 = collect(S, i)
        S2, gg = take(S2, i, i)
        out.append(setl(S2, i, ("P", i, gg, 0, ()) if gg is not None else ("W0", 0, 0, 0, ())))
    elif pc == "P":
        w, x, r, gen, idl = bases[b]
        if "private_list" in MUT and not priv and r == (i, g):
            priv = x
            x = ()
            S = setb(S, b, (w, x, r, gen, idl))
        if "private_list" in MUT:
            if not priv:
                S2 = S if r != (i, g) else setb(S, b, (w, x, None, gen, idl))
                out.append(setl(S2, i, ("W0", 0, 0, 0, ())))
            else:
                out.append(setl(S, i, ("C1", b, g, priv[0], priv[1:])))
        elif r != (i, g):
            out.append(setl(S, i, ("W0", 0, 0, 0, ())))
        else:
            busy = {tt for _, tt, _ in recs(S)}
            c = [u for u in x if u not in busy or "no_self_check" in MUT]
            if not c:
                S2 = setb(S, b, (w, x, None, gen, idl))
                if "remote_held" in MUT and S2[2][b][2] == i:
                    S2 = publish(sett(S2, b, (S2[2][b][0], None, None)), b)
                out.append(setl(S2, i, ("W0", 0, 0, 0, ())))
            else:
                u = c[0]
                xs = tuple(v for v in x if v != u)
                out.append(setl(setb(S, b, (w, xs, r, gen, idl)), i, ("C1", b, g, u, ())))
    elif pc == "C1":
        S2 = S
        if t == A and done[A] == 0:
            S2 = arm(S2, i, A, now + 1)
            S2 = arm(S2, i, C, now + 1)
        out.append(setl(S2, i, ("C2", b, g, t, priv)))
    elif pc == "C2":
        d = list(done)
        d[t] += 1
        S2 = setl(S[:5] + (tuple(d),) + S[6:], i, ("P", b, g, 0, priv))
        w, x, r, gen, idl = S2[1][b]
        if "no_gen" in MUT:
            S2 = setb(S2, b, (w, x, (i, gen) if r is None or True else r, gen, idl))
            S2 = setl(S2, i, ("P", b, gen, 0, priv))
        elif t in x and r is None and "no_blocked_retry" not in MUT:
            S2, gg = take(S2, i, b)
            S2 = setl(S2, i, ("P", b, gg, 0, priv))
        out.append(S2)
    elif pc == "W0":
        S2 = setl(S, i, ("R0", 0, 0, 0, ()))
        if healthy_only:
            for y in range(3):
                if y != i and stuck_overdue(S2, y):
                    S2 = mark(S2, y)
            out.append(S2)
        else:
            out.append(S2)
            for y in range(3):
                if y != i and stuck_overdue(S2, y):
                    out.append(mark(S2, y))
    elif pc == "R0":
        did = False
        for y in range(3):
            idle, ev, rem = S[2][y]
            if y != i and idle and ev is not None and ev <= now:
                if "remote_held" in MUT:
                    if rem is not None:
                        continue
                    S2 = sett(S, y, (idle, None, i))
                    S2 = collect(S2, y)
                    S2, gg = take(S2, i, y)
                    if gg is None:
                        S2 = publish(sett(S2, y, (idle, None, None)), y)
                else:
                    S2 = collect(S, y)
                    S2, gg = take(S2, i, y)
                    # republish BEFORE running: expired ones now belong to the runner token
                    w, x, r, gen, idl = S2[1][y]
                    nx = min((d for _, d in w), default=None) if r is not None else nxt(S2[1][y])
                    busy = {tt for _, tt, _ in recs(S2)}
                    S2 = sett(S2, y, (idle, nx, rem))
                out.append(setl(S2, i, ("P", y, gg, 0, ()) if gg is not None else ("T0", 0, 0, 0, ())))
                did = True
                if healthy_only:
                    break
        if not did:
            out.append(setl(S, i, ("T0", 0, 0, 0, ())))
    return out


def check(S):
    now, bases, tms, lanes, arms, done, fpc = S
    rc = [t for _, t, _ in recs(S)]
    if len(rc) != len(set(rc)):
        return "timer concurrent with itself"
    for u in range(NT):
        p = (
            sum(1 for b in range(3) for q in bases[b][0] if q[0] == u)
            + sum(b[1].count(u) for b in bases)
            + sum(l[4].count(u) for l in lanes)
        )
        if p > 1:
            return f"{NAMES[u]} queued twice"
        if arms[u] != done[u] + rc.count(u) + p:
            counts = f"arms {arms[u]} done {done[u]} running {rc.count(u)} pending {p}"
            return f"{NAMES[u]} lost or run twice: {counts}"
    return None


ok = set()


def live(S):
    """only W moves (and time)"""
    path = []
    seen = set()
    for turn in range(400):
        if S in ok:
            break
        path.append(S)
        if S in seen and S[0] >= T + 2:
            return quiet(S, path)
        seen.add(S)
        if S[3][2][0] == "T0" and S[0] < T + 2:
            S = (S[0] + 1,) + S[1:]
        S = step(S, 2, True)[0]
    ok.update(path)
    return None


def quiet(S, path):
    now, bases, *_ = S
    frozen = {t for _, t, _ in recs(S)}
    for b in range(3):
        for u in [t for t, d in bases[b][0] if d <= now] + list(bases[b][1]):
            if u not in frozen:
                return f"{NAMES[u]} due on base {b} and nobody will run it"
    for i, l in enumerate(S[3]):
        for u in l[4]:
            return f"{NAMES[u]} stranded on the stack of lane {i}"
    ok.update(path)
    return None


def main():
    base = lambda w: (tuple(w), (), None, 0, False)
    init = (
        0,
        (base([(A, 1), (B, 1)]), base([] if SMALL else [(D, 1)]), base([])),
        ((False, None, None),) * 3,
        (("T0", 0, 0, 0, ()),) * 3,
        (1, 1, 0, 0 if SMALL else 1, 0),
        (0,) * 5,
        0,
    )
    seen = {init: None}
    q = deque([init])
    n = 0
    while q:
        S = q.popleft()
        n += 1
        e = check(S) or live(S)
        if e:
            tr = []
            s = S
            while s is not None:
                tr.append(s)
                s = seen[s]
            print(f"VIOLATION after {n} states: {e}; trace length {len(tr)}")
            for s in tr[::-1][-14:]:
                print(
                    "  now",
                    s[0],
                    "lanes",
                    [l[:4] for l in s[3]],
                    "bases",
                    [(b[0], b[1], b[2], b[4]) for b in s[1]],
                    "tm",
                    s[2],
                )
            return 1
        succ = []
        for i in range(3):
            succ += step(S, i)
        if S[0] < T:
            succ.append((S[0] + 1,) + S[1:])
        if S[6] == 0 and not SMALL:
            succ.append(arm(S, None, E, S[0] + 1)[:6] + (1,))
        if S[6] == 1 and not SMALL:
            succ.append(arm(S, None, A, S[0])[:6] + (2,))
        for s in succ:
            if sum(s[5]) > 8:
                continue
            if s not in seen:
                seen[s] = S
                q.append(s)
        if n >= LIMIT:
            print(f"stopped at {n} states, no violation, frontier {len(q)}")
            return 0
    print(f"exhausted: {n} states, no violation")
    return 0


def walk(n, depth, seed):
    import random

    rnd = random.Random(seed)
    base = lambda w: (tuple(w), (), None, 0, False)
    total = 0
    for k in range(n):
        S = (
            0,
            (base([(A, 1), (B, 1)]), base([] if SMALL else [(D, 1)]), base([])),
            ((False, None, None),) * 3,
            (("T0", 0, 0, 0, ()),) * 3,
            (1, 1, 0, 1, 0),
            (0,) * 5,
            0,
        )
        tr = [S]
        w = [rnd.choice((1, 1, 1, 8)) for _ in range(3)]  # some walks favour one lane: long freezes
        for _ in range(depth):
            i = rnd.choices((0, 1, 2, 3, 4), (w[0], w[1], w[2], 0.6, 0.3))[0]
            if i < 3:
                S = rnd.choice(step(S, i))
            elif i == 3 and S[0] < T:
                S = (S[0] + 1,) + S[1:]
            elif i == 4 and S[6] == 0:
                S = arm(S, None, E, S[0] + 1)[:6] + (1,)
            elif i == 4 and S[6] == 1:
                S = arm(S, None, A, S[0])[:6] + (2,)
            else:
                continue
            tr.append(S)
            total += 1
            e = check(S) or live(S)
            if e:
                print(f"VIOLATION in walk {k}, {total} steps: {e}; trace length {len(tr)}")
                for s in tr[-10:]:
                    print(
                        "  now",
                        s[0],
                        "lanes",
                        [l[:4] for l in s[3]],
                        "bases",
                        [(b[0], b[1], b[2], b[4]) for b in s[1]],
                        "tm",
                        s[2],
                    )
                return 1
    print(f"{n} random walks, {total} steps, no violation")
    return 0


LIMIT = 400000
WALK = 0
for a in sys.argv[1:]:
    if a.startswith("walk="):
        WALK = int(a[5:])
    elif a.isdigit():
        LIMIT = int(a)
    elif a == "small":
        pass
    else:
        MUT.add(a)
print("mutants:", sorted(MUT) or "none (the proposed protocol)")
sys.exit(walk(WALK, 120, 1) if WALK else main())
