"""What comes with a release."""
import json
import os
import subprocess

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _sbom(bench):
    done = subprocess.run([os.path.join(TOP, "cmake", "sbom"), bench.binary], check=True, text=True,
                          capture_output=True, env={**os.environ, "SOURCE_DATE_EPOCH": "1000000000"})
    return done.stdout


def test_version_takes_nothing(bench):
    bench.run("version").expect(0, "tallyman ")
    bench.run("version", "--x").expect(2, '"--x" is too much')


def test_a_lease_stands_in_a_namespace(bench):
    for name in ("A b", "../../x", "", "a.b", "x" * 64):
        bench.run("run", "--lease-namespace", name).expect(2, f'"{name}" is no namespace')


def test_sbom_names_the_libraries_with_their_versions(bench):
    text = _sbom(bench)
    document = json.loads(text)
    packages = {item["name"]: item for item in document["packages"]}
    for name in ("tallyman", "libuv1", "libcurl4", "libyajl2", "liblmdb0", "libmicrohttpd12",
                 "libgnutls30", "libyaml-0-2", "zlib1g", "uthash-dev"):
        assert packages[name]["versionInfo"], name
    described = {item["relatedSpdxElement"] for item in document["relationships"]}
    assert described == {item["SPDXID"] for item in document["packages"]}
    assert document["creationInfo"]["created"] == "2001-09-09T01:46:40Z"
    assert _sbom(bench) == text, "the same program gives the same document"
