"""Who sends a token, and may they read a path: what is asked, what each answer means, what is kept."""
import json

TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESSES = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
USER = {"username": "jane", "uid": "u-7", "groups": ["a", "b"],
        "extra": {"scopes": ["read", "write"], "deep": [{"x": [1, None, True]}]}}


def token_review(authenticated=True, user=None):
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": {"token": "t", "status": {"authenticated": True, "user": {"username": "root"}}},
            "status": {"authenticated": authenticated, "user": user or USER, "audiences": ["x"]}}


def access_review(status):
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {},
            "status": status}


async def asked(bench, token="t", path="/metrics"):
    server = await bench.server()
    client = await bench.client(server)
    client.tell(f"review {token} {path}")
    return server, client, await server.next(TOKENS)


async def reviewed(bench, status):
    server, client, request = await asked(bench)
    await request.answer(201, token_review())
    request = await server.next(ACCESSES)
    await request.answer(201, access_review(status))
    return server, client, request


async def test_the_user_is_handed_on_as_the_review_has_it(bench):
    server, client, request = await asked(bench)
    body = json.loads(request.body)
    assert request.method == "POST" and body["spec"] == {"token": "t"}
    await request.answer(201, token_review())
    request = await server.next(ACCESSES)
    spec = json.loads(request.body)["spec"]
    assert spec == {"user": "jane", "uid": "u-7", "groups": ["a", "b"], "extra": USER["extra"],
                    "nonResourceAttributes": {"path": "/metrics", "verb": "get"}}, spec
    await request.answer(201, access_review({"allowed": True}))
    await client.expect("verdict allowed")
    await client.quit()


async def test_an_answer_is_remembered_for_that_token_and_path(bench):
    server, client, _ = await reviewed(bench, {"allowed": True})
    await client.expect("verdict allowed")
    client.tell("review t /metrics")
    await client.expect("verdict allowed")
    await server.nothing(0.2)
    client.tell("review t /other")
    await (await server.next(TOKENS)).answer(201, token_review())
    await (await server.next(ACCESSES)).answer(201, access_review({"allowed": False}))
    await client.expect("verdict forbidden")
    client.tell("review u /metrics")
    await (await server.next(TOKENS)).answer(201, token_review(False))
    await client.expect("verdict unknown")
    await client.quit()


async def test_a_token_of_nobody_is_unknown_and_asked_once(bench):
    server, client, request = await asked(bench)
    await request.answer(201, token_review(False))
    await client.expect("verdict unknown")
    client.tell("review t /metrics")
    await client.expect("verdict unknown")
    await server.nothing(0.2)
    await client.quit()


async def test_what_isnt_plainly_allowed_is_forbidden(bench):
    server, client, _ = await reviewed(bench, {"reason": "no opinion"})
    await client.expect("verdict forbidden")
    client.tell("review t /2")
    await (await server.next(TOKENS)).answer(201, token_review())
    await (await server.next(ACCESSES)).answer(201, access_review({"allowed": False,
                                                                   "denied": True}))
    await client.expect("verdict forbidden")
    await client.quit()


async def test_only_a_plain_true_is_authenticated(bench):
    server, client, request = await asked(bench)
    await request.answer(201, token_review("true"))
    await client.expect("verdict unknown")
    client.tell("review u /metrics")
    # The answer's own spec says it; its status doesn't.
    answer = token_review()
    del answer["status"]
    await (await server.next(TOKENS)).answer(201, answer)
    await client.expect("verdict unknown")
    await client.quit()


async def test_a_server_that_cant_be_asked_allows_nobody_and_is_asked_again(bench):
    server, client, request = await asked(bench)
    await request.refuse(500, "InternalError", "no")
    await client.expect("verdict unavailable")
    client.tell("review t /metrics")
    await (await server.next(TOKENS)).answer(201, "{\"status\":")
    await client.expect("verdict unavailable")
    client.tell("review t /metrics")
    await (await server.next(TOKENS)).answer(201, token_review())
    await (await server.next(ACCESSES)).refuse(403, "Forbidden", "no right to ask")
    await client.expect("verdict unavailable")
    client.tell("review t /metrics")
    await (await server.next(TOKENS)).answer(201, token_review())
    await (await server.next(ACCESSES)).answer(201, "[]")
    await client.expect("verdict unavailable")
    await client.quit()
