import { runSender } from '#webhooks/sender.ts'
import { runJob } from './run-job.ts'

/** First attempts and retries: woken after each commit that wrote an event, and polling every second. */
await runJob((ctx, { signal, onWake, report }) =>
  runSender(ctx, { signal, onWake, report: (tally) => void report(tally) }),
)
