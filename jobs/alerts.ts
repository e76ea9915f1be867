import { runAlerts } from '#alerts/run-alerts.ts'
import { runJob } from './run-job.ts'

/** Reports to operators what begins to be wrong, and what is over. */
await runJob((ctx, { signal, report }) => runAlerts(ctx, { signal, report }))
