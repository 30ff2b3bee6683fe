"""A CA of the cluster's own, so that every client verifies TLS as against any real server."""

import subprocess

DAYS = "3650"
SERVER_NAMES = ("DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,"
                "IP:127.0.0.1,IP:10.96.0.1")


def _openssl(directory, *arguments):
    result = subprocess.run(["openssl", *arguments], cwd=directory, check=False,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != 0:
        raise RuntimeError(f"openssl {arguments[0]} failed in {directory}:\n{result.stdout}")


def _new_key(directory, name):
    _openssl(directory, "ecparam", "-genkey", "-name", "prime256v1", "-noout",
             "-out", f"{name}.key")
    (directory / f"{name}.key").chmod(0o600)


def _sign(directory, name, subject, extensions):
    """A certificate `name`.crt for `name`.key, signed by ca.key."""
    (directory / f"{name}.ext").write_text(extensions, encoding="ascii")
    _openssl(directory, "req", "-new", "-key", f"{name}.key", "-subj", subject,
             "-out", f"{name}.csr")
    _openssl(directory, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
             "-CAcreateserial", "-days", DAYS, "-sha256", "-extfile", f"{name}.ext",
             "-out", f"{name}.crt")


def create(directory):
    """Fills the directory: ca.{key,crt}, server.{key,crt}, admin.{key,crt} (a client certificate of
    user admin in system:masters) and sa.{key,pub}, which signs service account tokens."""
    directory.mkdir(parents=True, exist_ok=True)
    _new_key(directory, "ca")
    _openssl(directory, "req", "-x509", "-new", "-key", "ca.key", "-days", DAYS, "-sha256",
             "-subj", "/CN=tallyman-test-ca", "-out", "ca.crt")
    _new_key(directory, "server")
    _sign(directory, "server", "/CN=kube-apiserver",
          f"subjectAltName={SERVER_NAMES}\nextendedKeyUsage=serverAuth\n")
    _new_key(directory, "admin")
    _sign(directory, "admin", "/O=system:masters/CN=admin", "extendedKeyUsage=clientAuth\n")
    _openssl(directory, "genrsa", "-out", "sa.key", "2048")
    (directory / "sa.key").chmod(0o600)
    _openssl(directory, "rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub")
