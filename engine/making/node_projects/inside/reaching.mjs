// Says last on stderr why an app does not start: what it threw, and which servers it cannot reach. Written by Tool Agent.
import { writeSync } from "node:fs";
import { errorMonitor } from "node:events";
import net from "node:net";

const KNOWN = { 27017: "MongoDB", 5432: "PostgreSQL", 3306: "MySQL", 6379: "Redis", 5672: "RabbitMQ", 9200: "Elasticsearch", 9092: "Kafka", 1433: "SQL Server" };
const MOST = 10;

export function tellWhatIsOutOfReach() {
  const seen = new Set();
  let serves = false;
  const connect = net.Socket.prototype.connect;
  net.Socket.prototype.connect = function (...args) {
    const [options] = Array.isArray(args[0]) ? args[0] : args;
    const { host, port } = typeof options === "object" && options !== null ? options : { port: options, host: args[1] };
    this.once(errorMonitor, (error) => {
      if (serves || seen.size >= MOST || port === undefined) return;
      const server = KNOWN[port] ? `${KNOWN[port]} at ` : "";
      const line = `The app cannot reach ${server}${host || "localhost"}:${port} (${error.code ?? error.message}).`;
      if (!seen.has(line)) say(line);
      seen.add(line);
    });
    return connect.apply(this, args);
  };
  process.on("exit", () => {
    // Last, where it is looked for.
    if (!serves) seen.forEach(say);
  });
  process.on("uncaughtException", failed);
  return {
    serves: () => {
      serves = true;
      process.off("uncaughtException", failed);
    },
  };
}

// As Node.js would, but with what it is at the end, and not its version.
function failed(error) {
  if (process.listenerCount("uncaughtException") > 1) return;
  console.error(error);
  const [first] = String(error?.message ?? error).split("\n");
  say(`${error?.name ?? "Error"}: ${first}`);
  process.exit(1);
}

function say(line) {
  try {
    writeSync(2, `${line}\n`);
  } catch {
    // Nobody reads it.
  }
}
