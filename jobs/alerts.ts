import { runAlerts } from '#alerts/run-alerts.ts'
import { runJob } from './run-job.ts'

/** Reports problems to operators when they begin and when they end. */
await runJob((ctx, { signal, report }) => runAlerts(ctx, { signal, report }))
