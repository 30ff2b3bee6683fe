"""Kubeconfigs whose user is a ServiceAccount: what the controller runs with, tests included."""

from . import plane as plane_module
from .api import ApiError


class TokenError(Exception):
    """No token: the message says for whom, and what would help."""


def request_token(api, namespace, name, duration_s=3600):
    """A TokenRequest token of the ServiceAccount, for the API server's own audience."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    try:
        answer = api.request("POST", path, {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": duration_s}})
    except ApiError as error:
        hint = ("; create it first, for Tallyman's own with: kubectl apply -k config/default"
                if error.status == 404 else "")
        raise TokenError(f"ServiceAccount {namespace}/{name}: {error}{hint}") from error
    return answer["status"]["token"]


def service_account_kubeconfig(plane, namespace, name, duration_s=3600):
    """The path of a fresh kubeconfig, below the cluster's directory."""
    token = request_token(plane.api(), namespace, name, duration_s)
    path = plane.directory / f"serviceaccount-{namespace}-{name}.kubeconfig"
    plane_module.write_kubeconfig(path, plane.server, plane.directory / "pki" / "ca.crt",
                                  {"token": token})
    return path
