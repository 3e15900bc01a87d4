// Where the app wants to listen: on a port of its own choice, behind ours. Written by Tool Agent.
import http from "node:http";
import net from "node:net";

const ours = new WeakSet();

// Resolves with the first server of HTTP that listens.
export function watchServers() {
  const listen = net.Server.prototype.listen;
  return new Promise((resolve) => {
    net.Server.prototype.listen = function (...args) {
      const [where] = args;
      const path = where?.path ?? where;
      if (ours.has(this) || (typeof path === "string" && Number.isNaN(Number(path)))) return listen.apply(this, args);
      if (this instanceof http.Server) this.once("listening", () => resolve(this));
      const told = args.filter((one) => typeof one === "function").slice(-1);
      // The port that it names may be ours, or another server's of the same app.
      return listen.call(this, { port: 0, host: "127.0.0.1" }, ...told);
    };
  });
}

export function listenOnOurs(server, port) {
  ours.add(server);
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
}
