// Answers with the message it is given.
import { readFileSync } from "node:fs";

const { message } = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify({ received_message: message ?? null }));
