"""Who may ask: a page that came from this server, on this machine, and nobody else's page in the same browser."""

from email.message import Message

from .refusal import Refused

__all__ = ["headers_of", "require_ours", "require_room"]

LARGEST_QUERY = 2**13  # bytes of an address
LARGEST_BODY = 2**20
NAMES = ("127.0.0.1", "localhost", "[::1]")
ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}
NO_PAGE = "default-src 'none'; frame-ancestors 'none'"


def require_ours(headers: Message, port: int, *, page: bool) -> None:
    """An error unless a request was sent to this very server, and not by another site's page.

    A name that points to this machine is not enough: anybody can let a name of theirs point here.
    """
    ours = {f"{name}:{port}" for name in NAMES} | (set(NAMES) if port == 80 else set())
    hosts = headers.get_all("Host") or []
    if len(hosts) != 1 or hosts[0].strip().lower() not in ours:
        raise Refused(403, f"the Host header is not one of {', '.join(sorted(ours))}; this server answers to no other.")
    origins = headers.get_all("Origin") or []
    if any(origin.strip().lower() not in {f"http://{host}" for host in ours} for origin in origins):
        raise Refused(403, "the request comes from another site's page; this server answers its own page only.")
    # A link to the page may stand anywhere; what the page itself asks for comes from the page.
    if not page and headers.get("Sec-Fetch-Site", "same-origin").strip() not in ("same-origin", "none"):
        raise Refused(403, "the request comes from another site's page; this server answers its own page only.")


def require_room(headers: Message, *, posted: bool) -> int:
    """How long the body of a request is, if it may be that long.   -> bytes"""
    if headers.get("Transfer-Encoding") is not None:
        raise Refused(411, "the request has a Transfer-Encoding; send a Content-Length instead.")
    lengths = headers.get_all("Content-Length") or []
    if not posted:
        if any(length.strip() != "0" for length in lengths):
            raise Refused(400, "a GET has no body.")
        return 0
    if not lengths:
        raise Refused(411, "there is no Content-Length; say how many bytes the body has.")
    length = lengths[0].strip()
    if len(lengths) > 1 or not (length.isascii() and length.isdigit()):
        raise Refused(400, f"Content-Length is {', '.join(lengths)[:40]!r}; it must be one whole number.")
    if len(length) > 9 or int(length) > LARGEST_BODY:
        raise Refused(413, f"the body has {length[:20]} bytes; {LARGEST_BODY:,} are the most.")
    if headers.get_content_type() != "application/json" or headers.get("Content-Type") is None:
        raise Refused(415, "the Content-Type must be application/json.")
    return int(length)


def headers_of(policy: str | None) -> dict[str, str]:
    """The headers that every answer has. policy: of a page, the one that its scripts need."""
    told = NO_PAGE if policy is None else f"{policy.rstrip('; ')}; frame-ancestors 'none'"
    return {**ALWAYS, "Content-Security-Policy": told}
