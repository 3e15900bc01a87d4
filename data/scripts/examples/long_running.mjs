// Works for a minute and tells how far it is: to see a time-out, progress and cancelling.
const SECONDS = 60;

for (let second = 0; second < SECONDS; second++) {
  const told = { message: `second ${second} of ${SECONDS}`, fraction: second / SECONDS };
  process.stderr.write(`::progress:: ${JSON.stringify(told)}\n`);
  await new Promise((done) => setTimeout(done, 1000));
}
process.stdout.write(JSON.stringify({ seconds: SECONDS }));
