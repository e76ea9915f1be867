import { runSender } from '#webhooks/sender.ts'
import { runJob } from './run-job.ts'

/** First attempts and retries alike: woken after each commit that wrote an event, and looking by itself every second. */
await runJob((ctx, { signal, onWake, report }) =>
  runSender(ctx, { signal, onWake, report: (tally) => void report(tally) }),
)
