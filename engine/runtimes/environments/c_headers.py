"""Says which package of Debian has a C header that a build did not find."""

import re
from collections.abc import Mapping

_NAME = r"(?!(?i:windows\.h))(?:[\w+-][\w.+-]{0,99}/){0,9}[\w+-][\w.+-]{0,99}\.h\w{0,2}"
"""Not a file of the project itself (`../x.h`), of another system, or of the C++ compiler (`string`)."""
_MISSING = re.compile(rf"fatal error: '?({_NAME})'?(?:: No such file or directory| file not found)")
_NAMES: Mapping[str, str] = {
    "default-libmysqlclient-dev": "mysql.h mysql",
    "libasound2-dev": "alsa",
    "libbluetooth-dev": "bluetooth",
    "libbz2-dev": "bzlib.h",
    "libc6-dev": "stdio.h stdlib.h limits.h",
    "libcairo2-dev": "cairo.h cairo",
    "libcups2-dev": "cups",
    "libcurl4-openssl-dev": "curl",
    "libffi-dev": "ffi.h",
    "libfreetype-dev": "ft2build.h freetype2",
    "libgdal-dev": "gdal.h gdal",
    "libgeos-dev": "geos_c.h",
    "libgmp-dev": "gmp.h",
    "libgraphviz-dev": "graphviz",
    "libhdf5-dev": "hdf5.h",
    "libjpeg-dev": "jpeglib.h",
    "libkrb5-dev": "krb5.h gssapi gssapi.h",
    "libldap-dev": "ldap.h lber.h",
    "libpam0g-dev": "security",
    "libpcap-dev": "pcap.h pcap",
    "libpq-dev": "libpq-fe.h postgres_ext.h",
    "libsasl2-dev": "sasl",
    "libsnappy-dev": "snappy-c.h snappy.h",
    "libsndfile1-dev": "sndfile.h",
    "libsqlite3-dev": "sqlite3.h",
    "libssl-dev": "openssl",
    "libsystemd-dev": "systemd",
    "libudev-dev": "libudev.h",
    "libx11-dev": "X11",
    "libxml2-dev": "libxml",
    "libxslt1-dev": "libxslt",
    "libyaml-dev": "yaml.h",
    "portaudio19-dev": "portaudio.h",
    "python3-dev": "Python.h",
    "unixodbc-dev": "sql.h sqlext.h",
    "zlib1g-dev": "zlib.h",
}
"""Well-known headers, or their folders, by package."""


def header_remedy(told: str) -> str:
    """A sentence to follow the failure of a build that `told` this; empty if it misses no header."""
    found = _MISSING.search(told)
    if found is None:
        return ""
    package = next((package for package, names in _NAMES.items() if found[1].partition("/")[0] in names.split()), "")
    what = f"Install {package}" if package else f"Find its package (`apt-file search {found[1]}`) and install it"
    return f" The C header {found[1]} is not on this host. {what} (on Debian), or depend on a version that has a wheel."
