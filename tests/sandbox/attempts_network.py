"""Attempts to reach the machine, the network and other runs' connections."""

from tests.sandbox.abuse import Attempt, said

__all__ = ["NETWORK"]

NETWORK = (
    *(
        Attempt(name, program, said)
        for name, program in (
            ("connect to the worker's ports (Temporal)", 'connect(socket.AF_INET, ("127.0.0.1", T["port"]))'),
            ("connect by the machine's other addresses", '''
each(T["addresses"] or ["127.0.0.2"], lambda address: connect(socket.AF_INET, (address, T["port"])))
'''),
            ("connect by IPv6", 'connect(socket.AF_INET6, ("::1", T["port"]))'),
            ("ask the cloud's metadata service", 'connect(socket.AF_INET, ("169.254.169.254", 80))'),
            ("connect to the internet", 'connect(socket.AF_INET, ("192.0.2.1", 443))'),
            ("connect with the first data (fast open)", '''
with socket.socket() as one:
    for option in (socket.SO_SNDTIMEO, socket.SO_RCVTIMEO): one.setsockopt(socket.SOL_SOCKET, option, struct.pack("ll", 2, 0))
    one.sendto(b"hello", 0x20000000, ("127.0.0.1", T["port"]))
    out("sent")
'''),
            ("connect by multipath TCP", 'connect(socket.AF_INET, ("127.0.0.1", T["port"]), socket.SOCK_STREAM, 262)'),
            ("connect by SCTP", 'connect(socket.AF_INET, ("127.0.0.1", T["port"]), socket.SOCK_STREAM, 132)'),
            ("send a datagram", '''
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
    one.settimeout(2)
    one.connect(("127.0.0.1", T["udp"])); one.send(b"hello"); tell(one.recv(100)); out("answered")
'''),
            ("look up a name", 'socket.getaddrinfo("example.com", 443); out("found")'),
            ("ask a name server itself", '''
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
    one.settimeout(1)
    one.connect(("192.0.2.53", 53)); one.send(b"x"); out("sent")
'''),
            ("ping", '''
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as one:
    one.sendto(bytes((8, 0, 0, 0, 0, 0, 0, 0)), ((T["addresses"] or ["192.0.2.1"])[0], 0)); out("sent")
'''),
            ("open a raw socket", 'socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP); out("opened")'),
            ("listen to the wire (AF_PACKET)", 'socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 768); out("opened")'),
            ("reach the hypervisor (AF_VSOCK)", 'socket.socket(40, socket.SOCK_STREAM).connect_ex((2, 1)); out("opened")'),
            ("use the kernel's cryptography (AF_ALG)", 'socket.socket(38, socket.SOCK_SEQPACKET); out("opened")'),
            ("use rarely used networks", '''
each((9, 29, 30, 31, 44, 45, 64, 4096), lambda family: (socket.socket(family, socket.SOCK_RAW), out(str(family))))
'''),
            ("see the machine's interfaces", '''
names = [name for _, name in socket.if_nameindex()]
if set(names) - {"lo", "tunl0", "sit0", "ip6tnl0", "ip6_vti0", "ip_vti0", "gre0", "gretap0", "erspan0", "ip6gre0"}: out(" ".join(names))
by = "only its own"
'''),
            ("see the machine's connections", '''
seen = read("/proc/net/tcp").decode() + read("/proc/net/unix").decode()
if f":{T['port']:04X} " in seen or T["socket"] in seen: out("seen")
by = "only its own"
'''),
            ("reach an abstract socket of the machine", 'connect(socket.AF_UNIX, "\\0" + T["abstract"])'),
            ("reach another run's way to the network", 'connect(socket.AF_UNIX, T["socket"])'),
            ("reach the Docker engine", 'each(("/var/run/docker.sock", "/run/docker.sock"), lambda path: connect(socket.AF_UNIX, path))'),
            ("reach any socket of a service", '''
paths = [os.path.join(folder, name) for top in ("/run", "/tmp", "/var/run") for folder, _, names in os.walk(top) for name in names]
def is_socket(path):
    try: return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError: return False
each([path for path in paths if is_socket(path)], lambda path: connect(socket.AF_UNIX, path))
by = "there is none"
'''),
            ("speak to the system's bus", 'connect(socket.AF_UNIX, "/run/dbus/system_bus_socket")'),
        )
    ),
    Attempt(
        "reach another run's way, having one itself", 'connect(socket.AF_UNIX, T["socket"])', said, has_way=True
    ),
    Attempt("serve on the machine's ports", '''
serving = socket.create_server(("0.0.0.0", T["squat"]))
serving.settimeout(2)
try: serving.accept()
except TimeoutError: by = "not reachable from outside"
''', said, alone=True),
)  # fmt: skip
