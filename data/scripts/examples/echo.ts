// Answers with the message it is given.
const { message }: { message?: string } = await Bun.stdin.json();
await Bun.write(Bun.stdout, JSON.stringify({ received_message: message ?? null }));
