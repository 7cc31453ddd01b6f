"""Which model a request gets, and who of its homes can do what the request needs."""

from __future__ import annotations

from cogrid.model.limits import Limits
from cogrid.model.task import Kind
from cogrid.rules.domain import GENERAL
from cogrid.rules.grid import Grid, Seat
from cogrid.rules.homes import supports, why_no_home
from cogrid.rules.moment import Moment
from cogrid.rules.near import near
from cogrid.rules.request import AUTO, MODEL_CHARS, Ask, NoRoute, NoRouteKind
from cogrid.rules.routing import Routing

_TOLD = 3
"""So many workers are named in a sentence; the reasons have them all."""


def pick_model(
    ask: Ask, domain: str, grid: Grid, routing: Routing, limits: Limits
) -> tuple[str, str] | NoRoute:
    """The model and why. A named model is taken as named; ``auto`` is the first of the domain's
    list that has a home which can do it, then of general's list."""
    if ask.model not in (AUTO, ""):
        return _named(ask.model, grid, limits)
    lists = {rule.name: rule.models for rule in routing.domains if rule.models}
    for name in dict.fromkeys((domain, GENERAL)):
        for model in lists.get(name, ()):
            if any(fits(seat, ask) for seat in grid.homes.get(model, ())):
                return model, f"the first of domain {name} that has a home"
    listed = dict.fromkeys((*lists.get(domain, ()), *lists.get(GENERAL, ())))
    if listed:
        message = f"no model of domain '{domain}' has a home now ({', '.join(listed)})"
        return NoRoute(NoRouteKind.NO_HOME, message, model=AUTO)
    return _any(ask, grid)


def must_support(ask: Ask) -> tuple[str, ...]:
    """What excludes a worker that lacks it. Tools and thinking do not: clients send them with
    every chat, and the engine drops what its model cannot use."""
    if ask.kind is Kind.EMBED:
        return ("embed",)
    return ("vision",) if ask.prompt.images or "vision" in ask.needs else ()


def fits(seat: Seat, ask: Ask) -> bool:
    """True when the model, there, can do what the request cannot do without."""
    offer = seat.offer
    embeds_only = "embed" in offer.supports and "chat" not in offer.supports
    return supports(offer, must_support(ask)) and not (embeds_only and ask.kind is not Kind.EMBED)


def incapable(ask: Ask, model: str) -> NoRoute:
    """The refusal where the model has homes and none can do it."""
    subject = "no model that has a home can" if model == AUTO else f"model '{model}' cannot"
    return NoRoute(NoRouteKind.BAD_REQUEST, f"{subject} {lacking(ask)}", model=model)


def lacking(ask: Ask) -> str:
    """What a model that does not fit the request cannot do: the rest of "it cannot"."""
    wanted = {"embed": "make embeddings", "vision": "see images"}
    return next((wanted[need] for need in must_support(ask)), "chat, it only makes embeddings")


def _named(model: str, grid: Grid, limits: Limits) -> tuple[str, str] | NoRoute:
    if model in grid.homes:
        return model, "as asked"
    if len(model) > MODEL_CHARS:
        message = f"a model's name has at most {MODEL_CHARS} characters, this one {len(model)}"
        return NoRoute(NoRouteKind.BAD_REQUEST, message)
    if model not in grid.known:
        shown = model if model.isprintable() else ascii(model)[1:-1]
        message = f"model '{shown}' is not known to this grid"
        meant = near(model, grid.known)
        return NoRoute(NoRouteKind.UNKNOWN_MODEL, message, meant, model=shown)
    return _homeless(model, grid, limits)


def _homeless(model: str, grid: Grid, limits: Limits) -> NoRoute:
    at = Moment.of(grid.snapshot, limits)
    reasons = tuple(
        f"{worker.id}: {why_no_home(worker, model, at)}"
        for worker in grid.snapshot.workers
        if worker.offer(model)
    )
    message = f"no worker can serve model '{model}' now"
    if reasons:
        more = f" and {len(reasons) - _TOLD} more" if len(reasons) > _TOLD else ""
        message = f"{message} ({'; '.join(reasons[:_TOLD])}{more})"
    return NoRoute(NoRouteKind.NO_HOME, message, reasons=reasons, model=model)


def _any(ask: Ask, grid: Grid) -> tuple[str, str] | NoRoute:
    """Without any list: a loaded model before others, then the one that most workers could serve
    at once, then by name."""
    best = min(
        (
            (not any(seat.offer.loaded for seat in able), -sum(seat.able for seat in able), model)
            for model, seats in grid.homes.items()
            if (able := [seat for seat in seats if fits(seat, ask)])
        ),
        default=None,
    )
    if best:
        return best[2], "no list is configured; loaded, then on most workers"
    if grid.homes:
        return incapable(ask, AUTO)
    return NoRoute(NoRouteKind.NO_HOME, "no worker serves any model now", model=AUTO)
